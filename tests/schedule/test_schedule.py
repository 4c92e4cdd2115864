"""Scheduled programs compute what their graphs mean, at odd sizes, and are ordered as a person would order them."""

from __future__ import annotations

import numpy as np
import pytest
from schedule_programs import IMPOSSIBLE, NEEDS_ISL, SCHEDULABLE
from schedule_support import admitted_bounds, arguments, parse
from xdsl.utils.exceptions import PassFailedException

from tempo_ir.dialects import loop, sdg
from tempo_ir.index import Sym
from tempo_ir.index.isl import IslError
from tempo_ir.lowering.schedule.diagnosis import ScheduleError, no_order
from tempo_ir.lowering.schedule.driver import schedule_program
from tempo_ir.lowering.schedule.emit import loop_program
from tempo_ir.lowering.schedule.isl_tree import loop_nest
from tempo_ir.lowering.schedule.legality import Claim, check_schedule
from tempo_ir.lowering.schedule.named_dims import UnorderedError
from tempo_ir.lowering.schedule.order import Leaf, Node, Wave
from tempo_ir.lowering.schedule.statements import Statements
from tempo_ir.reference.loop import run_loop
from tempo_ir.reference.sdg import run


def assert_same_results(program: sdg.ProgramOp, scheduled: loop.ProgramOp) -> None:
    scheduled.verify()
    for bounds in admitted_bounds(program):
        given = arguments(program, bounds)
        expected, computed = run(program, given, bounds, seed=3), run_loop(scheduled, given, bounds, seed=3)
        assert expected.keys() == computed.keys()
        for key, value in expected.items():
            np.testing.assert_array_equal(computed[key], value, err_msg=f"{key} at {bounds}")


@pytest.mark.parametrize("name", [*SCHEDULABLE, *NEEDS_ISL])
def test_computes_what_the_graph_means(name: str) -> None:
    program = parse({**SCHEDULABLE, **NEEDS_ISL}[name])
    assert_same_results(program, schedule_program(program))


def outline(program: loop.ProgramOp) -> list[str]:
    """The loops with their directions and the values written, one per line."""
    lines: list[str] = []

    def visit(block, indent: str) -> None:
        for op in block.ops:
            if isinstance(op, loop.ForOp):
                lines.append(f"{indent}{op.iterator} {'down' if op.down else 'up'}")
                visit(op.body.block, indent + "  ")
            elif isinstance(op, loop.IfOp):
                for region in op.regions:
                    for inner in region.blocks:
                        visit(inner, indent)
            elif isinstance(op, loop.AccessOperation):
                written = indent + " ".join(str(access.buffer.name_hint) for access in op.writes)
                if written not in lines[-1:]:
                    lines.append(written)

    visit(program.body.block, "")
    return lines


def test_reinforce_acts_upwards_and_learns_downwards() -> None:
    assert outline(schedule_program(parse(SCHEDULABLE["reinforce"]))) == [
        "i up", "  theta",
        "  t up", "    noise", "    obs", "    logit", "    act", "    sum", "    env",
        "  t down", "    r", "    later", "    G", "    g0", "    g",
        "  gs", "  small", "  next", "last",
    ]  # fmt: skip


def test_n_step_returns_interleave_with_acting() -> None:
    lines = outline(schedule_program(parse(SCHEDULABLE["n_step"])))
    assert [line.strip() for line in lines if line.endswith(("up", "down"))] == ["i up", "t up"]


