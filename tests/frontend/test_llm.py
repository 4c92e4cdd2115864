"""Llama checkpoints: what is read, the decoder of the example against transformers, errors of broken checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from frontend_support import error_of, record, run

import tempo_ir as tp
from tempo_ir import llm
from tempo_ir.frontend.checkpoint import Checkpoint, CheckpointError

EXAMPLE = Path(__file__).parents[2] / "examples" / "llama.py"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tiny")
    return llm.write_random_llama(path, layers=2, hidden=32, heads=4, kv_heads=2, vocabulary=50, feed_forward=48)


def decode(model: Path, prompt: np.ndarray, steps: int, **settings) -> np.ndarray:
    program = tp.load_program(EXAMPLE, settings={"model": str(model), "batch": prompt.shape[1], **settings})
    return program.run(prompt=prompt, T=steps)["token"]


def example(model: Path, **settings) -> tp.Program:
    return tp.load_program(EXAMPLE, settings={"model": str(model), "batch": 2, **settings})


def transformers_tokens(model: Path, prompt: np.ndarray, steps: int) -> np.ndarray:
    """Greedy tokens of transformers, whole sequence each step: (steps, batch)."""
    import torch
    from transformers import LlamaForCausalLM

    network = LlamaForCausalLM.from_pretrained(model, dtype=torch.float32)
    tokens = torch.from_numpy(prompt.T)
    while tokens.shape[1] < steps:
        tokens = torch.cat([tokens, network(tokens).logits[:, -1].argmax(-1, keepdim=True)], 1)
    return tokens.numpy().T


def test_greedy_tokens_are_those_of_transformers(tiny: Path) -> None:
    prompt = np.array([[1, 7], [17, 3], [5, 9]])
    np.testing.assert_array_equal(decode(tiny, prompt, 12), transformers_tokens(tiny, prompt, 12))


def test_a_checkpoint_of_transformers_is_read(tmp_path) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=40, hidden_size=24, intermediate_size=32, num_hidden_layers=2, num_attention_heads=6,
        num_key_value_heads=2, head_dim=8, rms_norm_eps=1e-5, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
        attention_bias=True, initializer_range=0.3,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(tmp_path)
    prompt = np.array([[3], [1], [4]])
    np.testing.assert_array_equal(decode(tmp_path, prompt, 10), transformers_tokens(tmp_path, prompt, 10))


def test_windows_change_one_read(tiny: Path) -> None:
    causal, window = (
        str(tp.load_program(EXAMPLE, settings={"model": str(tiny), "layers": 1, "window": w})) for w in (None, 3)
    )
    assert "[0:t + 1]" in causal
    assert "[max(0, t - 2):t + 1]" in window
    assert len(causal.splitlines()) == len(window.splitlines())
    prompt = np.array([[1], [17], [5]])
    np.testing.assert_array_equal(decode(tiny, prompt, 8, window=8), decode(tiny, prompt, 8))
    assert decode(tiny, prompt, 8, window=1).shape == (8, 1)


def test_logits_are_needed_only_where_a_token_is_generated(tiny: Path) -> None:
    text = str(tp.load_program(EXAMPLE, settings={"model": str(tiny), "layers": 1}))
    assert "where P <= T and P >= 1" in text or "where 1 <= P <= T" in text
    (line,) = (line for line in text.splitlines() if "%logits = " in line)
    assert "in (t: P - 1 to T - 1)" in line


def test_rope_is_transformers() -> None:
    import torch
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    parameters = {
        "rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32,
    }  # fmt: skip
    config = LlamaConfig(head_dim=16, rope_parameters=parameters, max_position_embeddings=256)
    x = np.random.default_rng(0).normal(size=(9, 2, 16)).astype(np.float32)

    def program():
        t, T = tp.dim("t")
        rows = tp.input("x", tp.f32[2, 16], over=t)
        tp.output("y", llm.rope(rows, t, llm.inverse_frequencies(16, parameters)))

    cos, sin = LlamaRotaryEmbedding(config)(torch.zeros(1), torch.arange(9)[None])
    expected, _ = apply_rotary_pos_emb(torch.from_numpy(x)[None], torch.from_numpy(x)[None], cos, sin, unsqueeze_dim=2)
    np.testing.assert_allclose(run(program, x=x)["y"], expected[0].numpy(), rtol=1e-5, atol=1e-6)


def test_what_is_rotated_by_one_position_shares_its_rotation() -> None:
    x = np.random.default_rng(0).normal(size=(9, 2, 16)).astype(np.float32)

    def program():
        t, T = tp.dim("t")
        rows = tp.input("x", tp.f32[2, 16], over=t)
        length = rows.sum().cast(tp.i64)
        for number, position in enumerate((t, t, t + 1, 3, 3, length, length)):
            tp.output(f"y{number}", llm.rope(rows, position))

    recorded = record(program)
    assert str(recorded).count("sdg.cos") == 5
    outputs = recorded.run(x=x)
    for first, second in ((0, 1), (3, 4), (5, 6)):
        np.testing.assert_array_equal(outputs[f"y{first}"], outputs[f"y{second}"])
    assert not np.array_equal(outputs["y0"], outputs["y2"])


@pytest.mark.parametrize("is_flat_first", [True, False])
def test_frequencies_of_another_shape_are_another_rotation(is_flat_first: bool) -> None:
    frequencies = np.array([1, 2, 3, 4], np.float32)
    rng = np.random.default_rng(0)
    x = {"flat": rng.normal(size=(5, 8)).astype(np.float32), "heads": rng.normal(size=(5, 4, 2)).astype(np.float32)}
    tables = {"flat": frequencies, "heads": frequencies[:, None]}

    def program():
        t, T = tp.dim("t")
        for name in sorted(x, reverse=not is_flat_first):
            rows = tp.input(name, tp.f32[x[name].shape[1:]], over=t)
            tp.output(f"{name} rotated", llm.rope(rows, t, tables[name]))

    outputs = run(program, **x)
    for name, rows in x.items():
        angle = np.arange(5.0).reshape(-1, *[1] * tables[name].ndim) * tables[name]
        first, second = np.split(rows, 2, -1)
        rotated = (first + 1j * second) * np.exp(1j * angle)
        expected = np.concatenate([rotated.real, rotated.imag], -1)
        np.testing.assert_allclose(outputs[f"{name} rotated"], expected, rtol=1e-5, atol=1e-6)


def test_frequencies_may_be_a_tensor() -> None:
    x = np.random.default_rng(0).normal(size=(9, 16)).astype(np.float32)

    def program():
        t, T = tp.dim("t")
        rows = tp.input("x", tp.f32[16], over=t)
        tp.output("given", llm.rope(rows, t, tp.input("frequencies", tp.f32[8])))
        tp.output("known", llm.rope(rows, t))

    outputs = run(program, x=x, frequencies=llm.inverse_frequencies(16, {}))
    np.testing.assert_array_equal(outputs["given"], outputs["known"])


def test_a_sharded_checkpoint_is_read(tiny: Path, tmp_path) -> None:
    from tempo_ir import nn

    tensors = nn.load(tiny / "model.safetensors")
    names = sorted(tensors)
    shards = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for file, part in shards.items():
        nn.save({name: tensors[name] for name in part}, tmp_path / file)
    weight_map = {name: file for file, part in shards.items() for name in part}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    (tmp_path / "config.json").write_text((tiny / "config.json").read_text())
    checkpoint = Checkpoint.open(tmp_path)
    np.testing.assert_array_equal(checkpoint.read(names[0]), tensors[names[0]])
    prompt = np.array([[1], [17]])
    np.testing.assert_array_equal(decode(tmp_path, prompt, 5), decode(tiny, prompt, 5))


def test_errors_of_checkpoints(tiny: Path, tmp_path) -> None:
    def refuse(message: str) -> None:
        def program():
            llm.Llama.from_pretrained(tmp_path)

        with pytest.raises(CheckpointError, match=message):
            tp.program(program)()

    refuse("config.json is missing")
    (tmp_path / "config.json").write_text("{")
    refuse("config.json is no JSON")
    (tmp_path / "config.json").write_text("{}")
    refuse("model.safetensors is missing")
    (tmp_path / "model.safetensors").write_bytes(b"nothing of the kind")
    refuse("model.safetensors is no safetensors file")
    (tmp_path / "model.safetensors").write_bytes((tiny / "model.safetensors").read_bytes())
    refuse("has no entry 'num_attention_heads'")
    entries = json.loads((tiny / "config.json").read_text())
    for change, message in [
        ({"hidden_size": 64}, r"has the shape \(50, 32\), config.json implies \(50, 64\)"),
        ({"hidden_act": "gelu"}, "asks for the activation 'gelu'"),
        ({"num_hidden_layers": 3}, "has no tensor 'model.layers.2"),
        ({"rope_scaling": {"rope_type": "yarn"}}, "rotary scaling 'yarn' is none of default, linear, llama3"),
    ]:
        (tmp_path / "config.json").write_text(json.dumps({**entries, **change}))
        refuse(message)

    def program():
        llm.Llama.from_pretrained(tiny, layers=5)

    assert "the model has 2 layers, 5 are asked for" in error_of(program)


def test_a_single_sequence_needs_no_batch_axis(tiny: Path) -> None:
    def attend(layer, x, t):
        q = llm.rope(layer.q(x).reshape(layer.kv_heads, layer.group, layer.width), t) * layer.width**-0.5
        k = llm.rope(layer.k(x).reshape(layer.kv_heads, layer.width), t)
        v = layer.v(x).reshape(layer.kv_heads, layer.width)
        score = tp.einsum("hgd,nhd->hgn", q, k[0 : t + 1])
        return layer.o(tp.einsum("hgn,nhd->hgd", tp.softmax(score), v[0 : t + 1]).reshape(-1))

    def program():
        net = llm.Llama.from_pretrained(tiny)
        t, T = tp.dim("t")
        p, P = tp.dim("p", at_most=T)
        prompt, token = tp.input("prompt", tp.i64[()], over=p), tp.tensor("token", tp.i64[()], over=t)
        x = net.embed(token)
        for layer in net.layers:
            x = x + attend(layer, layer.norm_in(x), t)
            x = x + layer.mlp(layer.norm_post(x))
        token[t < P] = prompt[t]
        token[t + 1] = tp.argmax(net.head(net.norm(x)))
        tp.output("token", token)

    prompt = np.array([1, 17, 5])
    np.testing.assert_array_equal(run(program, prompt=prompt, T=9)["token"], decode(tiny, prompt[:, None], 9)[:, 0])


def test_weights_in_half_the_bytes_are_the_rounded_ones(tiny: Path) -> None:
    """A model whose matrices are bf16 computes what one in f32 does whose matrices were rounded to bf16."""
    prompt = np.array([[1, 9], [17, 3]])
    half, whole = (tp.compile(example(tiny, weights=weights)) for weights in ("bf16", None))
    rounded = {name: np.asarray(array).astype(np.float32) for name, array in half.init().items()}
    found = half(prompt=prompt, T=9, state=half.init())["token"]
    np.testing.assert_array_equal(found, whole(prompt=prompt, T=9, state=rounded)["token"])
    stored = {name: np.asarray(array).dtype.itemsize for name, array in half.init().items()}
    assert {size for name, size in stored.items() if "norm" in name} == {4}
    assert {size for name, size in stored.items() if "norm" not in name} == {2}


def test_weights_of_eight_bits(tiny: Path) -> None:
    """Each row has its scale, no weight is off by more than half a step, and the model is that of the rounded ones."""
    prompt = np.array([[1, 9], [17, 3]])
    eight, whole = (tp.compile(example(tiny, weights=weights)) for weights in ("i8", None))
    state, exact = eight.init(), whole.init()
    rounded = dict(exact)
    for name in exact:
        if "norm" not in name:
            q, scale = state[name], state[f"{name.removesuffix('.weight')}.scale"]
            assert q.dtype == np.int8
            rounded[name] = q.astype(np.float32) * scale[:, None]
            assert (np.abs(rounded[name] - exact[name]) <= scale[:, None] * 0.5001).all()
    found = eight(prompt=prompt, T=9, state=state)["token"]
    np.testing.assert_array_equal(found, whole(prompt=prompt, T=9, state=rounded)["token"])


def test_rows_of_zeros_have_a_scale() -> None:
    q, scale = llm.quantised(np.array([[0.0, 0.0], [1.0, -2.0]], np.float32))
    assert q.tolist() == [[0, 0], [64, -127]]
    np.testing.assert_allclose(scale, [1, 2 / 127])


def test_weights_are_numbers(tiny: Path) -> None:
    assert "weights are stored in a float type or i8, not in i64" in error_of(
        lambda: llm.Llama.from_pretrained(tiny, weights=tp.i64)
    )


@pytest.mark.parametrize("settings", [{"cache": "bf16"}, {"cache": "f16", "window": 3, "weights": "i8"}])
def test_caches_in_half_the_bytes(tiny: Path, settings: dict[str, str]) -> None:
    program = example(tiny, **settings)
    prompt, executable = np.array([[1, 9], [17, 3]]), tp.compile(program)
    state = executable.init()
    found = executable(prompt=prompt, T=9, state=state)["token"]
    np.testing.assert_array_equal(found, program.run(prompt=prompt, T=9, state=state)["token"])
    exact = tp.compile(example(tiny, **{name: value for name, value in settings.items() if name != "cache"}))
    exact(prompt=prompt, T=9, state=state)
    name = "ring" if "window" in settings else "growing"
    assert executable.stats.bytes_by_class[name] < 0.7 * exact.stats.bytes_by_class[name]
