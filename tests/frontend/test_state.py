"""Parameters, states, optimisers, modules: values against torch and arithmetic, round trips, errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from frontend_support import error_of, record, run

import tempo_ir as tp
from tempo_ir import nn, optim


def test_a_state_is_carried_from_step_to_step() -> None:
    def program():
        i, I = tp.dim("i")
        x = tp.input("x", tp.f32[2], over=i)
        w = tp.state("w", tp.f32[2], init=np.array([1.0, 2.0]), steps=i)
        w.next = w + x
        tp.output("before", w)

    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    out = run(program, x=x)
    np.testing.assert_array_equal(out["before"], [[1, 2], [1, 3], [3, 6]])
    np.testing.assert_array_equal(out.state["w"], [7, 11])
    np.testing.assert_array_equal(run(program, x=x[:0]).state["w"], [1, 2])


def test_a_state_is_carried_through_several_dims_in_lexicographic_order() -> None:
    def program():
        (i, I), (e, _) = tp.dim("i"), tp.dim("e", 2)
        m, M = tp.dim("m", I * 2 // 2)
        w = tp.state("w", tp.i64[()], init=0, steps=(i, e, m))
        w.next = w[i] * 3 + (i + 2 * e + m)
        tp.output("before", w)
        tp.output("first", w[i, 0, 0])

    out = run(program, I=3)
    before, value = [], 0
    for i in range(3):
        for e in range(2):
            for m in range(3):
                before.append(value)
                value = 3 * value + i + 2 * e + m
    np.testing.assert_array_equal(out["before"].reshape(-1), before)
    np.testing.assert_array_equal(out["first"], before[::6])
    assert out.state["w"] == value


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("outer", [True, False])
def test_steps_may_be_a_number(count: int, outer: bool) -> None:
    """As epochs of a setting: one step has none before it, a fixed number of steps no call without any."""

    def program():
        (i, _), (e, _) = tp.dim("i"), tp.dim("e", count)
        w = tp.state("w", tp.i64[()], init=1, steps=(i, e) if outer else e)
        w.next = 2 * w + 1
        tp.output("before", w)
        tp.output("i", i)

    out = run(program, I=2)
    values = [2 ** (n + 1) - 1 for n in range(2 * count + 1)]
    expected = np.reshape(values[: 2 * count], (2, count)) if outer else values[:count]
    np.testing.assert_array_equal(out["before"], expected)
    assert out.state["w"] == values[2 * count if outer else count]


def test_two_calls_equal_one() -> None:
    def program():
        i, I = tp.dim("i")
        x = tp.input("x", tp.f32[()], over=i)
        w = tp.state("w", tp.f32[()], init=1.0, steps=i)
        w.next = w * 1.5 + x
        tp.output("before", w)

    recorded = record(program)
    x = np.arange(5, dtype=np.float32)
    once = recorded.run(x=x)
    first = recorded.run(x=x[:2])
    second = recorded.run(x=x[2:], state=first.state, start={"i": 2})
    np.testing.assert_array_equal(np.concatenate([first["before"], second["before"]]), once["before"])
    np.testing.assert_array_equal(second.state["w"], once.state["w"])


def test_a_parameter_stays_constant() -> None:
    def program():
        i, I = tp.dim("i")
        p = tp.parameter("p", tp.f32[2, 2], init=nn.orthogonal())
        tp.output("y", p.sum() * i)

    out = run(program, I=2)
    np.testing.assert_allclose(out.state["p"] @ out.state["p"].T, np.eye(2), atol=1e-6)


def test_first_values_depend_on_the_seed_and_the_name_only() -> None:
    def one():
        tp.output("y", tp.parameter("a", tp.f32[3], init=nn.normal()).sum())

    def two():
        b = tp.parameter("b", tp.f32[3], init=nn.normal())
        tp.output("y", (tp.parameter("a", tp.f32[3], init=nn.normal()) + b).sum())

    first, second = record(one).init(0), record(two).init(0)
    np.testing.assert_array_equal(first["a"], second["a"])
    assert not np.array_equal(second["a"], second["b"])
    assert not np.array_equal(first["a"], record(one).init(1)["a"])
    assert first["a"].dtype == np.float32


def test_sgd_by_hand() -> None:
    def program():
        i, I = tp.dim("i")
        p = tp.state("p", tp.f64[()], init=1.0, steps=i)
        optim.SGD(0.25).minimize(p * p, p)
        tp.output("before", p)

    assert run(program, I=4)["before"].tolist() == [1, 0.5, 0.25, 0.125]


def torch_mlp() -> torch.nn.Sequential:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 2)).double()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda: optim.Adam(1e-2), lambda p: torch.optim.Adam(p, 1e-2)),
        (lambda: optim.Adam(1e-2, betas=(0.5, 0.9), eps=1e-3), lambda p: torch.optim.Adam(p, 1e-2, (0.5, 0.9), 1e-3)),
        (lambda: optim.Adam(1e-2, weight_decay=0.1), lambda p: torch.optim.AdamW(p, 1e-2, weight_decay=0.1)),
        (lambda: optim.SGD(1e-2, momentum=0.9), lambda p: torch.optim.SGD(p, 1e-2, momentum=0.9)),
        (lambda: optim.SGD(1e-2, weight_decay=0.1), lambda p: torch.optim.SGD(p, 1e-2, weight_decay=0.1)),
        (lambda: optim.SGD(0.5, max_norm=0.1), None),
    ],
)
def test_optimisers_equal_torchs_on_an_mlp(ours, theirs) -> None:
    def program():
        i, I = tp.dim("i")
        x, y = tp.input("x", tp.f64[4, 3], over=i), tp.input("y", tp.f64[4, 2], over=i)
        net = nn.MLP(3, 5, 2, name="net", steps=i, dtype=tp.f64)
        loss = tp.mean((net[i](x) - y) ** 2)
        ours().minimize(loss, net)
        tp.output("loss", loss)

    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(5, 4, 3)), generator.normal(size=(5, 4, 2))
    twin = torch_mlp()
    optimiser = torch.optim.SGD(twin.parameters(), 0.5) if theirs is None else theirs(twin.parameters())
    state = record(program).init(0)
    for name, value in twin.state_dict().items():
        state[f"net.{name.replace('2.', '1.')}"] = value.numpy().copy()
    losses = []
    for step in range(5):
        loss = ((twin(torch.from_numpy(x[step])) - torch.from_numpy(y[step])) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        if theirs is None:
            torch.nn.utils.clip_grad_norm_(twin.parameters(), 0.1)
        optimiser.step()
        losses.append(loss.item())
    out = record(program).run(x=x, y=y, state=state)
    np.testing.assert_allclose(out["loss"], losses, rtol=1e-9)
    np.testing.assert_allclose(out.state["net.1.weight"], twin.state_dict()["2.weight"].numpy(), rtol=1e-9)


@pytest.mark.parametrize("kind", ["GRUCell", "LSTMCell"])
def test_recurrent_cells_equal_torchs_forward_and_backward(kind: str) -> None:
    def program():
        t, T = tp.dim("t")
        x = tp.input("x", tp.f64[2, 3], over=t)
        cell = getattr(nn, kind)(3, 4, name="cell", dtype=tp.f64)
        h, c = (tp.tensor(name, tp.f64[2, 4], over=t) for name in "hc")
        new_h, new_c = (cell(x, h), c) if kind == "GRUCell" else cell(x, (h, c))
        h[0], h[t + 1] = 0.0, new_h
        c[0], c[t + 1] = 0.0, new_c
        loss = tp.mean(new_h**2)
        tp.output("h", new_h)
        tp.output("gradient", tp.grad(loss, cell))

    x = np.random.default_rng(0).normal(size=(6, 2, 3))
    twin = getattr(torch.nn, kind)(3, 4).double()
    recorded = record(program)
    state = {f"cell.{name}": value.detach().numpy().copy() for name, value in twin.named_parameters()}
    out = recorded.run(x=x, state=state)
    hidden, loss, values = None, 0.0, []
    for row in torch.from_numpy(x):
        hidden = twin(row, hidden)
        values.append(hidden if kind == "GRUCell" else hidden[0])
        loss = loss + (values[-1] ** 2).mean()
    loss.backward()
    np.testing.assert_allclose(out["h"], torch.stack(values).detach().numpy(), rtol=1e-10)
    for name, value in twin.named_parameters():
        np.testing.assert_allclose(out[f"gradient.{name}"], value.grad.numpy(), rtol=1e-9, atol=1e-12)


def test_actor_critic_embedding_and_norms_are_trees() -> None:
    def program():
        ids = tp.input("ids", tp.i64[3])
        embedding = nn.Embedding(7, 4, name="embedding")
        net = nn.ActorCritic(4, 8, 8, 2)
        logits, value = net(nn.LayerNorm(4)(nn.RMSNorm(4)(embedding(ids))))
        assert logits.shape == (3, 2)
        assert value.shape == (3,)
        assert list(net.named_tensors())[:2] == ["body.layers.0.weight", "body.layers.0.bias"]
        tp.output("value", value)
        tp.output("logits", logits)

    recorded = record(program)
    assert list(recorded.states)[:2] == ["embedding.weight", "actorcritic.body.0.weight"]
    assert recorded.run(ids=np.array([0, 3, 6]))["value"].shape == (3,)


def test_states_are_saved_and_loaded(tmp_path) -> None:
    def program():
        net = nn.Linear(3, 2, name="net", dtype=tp.bf16)
        tp.output("y", net(tp.input("x", tp.bf16[3])))

    state = record(program).init(0)
    nn.save(state, tmp_path / "folder" / "net.safetensors")
    loaded = nn.load(tmp_path / "folder" / "net.safetensors")
    assert loaded.keys() == state.keys()
    for name, array in state.items():
        assert loaded[name].dtype == array.dtype
        np.testing.assert_array_equal(loaded[name], array)


def test_errors_of_states() -> None:
    def program(kind):
        (i, I), (t, T) = tp.dims("i", "t")
        w = tp.state("w", tp.f32[3], steps=i)
        x = tp.input("x", tp.f32[3], over=(i, t))
        if kind == "dtype":
            w.next = w.cast(tp.f64)
        if kind == "shape":
            w.next = tp.stack([w, w])
        if kind == "dims":
            w.next = w + x
        if kind == "twice":
            w.next = w
            w.next = w
        if kind == "name":
            tp.parameter("w", tp.f32[3])
        if kind == "parameter":
            optim.SGD(0.1).minimize(tp.sum(w), tp.parameter("p", tp.f32[3]))
        if kind == "loss":
            optim.SGD(0.1).minimize(w, w)
        if kind == "point":
            tp.grad(tp.sum(w), w[i - 1])
        if kind == "integers":
            tp.grad(tp.sum(w), x.cast(tp.i64))
        if kind == "nothing":
            optim.SGD(0.1).minimize(tp.sum(w), ())

    assert "the state 'w' has no update: write w.next = ..." in error_of(program, kind="none")
    assert "'w' is f32 (tests/frontend/test_state.py:" in error_of(program, kind="dtype")
    assert "its update is f64: write .cast(tp.f32)" in error_of(program, kind="dtype")
    assert "its update (2, 3)" in error_of(program, kind="shape")
    assert "its update also varies over t: reduce it over t, or add t to steps" in error_of(program, kind="dims")
    assert "the state 'w' is updated twice" in error_of(program, kind="twice")
    assert "the parameter 'w' has the name of the state 'w'" in error_of(program, kind="name")
    assert "'p' cannot be updated: make it a tp.state" in error_of(program, kind="parameter")
    assert "a gradient is taken of a scalar, use tp.mean or tp.sum" in error_of(program, kind="loss")
    assert "'w' is read at another point than the current one" in error_of(program, kind="point")
    assert "is i64: gradients are of floats" in error_of(program, kind="integers")
    assert "there is nothing to minimise over" in error_of(program, kind="nothing")
