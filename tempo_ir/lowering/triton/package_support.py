# pyright: basic
"""What drivers call beside kernels: bound kernels, memory, rows of buffers, host objects, run-time errors."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

ALIGNMENT = 256
"""Bytes: buffers begin at multiples of it."""


class ProgramError(RuntimeError):
    """The program asked for something that has no value."""

    def __init__(self, message, point=None):
        self.message = message
        self.point = dict(point or {})
        at = ", ".join(f"{name} = {coordinate(value)}" for name, value in self.point.items())
        super().__init__(f"{message} at {at}" if at else message)


def coordinate(value):
    """A number; `0 to 8` for the points that one call of a host makes."""
    return f"{value.start} to {value.stop}" if isinstance(value, range) else value


def check(status, messages, point):
    """Raise the error whose number, with the value that it is about, a kernel has left."""
    number = int(status[0])
    if number:
        raise ProgramError(messages[number - 1].replace("{value}", str(int(status[number]))), point)


class Bound:
    """A kernel that is compiled for a device when it is first launched there, and launched without a search after.

    It is the function that the module of its file is named after, and the file says with how many warps and stages.
    Pointers are multiples of 16 bytes, and the launches of a program agree on which scalars are multiples of 16, so
    that the first launch stands for all. In Triton's interpreter nothing is compiled.
    """

    def __init__(self, module):
        self.kernel = getattr(module, module.__name__.rpartition(".")[2])
        self.options = {"num_warps": module.num_warps, "num_stages": module.num_stages}
        self.compiled = {}

    def __getitem__(self, grid):
        return partial(self.launch, (*grid, 1, 1)[:3])

    def launch(self, grid, *arguments):
        """Launch programs on the device of the first argument."""
        device = arguments[0].device
        compiled = self.compiled.get(device)
        if compiled is None:
            self.compiled[device] = self.kernel[grid](*arguments, **self.options)
        else:
            compiled[grid](*arguments)


@dataclass(frozen=True)
class Buffer:
    """Memory of a call: shape, type, from which to which place of the program it is needed, whether the host has it."""

    shape: tuple
    dtype: torch.dtype
    first: int
    last: int
    host: bool = False

    @property
    def bytes(self):
        """The bytes that are kept for it, a multiple of `ALIGNMENT`."""
        return -(-math.prod(self.shape) * self.dtype.itemsize // ALIGNMENT) * ALIGNMENT

    def meets(self, other):
        """Whether both are needed at some place."""
        return self.first <= other.last and other.first <= self.last

    def cut(self, piece, offset):
        """The tensor that lies in a piece of memory from an offset on."""
        size = math.prod(self.shape) * self.dtype.itemsize
        return piece[offset : offset + size].view(self.dtype).view(self.shape)


def offsets(buffers):
    """Where buffers lie in one piece of memory, and its size: greatest first, each at the lowest place that is free."""
    found, size = {}, 0
    for name, buffer in sorted(buffers.items(), key=lambda item: -item[1].bytes):
        offset = 0
        for low, other in sorted((low, other) for other, low in found.items() if buffers[other].meets(buffer)):
            if offset + buffer.bytes <= low:
                break
            offset = max(offset, low + buffers[other].bytes)
        found[name], size = offset, max(size, offset + buffer.bytes)
    return found, size


def arena_bytes(buffers):
    """How much memory of the device buffers take together."""
    return offsets({name: buffer for name, buffer in buffers.items() if not buffer.host})[1]


class Memory:
    """Buffers cut from one piece of memory of the device, and those of the host from a pinned one of its own."""

    def __init__(self, buffers, device):
        self.buffers, self.device, self.pieces, found = buffers, device, [], {}
        for host in (False, True):
            some = {name: buffer for name, buffer in buffers.items() if buffer.host == host}
            places, size = offsets(some)
            where = {"device": "cpu", "pin_memory": is_gpu(device)} if host else {"device": device}
            piece = torch.empty(size, dtype=torch.uint8, **where)
            self.pieces.append(piece)
            found |= {name: buffer.cut(piece, places[name]) for name, buffer in some.items()}
        self.tensors = tuple(found[name] for name in buffers)


class Arena:
    """The memory of calls: what one has given back serves the next with the same buffers on the same stream."""

    def __init__(self):
        self.free = {}

    def take(self, buffers, device):
        """Memory for the buffers; what it holds is not known."""
        memory = self.free.pop(place_of(device), None)
        if memory is not None and memory.buffers == buffers:
            return memory
        del memory  # before there is more
        return Memory(buffers, device)

    def give(self, memory):
        """Give memory back that no call needs any more but those whose launches the stream has already."""
        self.free[place_of(memory.device)] = memory


def is_gpu(device):
    """Whether a device has streams."""
    return device.type == "cuda"


def place_of(device):
    """The device and its current stream, where work is done in order."""
    return device, torch.cuda.current_stream(device).cuda_stream if is_gpu(device) else None


class Copies:
    """Copies of rows between the memory of a call on the device and with the host, on a stream of their own.

    A copy begins when all that was launched before it is done. Whoever overwrites a row of the device that a copy reads
    or writes, or reads one that it writes, waits for it; copies follow each other.
    """

    def __init__(self, memory):
        self.device, self.stream, self.done = memory.device, None, {}
        if is_gpu(self.device):
            self.stream = torch.cuda.Stream(self.device)
            memory.pieces[0].record_stream(self.stream)

    def offload(self, source, target):
        """Copy rows of the device to the host."""
        self.copy(source, target, source)

    def fetch(self, source, target):
        """Copy rows of the host to the device."""
        self.copy(source, target, target)

    def copy(self, source, target, row):
        """Copy rows; `row` are those of the device."""
        if self.stream is None:
            target.write(source.read())
            return
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            target.read().copy_(source.read(), non_blocking=True)
            done = torch.cuda.Event()
            done.record(self.stream)
        self.done.setdefault(row.flat.data_ptr(), {})[row.offset] = done

    def wait(self, buffer, place=None):
        """Let what is launched from now on come after the copy of the row at a place of a buffer, or of all rows."""
        rows = self.done.get(buffer.data_ptr(), {})
        for known in [*rows] if place is None else [place]:
            if known in rows:
                torch.cuda.current_stream(self.device).wait_event(rows.pop(known))

    def finish(self):
        """Let what is launched from now on come after all copies."""
        if self.stream is not None:
            torch.cuda.current_stream(self.device).wait_stream(self.stream)


class Steps:
    """Runs functions that launch kernels: as they are at first, which compiles the kernels, then as CUDA graphs.

    A function is told the guards of a step; there is a graph for each of their combinations. All else that changes from
    step to step kernels read from memory, so that a graph does in each step what the function would do.
    """

    def __init__(self, device, graphs=None):
        self.repeats = is_gpu(device) if graphs is None else graphs
        self.graphs = {}

    def run(self, function, *guards):
        """Do what a function does."""
        known = (function, guards) in self.graphs
        if not known or not self.repeats:
            self.graphs[function, guards] = None
            function(*guards)
            return
        if self.graphs[function, guards] is None:
            self.graphs[function, guards] = graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                function(*guards)
        self.graphs[function, guards].replay()


def placed(array):
    """An array as kernels read it: row after row, from an address that is a multiple of 16."""
    whole = array.contiguous()
    return whole if whole.data_ptr() % 16 == 0 else whole.clone()


class Rows:
    """Some rows of a buffer; an axis in `wraps` is a window of a ring: its first element, and the slots."""

    def __init__(self, buffer, offset, shape, strides, wraps=None):
        self.flat, self.offset, self.shape, self.strides, self.wraps = (
            buffer.view(-1),
            offset,
            shape,
            strides,
            wraps or {},
        )

    def positions(self):
        """The position of each element in the buffer."""
        total = torch.full(self.shape, self.offset, dtype=torch.int64, device=self.flat.device)
        for axis, (extent, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            place = torch.arange(extent, device=self.flat.device)
            if axis in self.wraps:
                first, slots = self.wraps[axis]
                place = (place + first) % slots
            total += (place * stride).view([-1 if other == axis else 1 for other in range(len(self.shape))])
        return total

    def read(self):
        """The elements, as a tensor."""
        if self.wraps or 0 in self.shape:
            return self.flat[self.positions()]
        return torch.as_strided(self.flat, self.shape, self.strides, self.flat.storage_offset() + self.offset)

    def write(self, values):
        """Replace the elements."""
        if self.wraps:
            self.flat[self.positions()] = values.to(self.flat.device)
        elif 0 not in self.shape:
            self.read().copy_(values)


def sort(x, axis, descending):
    """The elements in order along an axis; NaN counts as greatest."""
    return torch.sort(x, dim=axis, descending=descending, stable=True).values


def argsort(x, axis, descending):
    """The positions that put the elements in order along an axis."""
    return torch.sort(x, dim=axis, descending=descending, stable=True).indices


def scatter_add(ids, updates, axis, shape, where, point):
    """Zeros to which each update is added at its id; numbers of 16 bits are added in 32."""
    rows = shape[axis]
    if ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= rows):
        raise ProgramError(f"an id is outside of the {rows} rows, 0 to {rows - 1}, in {where}", point)
    narrow = updates.dtype in (torch.float16, torch.bfloat16)
    total = torch.zeros(shape, dtype=torch.float32 if narrow else updates.dtype, device=updates.device)
    inner = torch.movedim(updates, tuple(range(axis, axis + ids.dim())), tuple(range(ids.dim())))
    torch.movedim(total, axis, 0).index_put_((ids,), inner.to(total.dtype), accumulate=True)
    return total


def as_array(tensor):
    """A tensor as a numpy array that nobody may write into."""
    plain = tensor.detach().cpu().contiguous()
    if plain.dtype == torch.bfloat16:
        import ml_dtypes

        array = plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    else:
        array = plain.numpy()
    array.flags.writeable = False
    return array


def as_tensor(array):
    """A numpy array as a tensor."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(np.array(array).view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))


