# pyright: basic
"""What drivers call beside kernels: bound kernels, rows of buffers, host objects, run-time errors."""

from functools import partial

import numpy as np
import torch


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
