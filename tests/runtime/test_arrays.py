"""Arrays of the caller: nothing is copied where it need not be, and memory that somebody has is nobody else's."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tempo_ir as tp
from tempo_ir.runtime.errors import CallError
from tempo_ir.runtime.memory import address_of
from tempo_ir.runtime.outputs import MOST_BLOCKS, MOST_KEPT
from tempo_ir.runtime.tensors import as_array, outline_of
from tempo_ir.tools.parsing import own_context, parse_module


class Exporter:
    """An array of another library, of which numpy knows no more than `__dlpack__`."""

    def __init__(self, array: np.ndarray):
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


@tp.program
def doubled(width: int = 4):
    t, _ = tp.dim("t")
    tp.output("y", tp.input("x", tp.f32[width], over=t) * 2.0)


@pytest.fixture(scope="module")
def executable() -> tp.Executable:
    return tp.compile(doubled())


def rows(start: float, count: int = 6) -> np.ndarray:
    return np.arange(start, start + count * 4, dtype=np.float32).reshape(count, 4)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.bool_, np.float16])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 5)])
def test_where_an_array_is(dtype: type, shape: tuple[int, ...]) -> None:
    array = np.zeros(shape, dtype)
    assert address_of(array) == array.ctypes.data
    if shape == (3,):
        assert address_of(array[1:]) == array[1:].ctypes.data


# ---- outputs ----

HOLDERS: dict[str, Callable[[np.ndarray], Any]] = {
    "itself": lambda y: y,
    "a view": lambda y: y[1:3],
    "a view of a view": lambda y: y.T[2:][..., 1:],
    "of another type": lambda y: y.view(np.int32),
    "a memoryview": lambda y: y.data,
    "a tensor": torch.from_numpy,
    "a tensor of dlpack": torch.from_dlpack,
    "an array of dlpack": np.from_dlpack,
    "a capsule": lambda y: y.__dlpack__(),
    "an iterator": lambda y: y.flat,
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_somebody_holds_stays(executable: tp.Executable, holder: str) -> None:
    y = executable(x=rows(1.0))["y"]
    address, held = y.ctypes.data, HOLDERS[holder](y)
    del y
    taken = [executable(x=rows(100.0))["y"] for _ in range(2 * MOST_BLOCKS)]
    assert address not in [other.ctypes.data for other in taken]
    if isinstance(held, np.ndarray | torch.Tensor) and holder != "of another type":
        assert float(held.max()) <= 48.0


def test_what_nobody_holds_is_used_again(executable: tp.Executable) -> None:
    seen = set[int]()
    for n in range(20):
        y = executable(x=rows(float(n)))["y"]
        assert np.array_equal(y, 2 * rows(float(n)))
        seen.add(y.ctypes.data)
    assert len(seen) <= MOST_BLOCKS


def test_a_program_that_is_gone_leaves_its_results() -> None:
    one = tp.compile(doubled())
    y = one(x=rows(3.0))["y"]
    del one
    gc.collect()
    assert np.array_equal(y, 2 * rows(3.0))


NARROW = """
sdg.program @narrow dims(t: T) {
  %x = sdg.input "x" in (t) : tensor<f32>
  %y = sdg.neg %x[t] in (t: 1 to T) : (tensor<f32>) -> tensor<f32>
  sdg.output "y" %y[t] in (t: 1 to T) : tensor<f32>
}
"""


def test_rows_that_nothing_writes_are_zero_in_memory_that_is_used_again() -> None:
    executable = tp.compile(parse_module(own_context(), NARROW, "narrow.mlir"))
    x = np.ones(5, np.float32)
    for _ in range(2 * MOST_BLOCKS):
        y = executable(x=x)["y"]
        assert y.tolist() == [0.0, -1.0, -1.0, -1.0, -1.0]
        y[:] = 7.0


def test_large_outputs_are_given_away_for_good() -> None:
    @tp.program
    def large():
        tp.output("y", tp.input("x", tp.f32[MOST_KEPT // 4 + 1]) + 1.0)

    executable, x = tp.compile(large()), np.zeros(MOST_KEPT // 4 + 1, np.float32)
    kept = [executable(x=x + n)["y"] for n in range(3)]
    assert [float(y[-1]) for y in kept] == [1.0, 2.0, 3.0]


def test_states_go_round_in_two_pieces_of_memory() -> None:
    @tp.program
    def counted():
        i, _ = tp.dim("i")
        w = tp.state("w", tp.f32[3], init=lambda generator, shape: np.zeros(shape, np.float32), steps=i)
        w.next = w[i] + 1.0

    executable = tp.compile(counted())
    first = state = executable.init()
    seen = set[int]()
    for _ in range(10):
        state = executable(I=2, state=state).state
        seen.add(state["w"].ctypes.data)
    assert state["w"].tolist() == [20.0] * 3
    assert first["w"].tolist() == [0.0] * 3
    assert len(seen) == 2


def test_results_of_calls_at_the_same_time_are_apart(executable: tp.Executable) -> None:
    wrong: list[float] = []

    def call(start: float) -> None:
        kept = [executable(x=rows(start + n))["y"] for n in range(50)]
        wrong.extend(start + n for n, y in enumerate(kept) if not np.array_equal(y, 2 * rows(start + n)))

    threads = [threading.Thread(target=call, args=(1000.0 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---- dlpack ----


def test_what_has_dlpack_is_taken_where_it_lies(executable: tp.Executable) -> None:
    x = rows(1.0)
    assert np.shares_memory(as_array(Exporter(x)), x)
    assert np.shares_memory(as_array(torch.from_numpy(x)), x)
    assert np.shares_memory(as_array(torch.from_numpy(x).requires_grad_()), x)
    y = executable(x=Exporter(x))["y"]
    assert type(y) is np.ndarray
    assert np.array_equal(y, 2 * x)
    assert np.array_equal(executable(x=Exporter(x[:, ::-1]))["y"], 2 * x[:, ::-1])


def test_what_has_dlpack_is_checked_as_an_array(executable: tp.Executable) -> None:
    with pytest.raises(CallError, match=r"input 'x' is f32\[T, 4\], got an array of float64: convert it"):
        executable(x=Exporter(rows(0.0).astype(np.float64)))
    with pytest.raises(CallError, match=r"input 'x' is f32\[T, 4\], got an array of shape \(6, 3\)"):
        executable(x=Exporter(rows(0.0)[:, :3]))


def test_what_is_on_another_device_is_refused(executable: tp.Executable) -> None:
    class Elsewhere(Exporter):
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

        def __dlpack__(self, **options: Any) -> Any:
            raise BufferError("it is not here")

        def __array__(self, *options: Any) -> Any:
            raise TypeError("no implicit copy to the host")

    with pytest.raises(CallError, match=r"input 'x' .*Elsewhere that makes no array: no implicit copy"):
        executable(x=Elsewhere(rows(0.0)))


def test_results_are_taken_by_others_where_they_lie(executable: tp.Executable) -> None:
    y = executable(x=rows(1.0))["y"]
    assert torch.from_dlpack(y).data_ptr() == y.ctypes.data
    assert np.shares_memory(np.from_dlpack(y), y)
    tensor = executable(x=torch.from_numpy(rows(1.0)))["y"]
    assert np.shares_memory(np.from_dlpack(tensor), tensor.numpy())


def test_a_donated_tensor_is_overwritten_where_it_lies() -> None:
    @tp.program
    def counted():
        i, _ = tp.dim("i")
        w = tp.state("w", tp.f32[3], init=lambda generator, shape: np.zeros(shape, np.float32), steps=i)
        w.next = w[i] + 1.0

    executable, w = tp.compile(counted()), torch.zeros(3)
    after = executable(I=2, state={"w": w}, donate=True).state["w"]
    assert after.data_ptr() == w.data_ptr()
    assert w.tolist() == [2.0] * 3


@pytest.mark.parametrize("size", [1, 5, 64, 1000])
def test_a_donated_state_is_read_by_all_before_it_is_overwritten(size: int) -> None:
    """One step, so that the kernel reads what was given, and writes there."""

    @tp.program
    def descend():
        i, _ = tp.dim("i", 1)
        g = tp.input("g", tp.f32[size])
        m, w = (tp.state(name, tp.f32[size], init=1.0, steps=i) for name in "mw")
        m.next = m * 0.5
        w.next = w - m.next * g
        tp.output("sum", m.next.sum())

    executable, g = tp.compile(descend()), np.linspace(-1, 1, size).astype(np.float32)
    state = {name: np.linspace(1, 2, size).astype(np.float32) for name in "mw"}
    expected = executable(g=g, state=state)
    after = executable(g=g, state=state, donate=True)
    assert after.state["w"] is state["w"]
    for name in "mw":
        np.testing.assert_array_equal(after.state[name], expected.state[name])


# ---- threads ----


def test_other_threads_go_on_while_native_code_runs() -> None:
    @tp.program
    def slow():
        i, _ = tp.dim("i")
        x = tp.parameter("x", tp.f32[64, 64], init=lambda generator, shape: np.ones(shape, np.float32))
        w = tp.state("w", tp.f32[64], init=lambda generator, shape: np.ones(shape, np.float32), steps=i)
        w.next = tp.tanh(x @ w[i])

    executable = tp.compile(slow())
    state, count = executable.init(), 1000
    begin = time.perf_counter()
    executable(I=count, state=state)
    count = int(count * max(1.0, 0.3 / (time.perf_counter() - begin)))
    times: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            times.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.perf_counter()
    executable(I=count, state=state)
    end = time.perf_counter()
    done.set()
    thread.join()
    middle = [at for at in times if begin + 0.1 * (end - begin) < at < end - 0.1 * (end - begin)]
    assert len(middle) >= 10


TENSORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "on meta": lambda x: x.to("meta"),
    "sparse": lambda x: x.to_sparse(),
    "of 8-bit floats": lambda x: x.to(torch.float8_e4m3fn),
    "conjugated": lambda x: x.to(torch.complex64).conj(),
    "nested": lambda x: torch.nested.nested_tensor([x]),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("kind", TENSORS)
def test_tensors_that_make_no_array_are_named(executable: tp.Executable, kind: str) -> None:
    tensor = TENSORS[kind](torch.ones(2, 4))
    with pytest.raises(
        CallError, match=r"input 'x' is f32\[T, 4\], got a tensor of .* makes no array: .*test_arrays.py"
    ):
        executable(x=tensor)
    if kind in ("on meta", "sparse", "nested"):  # where tensors stay tensors they are not asked for their elements
        with pytest.raises(ValueError, match="do not lie in memory"):
            outline_of(tensor)


def test_tensors_under_vmap_are_named(executable: tp.Executable) -> None:
    with pytest.raises(CallError, match=r"input 'x'.* makes no array"):
        torch.func.vmap(lambda x: executable(x=x)["y"])(torch.ones(3, 2, 4))


def test_a_mask_is_not_lost(executable: tp.Executable) -> None:
    x = np.ma.masked_array(rows(1.0), mask=False)
    assert np.array_equal(executable(x=x)["y"], 2 * rows(1.0))
    x[0, 1] = np.ma.masked
    with pytest.raises(CallError, match=r"input 'x'.* elements are masked: give it filled, as x\.filled\(0\)"):
        executable(x=x)