def make_host(hosts, name):
    """A new host object, from the functions that make them by name."""
    if hosts is None or name not in hosts:
        raise ProgramError(f"there is no host object @{name}: pass hosts={{'{name}': function that makes it}}")
    return hosts[name]()


def call_host(host, name, reads, writes, where, point):
    """Call a method of a host object (`name` is that of the object and its own) on rows, and write what it returns."""
    callee = "@{}::@{}".format(*name)
    arguments = [as_array(rows.read().clone()) for rows in reads]
    try:
        returned = getattr(host, name[1])(*arguments)
    except Exception as error:
        error.add_note(str(ProgramError(f"raised by {callee}, in {where}", point)))
        raise
    results = (returned,) if len(writes) == 1 else () if returned is None else tuple(returned)
    if len(results) != len(writes):
        raise ProgramError(f"{callee} returned {len(results)} values, expected {len(writes)}, in {where}", point)
    for number, (rows, result) in enumerate(zip(writes, results, strict=True)):
        array, expected = np.asarray(result), as_array(rows.flat[:0]).dtype
        if array.shape != tuple(rows.shape) or not np.can_cast(array.dtype, expected, "same_kind"):
            got = f"returned {array.dtype} of shape {array.shape} as result #{number}"
            raise ProgramError(f"{callee} {got}, expected {expected} of shape {tuple(rows.shape)}, in {where}", point)
        rows.write(as_tensor(array.astype(expected)))
