"""How executables are called: arguments checked, errors carried, threads, Ctrl-C, torch tensors, state."""

from __future__ import annotations

import copy
import gc
import pickle
import signal
import threading
import time
import weakref
from collections.abc import Callable

import numpy as np
import pytest

import tempo_ir as tp
from tempo_ir.reference.errors import ExecutionError
from tempo_ir.runtime.calls import MOST_WORKSPACES
from tempo_ir.runtime.errors import CallError, CompileError
from tempo_ir.runtime.executable import Native
from tempo_ir.tools.parsing import own_context, parse_module


@tp.program
def recurrence(width=4):
    t, _ = tp.dim("t")
    x = tp.input("x", tp.f32[width], over=t)
    y = tp.input("y", tp.f32[width], over=t)
    w = tp.parameter("w", tp.f32[width], init=lambda generator, shape: np.ones(shape, np.float32))
    h = tp.tensor("h", tp.f32[width], over=t)
    h[0] = x[0]
    h[t + 1] = h * w + x[t + 1] + y[t + 1]
    tp.output("h", h)


@pytest.fixture(scope="module")
def executable() -> tp.Executable:
    return tp.compile(recurrence())


def arrays(steps: int = 3) -> dict[str, np.ndarray]:
    return {name: np.ones((steps, 4), np.float32) for name in "xy"}


def test_bounds_are_read_off_the_inputs(executable: tp.Executable) -> None:
    assert executable(**arrays(3))["h"].tolist() == [[1.0] * 4, [3.0] * 4, [5.0] * 4]
    assert executable(**arrays(0))["h"].shape == (0, 4)
    assert executable(**arrays(2), T=2, state={"w": np.zeros(4, np.float32)})["h"].tolist() == [[1.0] * 4, [2.0] * 4]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, "input 'x' is missing: 'recurrence' takes the inputs x: f32[T, 4]"),
        ({"x": np.ones((3, 5), np.float32)}, "input 'x' is f32[T, 4], got an array of shape (3, 5)"),
        ({"x": np.ones((3, 4))}, "input 'x' is f32[T, 4], got an array of float64: convert it"),
        ({"y": np.ones((2, 4), np.float32)}, "input 'y' has T = 2, input 'x' has T = 3: they must agree"),
        ({"T": -1}, "the bound T is an integer of 0 or more, got -1"),
        ({"T": 2}, "input 'x' has T = 3, the call has T = 2: they must agree"),
        ({"T": 1.5}, "the bound T is an integer of 0 or more, got 1.5"),
        ({"z": 1}, "'z' is neither an input nor a bound"),
        ({"state": {}}, "parameter 'w' is missing in the state"),
        ({"state": {"w": np.ones(4, np.float32), "v": 1}}, "the state has 'v', which 'recurrence' does not declare"),
        ({"seed": -1}, "the seed is -1"),
        ({"T": 2**63}, "the bound T is at most 2**48"),
        ({"seed": 1.5}, "the seed is 1.5"),
        ({"seed": "1"}, "the seed is '1'"),
        ({"start": {"s": 1}}, "there is no dim 's'"),
        ({"start": {"t": 1.5}}, "start: dim t cannot start at 1.5: it starts at an integer of 0 to 2**48"),
        ({"start": {"t": -1}}, "start: dim t cannot start at -1"),
        ({"start": {"t": 2**63}}, f"start: dim t cannot start at {2**63}"),
        ({"hosts": {"env": int}}, "the program has no host object 'env'"),
        ({"state": [1]}, "state is a dict of arrays by name, as of init(seed), got a list"),
        ({"state": {"w": [1, [2]]}}, "parameter 'w' is f32[4], got a list that makes no array: "),
        ({"start": [1]}, 'start is a dict of numbers by dim, as in start={"i": 40}, got a list'),
        ({"start": 3}, "start is a dict of numbers by dim"),
        ({"donate": "w"}, "donate is True or False, got 'w'"),
        ({"hosts": [int]}, "hosts is a dict of functions by name, each of which makes a host object, got a list"),
        ({"x": [[1.0, 2.0], [3.0]]}, "input 'x' is f32[T, 4], got a list that makes no array: "),
        ({"x": [["a"] * 4]}, "input 'x' is f32[T, 4], got an array of <U1: convert it"),
        ({"x": {"a": 1}}, "input 'x' is f32[T, 4], got an array of object: convert it"),
    ],
)
def test_arguments_that_do_not_fit(executable: tp.Executable, changes: dict, message: str) -> None:
    given = {name: value for name, value in {**arrays(), **changes}.items() if value is not None}
    with pytest.raises(CallError) as error:
        executable(**given)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state": [1]}, "state is a dict of arrays by name, as of init(), got a list"),
        ({"start": [1]}, 'start is a dict of numbers by dim, as in start={"i": 40}, got a list'),
        ({"start": {"t": 1.5}}, "start: dim t cannot start at 1.5"),
        ({"x": [[1.0, 2.0], [3.0]]}, "the input 'x' is f32, got a list that makes no array: "),
        ({"state": {"w": [1, [2]]}}, "'w' is f32[4], got a list that makes no array: "),
    ],
)
def test_arguments_that_do_not_fit_a_run(changes: dict, message: str) -> None:
    with pytest.raises(tp.ProgramError) as error:
        recurrence().run(**{**arrays(), **changes})
    assert message in str(error.value)