def moments(read: str) -> sdg.ProgramOp:
    """Two recurrences that do not read each other, and one that reads both."""
    return parse(f"""
sdg.program @moments dims(t: T) {{
  %g = sdg.input "g" : tensor<2xf32>
  %zero = sdg.constant 0.0 : tensor<2xf32>
  %half = sdg.constant 0.5 : tensor<2xf32>
  %m_before = sdg.merge {{t = 0 : %zero, t > 0 : %m[t - 1]}} in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %m_less = sdg.mul %m_before[t], %half in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %m = sdg.add %m_less[t], %g in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %v_before = sdg.merge {{t = 0 : %zero, t > 0 : %v[t - 1]}} in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %v_less = sdg.sub %v_before[t], %half in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %v = sdg.mul %v_less[t], %g in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %w_before = sdg.merge {{t = 0 : %zero, t > 0 : %w[t - 1]}} in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %step = sdg.mul {read}, %v[t] in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %w = sdg.sub %w_before[t], %step[t] in (t) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  sdg.output "w" %w[t] in (t) : tensor<2xf32>
}}""")


@pytest.mark.parametrize(("read", "loops"), [("%m[t]", 1), ("%m[max(0, t - 3)]", 1), ("%m[T - 1]", 2)])
def test_recurrences_are_gathered_into_the_loop_that_reads_them(read: str, loops: int) -> None:
    program = moments(read)
    scheduled = schedule_program(program)
    assert [line for line in outline(scheduled) if line == "t up"] == ["t up"] * loops
    assert_same_results(program, scheduled)


def test_equal_layers_stay_equal() -> None:
    lines = [line.strip() for line in outline(schedule_program(parse(SCHEDULABLE["layers"])))]
    first = lines.index("n0")
    for layer in range(3):
        start = first + 7 * layer
        expected = [f"{name}{layer + (name == 'x')}" for name in "nqkswox"]
        assert lines[start : start + 7] == expected


def test_all_layers_share_one_loop() -> None:
    program = schedule_program(parse(SCHEDULABLE["layers"]))
    assert sum(isinstance(op, loop.ForOp) for op in program.walk()) == 1


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_programs_show_their_cycle(name: str) -> None:
    with pytest.raises(PassFailedException, match=r"needs itself: .*program.mlir:\d+.*needs") as error:
        schedule_program(parse(IMPOSSIBLE[name], verify=False))
    assert isinstance(error.value.op, sdg.SdgOp)


def test_a_late_cycle_is_shown_at_the_size_where_it_closes() -> None:
    with pytest.raises(PassFailedException, match=r"%b .* at t = 29 needs %a .* at t = 59 needs %b .* \(T = 60\)"):
        schedule_program(parse(IMPOSSIBLE["late"]))


def test_loops_up_to_a_point_and_down_to_it() -> None:
    assert outline(schedule_program(parse(SCHEDULABLE["turning"]))) == ["t up", "  s", "  h", "t down", "  s", "  h"]


def test_what_no_loop_orders_is_refused_by_name() -> None:
    statements = Statements.of(parse(SCHEDULABLE["turning"]))
    error = no_order(statements, UnorderedError([0, 1], ()))
    assert "no loops found that order sdg.merge %s" in str(error)
    assert "though no value needs itself" in str(error)
    assert error.__notes__ == [
        "define the value as several, each with one direction of time, so that each has a loop of its own"
    ]


HOST = """
sdg.program @host dims(i: I, t: T) where T >= 1 {
  %env = sdg.host_state @env : !sdg.token
  %log = sdg.host_state @log : !sdg.token
  %seed = sdg.index i in (i) : tensor<i64>
  %e0 = sdg.merge {i = 0 : %env, i > 0 : %e2[i - 1, T - 1]} in (i) : (!sdg.token, !sdg.token) -> !sdg.token
  %first, %e1 = sdg.host @env::@reset(%seed[i]) after %e0[i] in (i)
      : (tensor<i64>, !sdg.token) -> (tensor<2xf32>, !sdg.token)
  %et = sdg.merge {t = 0 : %e1[i], t > 0 : %e2[i, t - 1]} in (i, t) : (!sdg.token, !sdg.token) -> !sdg.token
  %obs = sdg.merge {t = 0 : %first[i], t > 0 : %after[i, t - 1]} in (i, t)
      : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %act = sdg.tanh %obs[i, t] in (i, t) : (tensor<2xf32>) -> tensor<2xf32>
  %after, %e2 = sdg.host @env::@step(%act[i, t]) after %et[i, t] in (i, t)
      : (tensor<2xf32>, !sdg.token) -> (tensor<2xf32>, !sdg.token)
  %sum = sdg.sum %after[i, 0:T] axes [0] in (i) : (tensor<2xf32>) -> tensor<2xf32>
  %l0 = sdg.merge {i = 0 : %log, i > 0 : %l1[i - 1]} in (i) : (!sdg.token, !sdg.token) -> !sdg.token
  %l1 = sdg.host @log::@write(%sum[i]) after %l0[i] in (i) : (tensor<2xf32>, !sdg.token) -> !sdg.token
  sdg.output "after" %after[i, t] in (i, t) : tensor<2xf32>
}
"""


