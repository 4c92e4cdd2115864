"""The example programs, compiled for the CPU, against torch and transformers."""

from __future__ import annotations

import itertools
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

import tempo_ir as tp
from benchmarks.reinforce_torch import TorchReinforce
from examples import bptt, llama, n_step, reinforce, rnn, rollout
from tempo_ir import llm, nn, optim
from tempo_ir.reference import philox
from tempo_ir.runtime.memory import ALIGNMENT

NEW_TOKENS = 64


# -- Llama


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    """A random LlamaForCausalLM, made and saved by transformers: 4 layers, 256 wide, 8/4 heads, vocabulary of 1000."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("llama")
    config = LlamaConfig(
        vocab_size=1000, hidden_size=256, intermediate_size=704, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=4, initializer_range=0.1,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(path)
    return path


@tp.program
def decode_with_logits(model="", window=None, batch=1):
    """As `examples/llama.py`, with the logits of every generated token as a second output."""
    net = llm.Llama.from_pretrained(Path(model))
    t, _ = tp.dim("t")
    p, P = tp.dim("p", at_most=_)
    prompt = tp.input("prompt", tp.i64[batch], over=p)
    token = tp.tensor("token", tp.i64[batch], over=t)
    x = net.embed(token)
    for layer in net.layers:
        x = x + llama.attend(layer, layer.norm_in(x), t, window)
        x = x + layer.mlp(layer.norm_post(x))
    logits = net.head(net.norm(x))
    token[t < P] = prompt[t]
    token[t + 1] = tp.argmax(logits, axis=-1)
    tp.output("token", token)
    tp.output("logits", logits)


@pytest.fixture(scope="module")
def greedy(checkpoint: Path) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Per window (0: none) the tokens (T, 2) and logits (T, 2, vocabulary) of transformers, all positions at once."""
    from transformers import LlamaForCausalLM

    network = LlamaForCausalLM.from_pretrained(checkpoint, dtype=torch.float32, attn_implementation="eager").eval()
    found = {}
    for window in (0, 16):
        tokens = torch.tensor([[1, 17, 29, 5], [7, 3, 9, 11]])
        logits = torch.zeros(0)
        with torch.inference_mode():
            while tokens.shape[1] < 4 + NEW_TOKENS:
                n = tokens.shape[1]
                distance = torch.arange(n)[:, None] - torch.arange(n)[None, :]
                seen = (distance >= 0) & (distance < (window or n))
                mask = torch.where(seen, 0.0, -torch.inf)[None, None]
                logits = network(tokens, attention_mask=mask).logits
                tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], 1)
        found[window] = tokens.numpy().T, logits.numpy().transpose(1, 0, 2)
    return found


@pytest.mark.parametrize("window", [None, 16])
def test_llama_gives_the_logits_and_tokens_of_transformers(checkpoint, greedy, window) -> None:
    tokens, logits = greedy[window or 0]
    exe = tp.compile(decode_with_logits(model=str(checkpoint), window=window, batch=2))
    out = exe(prompt=tokens[:4], T=4 + NEW_TOKENS, state=exe.init())
    np.testing.assert_array_equal(out["token"], tokens)
    np.testing.assert_allclose(out["logits"][: len(logits)], logits, rtol=2e-3, atol=2e-3)


def test_a_window_keeps_exactly_its_rows() -> None:
    text = tp.compile(llama.decode(model=str(llama.checkpoint("build/tiny-llama")), window=16, layers=2)).ir("loop")
    caches = [line for line in text.splitlines() if "ring" in line]
    assert len(caches) == 4
    assert all("(t: ring 16)" in line for line in caches)


def test_each_layer_keeps_what_it_looks_back_on() -> None:
    """Local layers have rings of the window, global ones grow; the bytes of a local one do not depend on T."""
    program = llama.decode(model=str(llama.checkpoint("build/tiny-llama")), window=16, global_every=2)
    exe = tp.compile(program)
    caches = [line.split(": ", 1)[1] for line in exe.ir("loop").splitlines() if "loop.alloc" in line and "(t: " in line]
    local, all_ = "!loop.buffer<(t: ring 16) 1x4x32xf32>", "!loop.buffer<(t: growing to T - 1) 1x4x32xf32>"
    assert sorted(caches) == [all_] * 4 + [local] * 4
    prompt, row = np.array([[1], [17], [29]]), 4 * 32 * 4
    found = {}
    for steps in (3, 17, 40, 80):
        found[steps] = exe(prompt=prompt, T=steps, state=exe.init())["token"]
        used = exe.stats.bytes_by_class
        assert 0 <= used["ring"] - 4 * min(16, steps) * row <= 4 * ALIGNMENT
        assert 0 <= used["growing"] - 4 * (steps - 1) * row <= 4 * ALIGNMENT
    expected = tp.compile(program, target="reference")
    np.testing.assert_array_equal(found[40], expected(prompt=prompt, T=40, state=exe.init())["token"])


