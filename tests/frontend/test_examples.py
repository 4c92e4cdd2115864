"""The three programs under examples/ record, and run by the reference interpreter at small sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import tempo_ir as tp

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_rnn_learns_and_equals_torch() -> None:
    import torch

    program = tp.load_program(EXAMPLES / "rnn.py", settings={"batch": 2, "width": 3, "lr": 0.05})
    x, y = np.random.default_rng(0).normal(size=(2, 4, 5, 2, 3)).astype(np.float32) * 0.5
    state = program.init(0)
    out = program.run(x=x, y=y, state=state)
    weight = torch.from_numpy(state["w"]).requires_grad_()
    optimiser = torch.optim.Adam([weight], 0.05)
    losses = []
    for i in range(4):
        hidden, loss = torch.zeros(2, 3), 0.0
        for t in range(5):
            hidden = torch.tanh(torch.from_numpy(x[i, t]) + hidden @ weight)
            loss = loss + ((hidden - torch.from_numpy(y[i, t])) ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item() / 5)
    np.testing.assert_allclose(out["loss"], losses, rtol=1e-4)
    np.testing.assert_allclose(out.state["w"], weight.detach().numpy(), rtol=1e-3, atol=1e-5)


def test_reinforce_acts_in_the_environments_and_updates_both_networks(capsys) -> None:
    program = tp.load_program(EXAMPLES / "reinforce.py", settings={"envs": 2})
    state = program.init(0)
    out = program.run(I=2, T=12, state=state, seed=0)
    assert out["score"].shape == (2,)
    assert all(8 <= score <= 12 for score in out["score"])
    assert [line.split("=")[0] for line in capsys.readouterr().out.split()] == ["i", "score"] * 2
    assert all(not np.array_equal(state[name], out.state[name]) for name in state)


def test_reinforce_calls_stand_in_the_order_of_nested_loops() -> None:
    text = str(tp.load_program(EXAMPLES / "reinforce.py"))
    assert "{i = 0 : %cartpoles, i > 0 : %" in text
    assert "sdg.host @cartpoles::@reset" in text
    assert "sdg.host @cartpoles::@step" in text
    assert "{t = T - 1 : %bootstrap[i, t], true : %ret[i, t + 1]} in (i, t)" in text


def test_llama_writes_a_checkpoint_where_there_is_none(in_temporary_directory) -> None:
    program = tp.load_program(EXAMPLES / "llama.py", settings={"layers": 1})
    assert Path("build/tiny-llama/config.json").exists()
    assert program.run(prompt=np.array([[1], [2]]), T=3)["token"].shape == (3, 1)