def test_numbers_of_a_list_do_not_wrap() -> None:
    @tp.program
    def small():
        tp.output("y", tp.input("x", tp.i8[2]) + 1)

    assert small().run(x=[3, -4])["y"].tolist() == tp.compile(small())(x=[3, -4])["y"].tolist() == [4, -3]
    with pytest.raises(CallError, match=r"input 'x' is i8\[2\], got numbers that are outside of int8"):
        tp.compile(small())(x=[3, 300])
    with pytest.raises(tp.ProgramError, match="the input 'x' is i8, got numbers that are outside of int8"):
        small().run(x=[3, 300])


def test_a_host_object_is_made_by_a_function() -> None:
    with pytest.raises(CallError, match="hosts: 'env' is a function that makes the object, got a int"):
        tp.compile(hosted())(T=2, hosts={"env": 3})


def test_what_cannot_be_compiled() -> None:
    with pytest.raises(CompileError, match="there is no target 'gpu'"):
        tp.compile(recurrence(), target="gpu")
    with pytest.raises(CompileError, match="cannot compile 3"):
        tp.compile(3)


def test_the_reference_target_is_an_executable_too(executable: tp.Executable) -> None:
    interpreted = tp.compile(recurrence(), target="reference")
    assert np.array_equal(interpreted(**arrays())["h"], executable(**arrays())["h"])
    assert "sdg.program" in interpreted.ir("sdg")


def test_a_precondition_names_its_reason() -> None:
    @tp.program
    def last():
        t, T = tp.dim("t")
        k = tp.input("k", tp.f32[()], over=t)
        tp.output("k", k[T - 1])

    with pytest.raises(CallError, match=r"needs .*T >= 1, got T = 0.*"):
        tp.compile(last())(k=np.zeros(0, np.float32))


STATED = '{preconditions = [#sdg.precondition<#sdg.cond<(T >= 4)>, "%y reads four steps">]}'


@pytest.mark.parametrize(
    ("head", "reason"),
    [("where T >= 4", ""), (f"attributes {STATED}", ": %y reads four steps")],
    ids=["declared", "needed"],
)
def test_bounds_are_what_a_program_declares_and_what_it_needs(head: str, reason: str) -> None:
    text = f"""
    sdg.program @stated dims(t: T) {head} {{
      %x = sdg.input "x" in (t) : tensor<f32>
      %y = sdg.neg %x[t] in (t) : (tensor<f32>) -> tensor<f32>
      sdg.output "y" %y[t] in (t) : tensor<f32>
    }}
    """
    executable = tp.compile(parse_module(own_context(), text, "stated.mlir"))
    assert executable(x=np.ones(4, np.float32))["y"].tolist() == [-1.0] * 4
    with pytest.raises(CallError, match=f"'stated' needs T >= 4, got T = 3{reason}$"):
        executable(x=np.ones(3, np.float32))


def test_torch_tensors(executable: tp.Executable) -> None:
    import torch

    result = executable(x=torch.ones(3, 4), y=torch.ones(3, 4))
    assert isinstance(result["h"], torch.Tensor)
    assert result["h"].tolist() == [[1.0] * 4, [3.0] * 4, [5.0] * 4]