def test_one_compile_serves_every_length(checkpoint) -> None:
    exe = tp.compile(llama.decode(model=str(checkpoint), layers=1))
    state = exe.init()
    prompt = np.array([[1], [17], [29]])
    long = exe(prompt=prompt, T=40, state=state)["token"]
    for length in (3, 4, 7, 17):
        np.testing.assert_array_equal(exe(prompt=prompt, T=length, state=state)["token"], long[:length])


@pytest.mark.parametrize("which", [0, 5, 40])
def test_llama_decodes_until_every_row_has_said_the_last_token(checkpoint, greedy, which) -> None:
    tokens, _ = greedy[0]
    end = int(tokens[4 + which, 0])
    expected, said, steps = tokens.copy(), np.zeros(2, bool), 4
    while steps < len(tokens) and not said.all():
        expected[steps, said] = end
        said |= expected[steps] == end
        steps += 1
    exe = tp.compile(llama.decode(model=str(checkpoint), batch=2, until=end))
    out = exe(prompt=tokens[:4], T=len(tokens), state=exe.init())
    assert out.extents["t"] == steps
    np.testing.assert_array_equal(out["token"], expected[:steps])
    np.testing.assert_array_equal(exe(prompt=tokens[:3], T=3, state=exe.init())["token"], tokens[:3])


# -- recurrent networks