class Recorder:
    """A host object that writes down its calls, and whose answers depend on their order."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls

    def reset(self, seed: np.ndarray) -> np.ndarray:
        self.calls.append(f"reset {int(seed)}")
        return np.full(2, float(seed), np.float32)

    def step(self, action: np.ndarray) -> np.ndarray:
        self.calls.append("step")
        return (action + len(self.calls)).astype(np.float32)

    def write(self, total: np.ndarray) -> None:
        self.calls.append("write")


@pytest.mark.parametrize("bounds", [{"I": 0, "T": 2}, {"I": 1, "T": 1}, {"I": 3, "T": 4}])
def test_host_calls_follow_their_tokens(bounds: dict[str, int]) -> None:
    program = parse(HOST)
    results, calls = [], []
    for execute, target in ((run, program), (run_loop, schedule_program(program))):
        env, log = [], []
        hosts = {"env": lambda env=env: Recorder(env), "log": lambda log=log: Recorder(log)}
        results.append(execute(target, {}, bounds, hosts=hosts))
        calls.append((env, log))
    assert calls[0] == calls[1]
    assert calls[0][0] == [call for i in range(bounds["I"]) for call in [f"reset {i}", *["step"] * bounds["T"]]]
    np.testing.assert_array_equal(results[0]["after"], results[1]["after"])


def test_three_loops_of_one_name_are_three_loops() -> None:
    """Waves over each dim, from the last, of a program that has a bound of their name."""
    program = parse("""
sdg.program @square dims(i: wave, j: J, k: K) {
  %x = sdg.input "x" in (i, j, k) : tensor<f64>
  %y = sdg.mul %x[i, j, k], %x[i, j, k] in (i, j, k) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  sdg.output "y" %y[i, j, k] in (i, j, k) : tensor<f64>
}""")
    statements = Statements.of(program)
    order: list[Node] = [Leaf(number) for number in range(len(statements.works))]
    for dim in "ijk":
        order = [Wave({number: Sym(dim) for number in range(len(statements.works))}, order)]
    emitted = loop_program(statements, loop_nest(statements.graph, order))
    check_schedule(emitted.program, Claim(program, emitted.origins, emitted.memory))
    assert_same_results(program, emitted.program)
    loops = [line.strip() for line in outline(emitted.program)]
    assert loops[:3] == ["wave_2 up", "wave_3 up", "wave_4 up"]


def test_a_fault_of_isls_own_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """isl's search for fewer pieces finds itself at fault for some trees of tiled programs; other errors stay."""
    program = parse(next(iter(SCHEDULABLE.values())))

    def fails(text: str) -> None:
        def failing(*_: object) -> None:
            raise IslError(text)

        monkeypatch.setattr("tempo_ir.lowering.schedule.driver.loop_nest", failing)

    fails("original tableau does not correspond to original basic map")
    with pytest.raises(ScheduleError, match="a fault of its own: leave out 'sdg-tile'"):
        schedule_program(program)
    fails("unexpected token")
    with pytest.raises(IslError, match="unexpected token"):
        schedule_program(program)