def test_calls_from_several_threads(executable: tp.Executable) -> None:
    sizes = [1, 5, 50, 500] * 4
    expected = {n: executable(**arrays(n))["h"] for n in sizes}
    wrong: list[int] = []

    def call(n: int) -> None:
        for _ in range(20):
            if not np.array_equal(executable(**arrays(n))["h"], expected[n]):
                wrong.append(n)

    threads = [threading.Thread(target=call, args=(n,)) for n in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class Counter:
    """A host object that fails at a step."""

    def __init__(self, fail_at: int = -1) -> None:
        self.calls = 0
        self.fail_at = fail_at

    def step(self, value: np.ndarray) -> object:
        assert not value.flags.writeable
        self.calls += 1
        if self.calls - 1 == self.fail_at:
            raise ValueError("the environment broke")
        return np.float32(value + 1)


@tp.program
def hosted(fail_at=-1):
    t, _ = tp.dim("t")
    env = tp.host(lambda: Counter(fail_at), name="env")
    x = tp.tensor("x", tp.f32[()], over=t)
    x[0] = 0.0
    x[t + 1] = env.step(x, returns=tp.f32[()])
    tp.output("x", x)


def test_host_objects_are_made_anew_for_each_call() -> None:
    executable = tp.compile(hosted())
    for _ in range(2):
        assert executable(T=5)["x"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    made: list[Counter] = []
    executable(T=5, hosts={"env": lambda: made.append(Counter()) or made[-1]})
    assert made[0].calls == 4


def test_an_error_of_a_host_has_the_same_words_on_every_target() -> None:
    notes: list[str] = []
    wrong: list[str] = []
    for target in ("cpu", "reference"):
        with pytest.raises(ValueError, match="the environment broke") as raised:
            tp.compile(hosted(fail_at=3), target)(T=9)
        notes += raised.value.__notes__
        with pytest.raises(ExecutionError) as error:
            tp.compile(hosted(), target)(T=9, hosts={"env": lambda: type("Two", (), {"step": lambda _, x: (x, x)})()})
        wrong.append(str(error.value))
    assert notes[0] == notes[1]
    assert notes[0].startswith("raised by @env::@step, in sdg.host (")
    assert wrong[0] == wrong[1]
    assert ", in sdg.host (" in wrong[0]


def test_an_exception_in_a_host_is_raised_with_op_and_point() -> None:
    executable = tp.compile(hosted(fail_at=3))
    for _ in range(2):
        with pytest.raises(ValueError, match="the environment broke") as error:
            executable(T=9)
        (note,) = error.value.__notes__
        assert "@env::@step" in note
        assert "t = 3" in note
        assert "test_calls.py" in note
        assert executable(T=3)["x"].tolist() == [0.0, 1.0, 2.0]


def test_a_run_time_error_of_a_kernel_names_op_point_and_line() -> None:
    @tp.program
    def divide():
        t, _ = tp.dim("t")
        x = tp.input("x", tp.i64[4], over=t)
        table = tp.input("table", tp.f32[5, 2])
        tp.output("y", 12 // x)
        tp.output("rows", tp.take(table, x))

    executable = tp.compile(divide())
    x = np.array([[1, 2, 3, 4], [-1, 0, 1, 2]])
    table = np.zeros((5, 2), np.float32)
    with pytest.raises(ExecutionError, match=r"(?s)id -1 is outside of the 5 rows.*|integer division by zero.*t = 1"):
        executable(x=x, table=table)
    with pytest.raises(ExecutionError, match=r"(?s)integer division by zero.*test_calls.py.*t = 1"):
        executable(x=np.abs(x), table=table)
    for step in ([1, 2, 5, 3], [-7, 1, 2, 3], [4, 2**40, 4, 4], [1, 1, 1, -(2**63)]):
        (wrong,) = (number for number in step if not 0 <= number < 5)
        message = rf"(?s)id {wrong} is outside of the 5 rows, 0 to 4, in sdg.gather.*test_calls.py.*t = 1"
        with pytest.raises(ExecutionError, match=message):
            executable(x=np.array([x[0], step]), table=table)
    with pytest.raises(ExecutionError, match=r"id [567] is outside of the 5 rows"):
        executable(x=x[:1] + 3, table=table)
    assert executable(x=x[:1], table=table)["y"].tolist() == [[12, 6, 4, 3]]


@pytest.fixture
def interrupts():
    """SIGINT raises KeyboardInterrupt, as in a session at a terminal; parallel test workers ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("I", "T"), [(1, 1 << 25), (1 << 15, 1 << 10)])
def test_ctrl_c_stops_a_long_run(I: int, T: int, interrupts) -> None:
    slow = tp.compile(slow_program())
    timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        slow(I=I, T=T)
    assert time.perf_counter() - start < 5
    timer.join()
    assert slow(I=2, T=2).state["w"].shape == ()


class Stuck:
    """A host object that does not come back by itself."""

    def __init__(self, wait: Callable[[], None]) -> None:
        self.wait = wait

    def step(self, value: np.ndarray) -> np.ndarray:
        self.wait()
        return value


@pytest.mark.parametrize("where", ["in Python", "asleep", "in a call of its own"])
def test_ctrl_c_stops_a_host_that_does_not_come_back(where: str, interrupts) -> None:
    def works() -> None:
        end = time.perf_counter() + 30
        while time.perf_counter() < end:
            pass

    slow = tp.compile(slow_program())
    wait = {"in Python": works, "asleep": lambda: time.sleep(30), "in a call of its own": lambda: slow(I=1, T=1 << 25)}
    executable = tp.compile(hosted())
    timer = threading.Timer(0.2, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT])
    timer.start()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        executable(T=3, hosts={"env": lambda: Stuck(wait[where])})
    assert time.perf_counter() - start < 5
    timer.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert executable(T=3)["x"].tolist() == [0.0, 1.0, 2.0]


def slow_program():
    """A number carried over (i, t) that takes long and little memory."""

    @tp.program
    def slow():
        (i, _), (t, _) = tp.dims("i", "t")
        x = tp.parameter("x", tp.f32[256, 256], init=lambda generator, shape: np.ones(shape, np.float32))
        w = tp.state("w", tp.f32[()], init=lambda generator, shape: np.ones(shape, np.float32), steps=(i, t))
        w.next = w[i, t] * 0.5 + tp.einsum("ij,->", x, w[i, t])

    return slow()


def test_start_counts_on() -> None:
    @tp.program
    def draw():
        i, _ = tp.dim("i")
        w = tp.state("w", tp.f64[3], init=lambda generator, shape: np.zeros(shape), steps=i)
        w.next = w[i] * 0.5 + tp.random.normal(0.0, 1.0, tp.f64[3], over=i)

    executable = tp.compile(draw())
    whole = executable(I=100, state=executable.init(), seed=7).state["w"]
    first = executable(I=40, state=executable.init(), seed=7).state
    second = executable(I=60, state=first, seed=7, start={"i": 40}).state["w"]
    assert np.array_equal(whole, second)


@pytest.mark.slow
def test_triton_kernels_in_the_interpreter(executable: tp.Executable) -> None:
    interpreted = tp.compile(recurrence(), target="triton-interpret")
    assert np.array_equal(interpreted(**arrays(3))["h"], executable(**arrays(3))["h"])
    with pytest.raises(ValueError, match="the environment broke"):
        tp.compile(hosted(fail_at=1), target="triton-interpret")(T=3)


def test_a_host_may_keep_what_it_is_given() -> None:
    kept: list[np.ndarray] = []

    class Recorder:
        def look(self, row: np.ndarray) -> np.ndarray:
            kept.append(row)
            return row[0]

    @tp.program
    def recorded():
        t, _ = tp.dim("t")
        x = tp.input("x", tp.f32[3], over=t)
        tp.output("first", tp.host(Recorder).look(-x, returns=tp.f32[()]))

    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    tp.compile(recorded())(x=x)
    assert np.array_equal(np.stack(kept), -x)


def test_dims_as_numbers_count_on_from_the_start() -> None:
    @tp.program
    def counted():
        t, _ = tp.dim("t")
        tp.output("n", tp.input("x", tp.f32[()], over=t) + t)

    executable = tp.compile(counted())
    assert executable(x=np.zeros(3, np.float32), start={"t": 40})["n"].tolist() == [40.0, 41.0, 42.0]


class Script:
    """A host object whose results are those of a list, one a step."""

    def __init__(self, results: list[object]) -> None:
        self.results = iter(results)

    def step(self, value: np.ndarray) -> object:
        result = next(self.results)
        return result(value) if callable(result) else result


@tp.program
def scripted(shape=(), results=()):
    t, _ = tp.dim("t")
    x = tp.input("x", tp.f32[shape], over=t)
    y, ends = tp.host(lambda: Script(list(results)), name="env").step(x, returns=(tp.f32[shape], tp.bool[()]))
    tp.output("y", y)
    tp.output("ends", ends)


NUMBERS = [1.0, np.float32(2.0), np.float64(3.0), np.array(4.0), np.array(5.0, np.float32), True, np.int8(7), 8, 9.0]


def test_results_of_a_host_may_be_of_another_kind_in_each_step() -> None:
    results = [(number, bool(n % 2)) for n, number in enumerate(NUMBERS)]
    given = tp.compile(scripted(results=results))(x=np.zeros(len(results), np.float32))
    assert given["y"].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 7.0, 8.0, 9.0]
    assert given["ends"].tolist() == [bool(n % 2) for n in range(9)]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros(3, np.float32), "returned float32 of shape (3,) as result #0, expected float32 of shape (2,)"),
        (np.zeros(2, np.complex64), "returned complex64 of shape (2,) as result #0"),
        (np.float32(1.0), "returned float32 of shape () as result #0"),
        (1.0, "returned float64 of shape () as result #0"),
        (np.ma.masked_array([1.0, 2.0], mask=[True, False]), "returned an array of which elements are masked: give it"),
        ([[1.0], [2.0, 3.0]], "returned a list that makes no array: "),
    ],
)
def test_a_result_is_checked_though_those_before_did_fit(wrong: object, message: str) -> None:
    right = (np.ones(2, np.float32), False)
    results: list[object] = [right, right, [*right], (np.ones((4, 2), np.float64)[::2][1], False), (wrong, False)]
    for target in ("cpu", "reference"):
        with pytest.raises(ExecutionError) as error:
            tp.compile(scripted(shape=(2,), results=results), target)(x=np.zeros((5, 2), np.float32))
        assert message in str(error.value)
        assert "t = 4" in str(error.value)


def test_a_host_may_give_back_what_it_was_given_or_the_same_array_each_time() -> None:
    own = np.full(2, 9.0, np.float32)
    results: list[object] = [lambda x: (x, False), lambda x: (x[::-1], True), (own, False), (own, True)]
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    y = tp.compile(scripted(shape=(2,), results=results))(x=x)["y"]
    assert y.tolist() == [[0.0, 1.0], [3.0, 2.0], [9.0, 9.0], [9.0, 9.0]]


def test_a_call_that_failed_leaves_nothing_behind() -> None:
    class Breaks:
        def step(self, value: np.ndarray) -> np.ndarray:
            held.append(weakref.ref(value))
            raise ValueError("broken")

    def unmade() -> object:
        raise OSError("no such environment")

    executable, held = tp.compile(hosted()), list[weakref.ref]()
    for make, error in ((Breaks, ValueError), (unmade, OSError)):
        with pytest.raises(error):
            executable(T=4, hosts={"env": make})
    gc.collect()
    assert [reference() for reference in held] == [None]
    assert executable(T=3)["x"].tolist() == [0.0, 1.0, 2.0]


def test_copies_of_an_executable_are_itself_and_pickles_are_refused(executable: tp.Executable) -> None:
    assert copy.copy(executable) is executable
    assert copy.deepcopy({"model": executable})["model"] is executable
    with pytest.raises(TypeError, match=r"cannot be pickled: exe\.save\(path\) and tempo_ir\.load\(path\) take it to"):
        pickle.dumps(executable)
    result = executable(**arrays())
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert np.array_equal(again["h"], result["h"])
        assert again["h"].ctypes.data != result["h"].ctypes.data
        assert (again.extents, list(again.state)) == (result.extents, list(result.state))


def test_calls_that_end_at_once_leave_few_workspaces() -> None:
    executable, depth = tp.compile(hosted()), [0]

    class Deeper:
        def step(self, value: np.ndarray) -> np.ndarray:
            if depth[0] < 2 * MOST_WORKSPACES:
                depth[0] += 1
                assert executable(T=2, hosts={"env": Deeper})["x"].tolist() == [0.0, 1.0]
            return value + 1

    assert executable(T=2, hosts={"env": Deeper})["x"].tolist() == [0.0, 1.0]
    assert depth[0] == 2 * MOST_WORKSPACES
    assert isinstance(executable, Native)
    assert len(executable._workspaces._free) == MOST_WORKSPACES