def test_rnn_trains_like_torch() -> None:
    iterations, steps, batch, width, lr = 5, 9, 3, 7, 1e-2
    x, y = rnn.waves(iterations, steps, batch, width)
    exe = tp.compile(rnn.rnn(batch=batch, width=width, lr=lr))
    state = exe.init(seed=0)
    out = exe(x=x, y=y, state=state)
    weight = torch.tensor(state["w"].copy(), requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=lr)
    for i in range(iterations):
        hidden, loss = torch.zeros(batch, width), torch.zeros(())
        for t in range(steps):
            hidden = torch.tanh(torch.tensor(x[i, t]) + hidden @ weight)
            loss = loss + ((hidden - torch.tensor(y[i, t])) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert out["loss"][i] == pytest.approx(loss.item() / steps, rel=1e-4)
    np.testing.assert_allclose(out.state["w"], weight.detach().numpy(), rtol=1e-4, atol=1e-5)


@tp.program
def gru(batch=3, inputs=4, width=5, lr=0.1):
    """A GRU trained to give back its input sum, in f64, by stochastic gradient descent."""
    (i, _), (t, T) = tp.dims("i", "t")
    x = tp.input("x", tp.f64[batch, inputs], over=(i, t))
    cell = nn.GRUCell(inputs, width, steps=i, dtype=tp.f64)
    s = tp.tensor("s", tp.f64[batch, width], over=(i, t))
    h = cell[i](x, s)
    s[i, 0], s[i, t + 1] = 0.0, h
    loss = tp.mean((h - tp.sum(x, axis=-1, keepdims=True)) ** 2)
    optim.SGD(lr).minimize(loss, cell)
    tp.output("loss", tp.sum(loss[i, 0:T]))


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_gru_trains_like_torch(steps: int) -> None:
    iterations, batch, inputs, width, lr = 3, 3, 4, 5, 0.1
    x = np.random.default_rng(0).standard_normal((iterations, steps, batch, inputs))
    exe = tp.compile(gru(batch=batch, inputs=inputs, width=width, lr=lr))
    state = exe.init(seed=0)
    out = exe(x=x, state=state)
    cell = torch.nn.GRUCell(inputs, width, dtype=torch.float64)
    with torch.no_grad():
        for name, parameter in cell.named_parameters():
            parameter.copy_(torch.from_numpy(state[f"gru.{name}"]))
    optimizer = torch.optim.SGD(cell.parameters(), lr=lr)
    for i in range(iterations):
        hidden, loss = torch.zeros(batch, width, dtype=torch.float64), torch.zeros((), dtype=torch.float64)
        for row in torch.from_numpy(x[i]):
            hidden = cell(row, hidden)
            loss = loss + ((hidden - row.sum(-1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert out["loss"][i] == pytest.approx(loss.item(), rel=1e-9)
    for name, parameter in cell.named_parameters():
        np.testing.assert_allclose(out.state[f"gru.{name}"], parameter.detach().numpy(), rtol=1e-7, atol=1e-9)


# -- REINFORCE


class Silent:
    def show(self, iteration, score) -> None:
        """A monitor that shows nothing."""


def test_reinforce_is_its_torch_twin() -> None:
    """The twin begins with the same weights and draws its actions from the same random bits."""
    envs, steps, iterations, seed = 2, 30, 4, 3
    exe = tp.compile(reinforce.reinforce(envs=envs, monitor=Silent))
    state = exe.init(seed=seed)
    out = exe(I=iterations, T=steps, state=state, seed=seed)
    twin = TorchReinforce(envs, steps)
    parameters = {
        f"{network}.{number}.{name}": parameter
        for network, module in (("policy", twin.policy), ("critic", twin.critic))
        for number, layer in enumerate([module[0], module[2]])
        for name, parameter in layer.named_parameters()
    }
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(torch.from_numpy(state[name]))

    def choose(logits: torch.Tensor, i: int, t: int) -> torch.Tensor:
        uniform = philox.uniform(philox.blocks(seed, 0, (i, t), (envs, 2)), np.dtype(np.float32))
        return (logits - torch.log(-torch.log(torch.from_numpy(uniform)))).argmax(-1)

    twin.choose = choose
    environments = reinforce.CartPoles(envs)
    scores = [twin.iterate(environments, i) for i in range(iterations)]
    np.testing.assert_allclose(out["score"], scores)
    for name, parameter in parameters.items():
        np.testing.assert_allclose(out.state[name], parameter.detach().numpy(), rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)])
def test_reinforce_learns_cartpole(seed: int) -> None:
    exe = tp.compile(reinforce.reinforce(monitor=Silent))
    score = exe(I=100, T=500, state=exe.init(seed=seed), seed=seed)["score"]
    assert score[:3].mean() < 60
    assert score[-10:].mean() > 300


# -- n-step returns


def test_learning_from_n_step_returns_keeps_n_rows() -> None:
    """Of 48 environments of 3x8x8; the whole is `python examples/n_step.py`."""
    row = 48 * 3 * 8 * 8 * 4
    program = {n: n_step.n_step(n=n, envs=48, side=8) for n in (1, 8, None)}
    peaks = {}
    for n in program:
        executable = tp.compile(program[n])
        last = tp.compile(program[n], without=("sdg-accumulate",))
        state = executable.init(0)
        out, expected = (exe(T=200, state=state, seed=1) for exe in (executable, last))
        assert n_step.difference(out, expected) < 1e-4
        peaks[n] = executable.stats.peak_bytes
        if n is not None:
            assert last.stats.peak_bytes > 200 * row
            assert peaks[n] < last.stats.peak_bytes * (n + 1) / (0.8 * 200) * 1.5  # small rows: the rest weighs more
    assert peaks[None] > 16 * max(peaks[1], peaks[8])


def test_backpropagation_in_a_twentieth_of_the_memory() -> None:
    """Of 2000 steps; the whole is `python examples/bptt.py`."""
    program = bptt.bptt(batch=4, width=16)
    generator = np.random.default_rng(0)
    arguments = {
        "x": generator.normal(size=(2000, 4, 4)).astype(np.float32),
        "wanted": generator.normal(size=(2000, 4)).astype(np.float32),
    }
    whole = tp.compile(program)
    expected, _ = bptt.run(whole, arguments, repeats=1)
    budget = whole.stats.peak_bytes // bptt.SHARE
    executable = tp.compile(program, remat={"budget": budget, "steps": 2000})
    out, _ = bptt.run(executable, arguments, repeats=1)
    assert executable.stats.peak_bytes <= budget
    assert bptt.difference(out, expected) < 1e-4


def test_the_rollout_steps_as_gymnasium_does() -> None:
    envs, steps = 8, 60
    exe = tp.compile(rollout.rollout(envs=envs, hidden=16))
    out = exe(T=steps, state=exe.init(seed=0), seed=3)
    world = gymnasium.make("CartPole-v1").unwrapped
    world.reset(seed=0)
    for t, env in itertools.product(range(steps - 1), range(envs)):
        world.state, world.steps_beyond_terminated = out["obs"][t, env].astype(np.float64), None
        after, _, terminated, _, _ = world.step(int(out["action"][t, env]))
        assert terminated == out["ended"][t, env], (t, env)
        begins = np.abs(out["obs"][t + 1, env]).max() <= 0.05
        assert begins if terminated else np.allclose(out["obs"][t + 1, env], after, atol=1e-5), (t, env)
    assert 0 < out["ended"].sum() < out["ended"].size
