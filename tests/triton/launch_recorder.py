"""Runs a package by Triton's own launch path without a GPU: kernels are compiled and bound, what happens is recorded.

python launch_recorder.py DIRECTORY PROGRAM '{"x": [5, 4]}' '{"T": 5, "graphs": true}' prints JSON: `events`, in order,
each `["launch", kernel, grid, arguments, stream, graph, table]` with the addresses of tensors, the number of the graph
that it was repeated by, and what the table of scalars held then, or `["host", object, method]`; `outputs` and `arrays`,
the addresses of what was given and taken; `compiled`, by kernel how often it was compiled; `dispatched`, how many
launches Triton's dispatch of arguments was asked for; `captured`, how many graphs there are; `memory`, where buffers of
the call lie. A shape that ends in a dtype, `[5, "int64"]`, is of it.

With `"streams": true` among the bounds the device has streams besides, and events are also `["copy", source, target,
bytes, stream]`, `["record", event, stream]` and `["wait", event, stream]`; `pinned` are the pieces of memory that are.

Nothing is computed but the scalars of steps: a kernel whose first parameter is their table runs as Python.
"""

import contextlib
import ctypes
import importlib
import json
import sys
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget

EVENTS = []
STREAM = 7


class Utilities:
    """What Triton asks of a device."""

    def load_binary(self, name, binary, shared, device):
        return 1, 2, 32, 0, 1024

    def unload_module(self, module):
        pass

    def get_device_properties(self, device):
        return {"max_shared_mem": 232448, "multiprocessor_count": 132, "max_num_regs": 65536, "warpSize": 32}


class Cell:
    """A place in a table of i64, for kernels that run as Python."""

    def __init__(self, address):
        self.address = address

    def __add__(self, number):
        return Cell(self.address + 8 * number)

    @property
    def number(self):
        return ctypes.c_int64.from_address(self.address)


class Number(int):
    """An integer with the method by which kernels give it 64 bits."""

    def to(self, kind):
        return self


class Language:
    """What of `triton.language` kernels of scalars use."""

    int64 = "int64"

    @staticmethod
    def load(cell):
        return cell.number.value

    @staticmethod
    def store(cell, value):
        cell.number.value = value

    @staticmethod
    def full(shape, value, kind):
        return value

    maximum, minimum = staticmethod(max), staticmethod(min)


FLOORED = {
    "floor_divide": lambda a, b: a // b if b else 0,
    "floor_modulo": lambda a, b: a % b if b else 0,
}


class Graph:
    """A graph: launches that are repeated."""

    current = None
    count = 0

    def __init__(self):
        self.launches = []
        self.number = Graph.count
        Graph.count += 1

    def replay(self):
        for launch in self.launches:
            launch(self.number)

    @staticmethod
    @contextlib.contextmanager
    def captured(graph, capture_error_mode):
        """While launches go into a graph."""
        Graph.current = graph
        yield
        Graph.current = None


class Stream:
    """A stream, which says what it waits for."""

    count = STREAM

    def __init__(self, device=None):
        self.cuda_stream, Stream.count = Stream.count, Stream.count + 1

    def wait_event(self, event):
        EVENTS.append(["wait", event.number, self.cuda_stream])

    def wait_stream(self, other):
        event = Event()
        event.record(other)
        self.wait_event(event)

    @staticmethod
    @contextlib.contextmanager
    def entered(stream):
        """While a stream is the current one."""
        Stream.current, outside = stream, Stream.current
        yield
        Stream.current = outside


Stream.current = Stream()


class Event:
    """What is done on a stream where it is recorded."""

    count = 0

    def __init__(self):
        self.number, Event.count = Event.count, Event.count + 1

    def record(self, stream):
        EVENTS.append(["record", self.number, stream.cuda_stream])


def with_streams(support):
    """Give torch's CPU streams, events and pinned memory; gives the pieces of memory that are pinned."""
    pinned, empty, copied = [], torch.empty, torch.Tensor.copy_

    def empty_pinned(*arguments, pin_memory=False, **options):
        piece = empty(*arguments, **options)
        if pin_memory:
            pinned.append([piece.data_ptr(), piece.numel()])
        return piece

    def copy(self, source, non_blocking=False):
        if Stream.current.cuda_stream != STREAM:
            assert non_blocking
            size = source.numel() * source.element_size()
            EVENTS.append(["copy", source.data_ptr(), self.data_ptr(), size, Stream.current.cuda_stream])
        return copied(self, source)

    torch.empty, torch.Tensor.copy_ = empty_pinned, copy
    torch.Tensor.record_stream = lambda self, stream: None
    torch.cuda.Stream, torch.cuda.Event, torch.cuda.stream = Stream, Event, Stream.entered
    torch.cuda.current_stream = lambda device=None: Stream.current
    support.is_gpu = lambda device: True
    return pinned


class Launcher:
    """Records launches."""

    def __init__(self, source, metadata):
        self.name = metadata.name
        self.parameters = [*source.fn.arg_names]
        text = source.fn.src
        self.python = None
        if self.parameters[0] == "scalars_ptr":
            names = {"tl": Language, **FLOORED}
            exec("from __future__ import annotations\n" + text, names)  # what the package itself says
            self.python = names[source.fn.__name__]

    def __call__(self, x, y, z, stream, function, metadata, launch_metadata, enter, leave, *arguments):
        if Graph.current is not None:
            Graph.current.launches.append(lambda graph: self.launch([x, y, z], stream, graph, arguments))
        else:
            self.launch([x, y, z], stream, None, arguments)

    def launch(self, grid, stream, graph, arguments):
        """What the device does."""
        told = [a.data_ptr() if isinstance(a, torch.Tensor) else a for a in arguments]
        table = None
        if "scalars_ptr" in self.parameters:
            table = arguments[self.parameters.index("scalars_ptr")]
        if self.python is not None:
            self.python(Cell(told[0]), *map(Number, told[1:]))
        EVENTS.append(["launch", self.name, grid, told, stream, graph, None if table is None else table.tolist()])


class Driver:
    """A device of compute capability 9.0 that computes nothing."""

    utils, launcher_cls = Utilities(), Launcher

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return Stream.current.cuda_stream

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self):
        return torch.device("cpu")

    def get_device_interface(self):
        return torch.cpu

    @staticmethod
    def is_active():
        return True

    def map_python_to_cpp_type(self, kind):
        return kind


class Host:
    """A host object that records its calls and gives zeros of the shapes that the driver has rows for."""

    def __init__(self, name):
        self.name = name


def recorded_call(host, name, reads, writes, where, point):
    """In the place of `call_host`: whatever is returned is written."""
    EVENTS.append(["host", *name])


def memory_of(driver):
    """Where the buffers of the call lay, by name."""
    kept = driver.arena.free.values() if hasattr(driver, "arena") else ()
    return {n: t.data_ptr() for memory in kept for n, t in zip(memory.buffers, memory.tensors, strict=True)}


def tensor(shape):
    """Ones of a shape."""
    if shape and isinstance(shape[-1], str):
        return torch.ones(shape[:-1], dtype=getattr(torch, shape[-1]))
    return torch.ones(shape)


def main():
    triton.runtime.driver.set_active(Driver())
    torch.cuda.CUDAGraph, torch.cuda.graph = Graph, Graph.captured
    directory, program = Path(sys.argv[1]), sys.argv[2]
    shapes, bounds = json.loads(sys.argv[3]), json.loads(sys.argv[4])
    sys.path.insert(0, str(directory.parent))
    sys.modules["tempo_ir"] = sys.modules["xdsl"] = None  # pyright: ignore[reportArgumentType]
    package = importlib.import_module(directory.name)
    driver = importlib.import_module(f"{directory.name}.driver")
    if hasattr(driver, "call_host"):
        driver.call_host = recorded_call
    if hasattr(driver, "make_host"):
        driver.make_host = lambda hosts, name: Host(name)
    dispatched, run = [], triton.runtime.jit.JITFunction.run

    def dispatch(self, *arguments, **options):
        dispatched.append(self.__name__)
        return run(self, *arguments, **options)

    triton.runtime.jit.JITFunction.run = dispatch
    support = importlib.import_module(f"{directory.name}.support")
    pinned = with_streams(support) if bounds.pop("streams", False) else []
    arrays = {name: tensor(shape) for name, shape in shapes.items()}
    outputs = getattr(package, program)(arrays, **bounds)
    launched = {event[1] for event in EVENTS if event[0] == "launch"}
    kernels = {name: getattr(driver, name).kernel for name in launched}
    result = {
        "events": EVENTS,
        "arrays": {name: array.data_ptr() for name, array in arrays.items()},
        "outputs": {name: array.data_ptr() for name, array in outputs.items()},
        "compiled": {name: len(kernel.device_caches[0][0]) for name, kernel in kernels.items()},
        "dispatched": len(dispatched),
        "captured": Graph.count,
        "memory": memory_of(driver),
        "pinned": pinned,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
