"""A native program as bytes: machine code, and what a call needs to know beside it.

    magic | SHA-256 of the rest | length of the header | header, as JSON | objects

What Python runs is kept as the text of a loop program without loops: the buffers that it touches, then its operations
in order, with their places in the user's program. No pass runs to make a program of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from tempo_ir.dialects import get_all_dialects, loop
from tempo_ir.lowering.kernels.layout import Layout, most_of
from tempo_ir.lowering.llvm.host import Site
from tempo_ir.lowering.storage.intervals import Interval
from tempo_ir.reference.dtypes import numpy_dtype
from tempo_ir.runtime.memory import Buffer

KIND = b"tempo_ir program "
MAGIC = KIND + b"3\n"
DIGEST_BYTES, LENGTH_BYTES = 32, 8


class Damaged(Exception):
    """Bytes that are no packed program, or not all of one."""


class OtherFormat(Damaged):
    """A packed program in the form of another version."""


@dataclass(frozen=True)
class Packed:
    """A header of numbers and texts, and objects of machine code."""

    header: Mapping[str, Any]
    objects: tuple[bytes, ...]

    def to_bytes(self) -> bytes:
        """The whole as bytes."""
        header = json.dumps({**self.header, "objects": [len(code) for code in self.objects]}).encode()
        payload = b"".join([len(header).to_bytes(LENGTH_BYTES, "little"), header, *self.objects])
        return MAGIC + hashlib.sha256(payload).digest() + payload

    @staticmethod
    def of_bytes(data: bytes) -> Packed:
        """What `to_bytes` made. Raises Damaged."""
        if data.startswith(KIND) and not data.startswith(MAGIC):
            raise OtherFormat
        start = len(MAGIC) + DIGEST_BYTES
        digest, payload = data[len(MAGIC) : start], data[start:]
        if not data.startswith(MAGIC) or hashlib.sha256(payload).digest() != digest:
            raise Damaged
        end = LENGTH_BYTES + int.from_bytes(payload[:LENGTH_BYTES], "little")
        header = json.loads(payload[LENGTH_BYTES:end])
        objects: list[bytes] = []
        for size in header["objects"]:
            objects.append(payload[end : end + size])
            end += size
        return Packed(header, tuple(objects))


# ---- what is called ----


def packed_calls(program: loop.ProgramOp, buffers: Sequence[Buffer], sites: Iterable[Site]) -> dict[str, Any]:
    """What `unpacked_calls` makes buffers and sites of again."""
    sites = list(sites)
    types = list(dict.fromkeys(buffer.layout.type for buffer in buffers))
    numbers = {buffer.value: number for number, buffer in enumerate(buffers)}
    touched = sorted({numbers[operand] for site in sites for operand in site.op.operands})
    return {
        "types": [str(kind) for kind in types],
        "buffers": [_packed_buffer(buffer, types.index(buffer.layout.type)) for buffer in buffers],
        "touched": touched,
        "operations": text_with_places(_operations(program, [buffers[n].value for n in touched], sites)),
        "iterators": [site.iterators for site in sites],
    }


def _packed_buffer(buffer: Buffer, kind: int) -> list[Any]:
    live = (buffer.live.first, buffer.live.last)
    return [kind, buffer.owner, buffer.key, *live, buffer.zeroed, buffer.donated, buffer.host]


def _operations(program: loop.ProgramOp, touched: Sequence[SSAValue], sites: Iterable[Site]) -> ModuleOp:
    body = Block()
    copies: dict[SSAValue, SSAValue] = {}
    for buffer in touched:
        assert isinstance(buffer.owner, Operation)
        made = buffer.owner.clone()
        copies[buffer] = made.results[0]
        body.add_op(made)
    body.add_ops(_without_body(site.op, copies) for site in sites)
    return ModuleOp([loop.ProgramOp(program.sym_name.data, program.space, Region(body))])


def _without_body(op: Operation, copies: dict[SSAValue, SSAValue]) -> Operation:
    """A copy of an operation that Python runs; of a loop, which it hears of once it has ended, without the body."""
    if not isinstance(op, loop.ForOp):
        return op.clone(copies)
    until = None if op.until is None else (copies[op.until[0]], op.until[1])
    made = loop.ForOp(op.iterator, op.lower, op.upper, step=op.step, down=op.down, until=until, gives=op.gives)
    made.location = op.location
    return made


def unpacked_calls(header: Mapping[str, Any]) -> tuple[loop.ProgramOp, tuple[Buffer, ...], tuple[Site, ...]]:
    """The program of the operations that Python runs, all buffers, and the operations with their iterators."""
    (program,) = parse_module(header["operations"]).ops
    assert isinstance(program, loop.ProgramOp)
    texts: list[str] = header["types"]
    context = _context()
    types = [_buffer_type(context, text) for text in texts]
    ops = list(program.body.block.ops)
    count = len(header["touched"])
    values = {number: op.results[0] for number, op in zip(header["touched"], ops[:count], strict=True)}
    most = most_of(program)
    layouts = [Layout.of(kind, program.space, most) for kind in types]
    buffers: list[Buffer] = []
    rows: list[tuple[int, str, str, int, int, bool, bool, bool]] = header["buffers"]
    for number, (kind, owner, key, first, last, zeroed, donated, host) in enumerate(rows):
        layout = layouts[kind]
        value = values[number] if number in values else loop.AllocOp(types[kind]).buffer
        live = Interval(first, last)
        buffers.append(Buffer(value, layout, numpy_dtype(layout.element), owner, key, live, zeroed, donated, host))
    sites = [Site(op, tuple(names)) for op, names in zip(ops[count:], header["iterators"], strict=True)]
    return program, tuple(buffers), tuple(sites)


# ---- text ----


def text_with_places(module: ModuleOp) -> str:
    """The text of a module with the lines of the user's program."""
    stream = StringIO()
    Printer(stream, print_debuginfo=True).print_op(module)
    return stream.getvalue()


def parse_module(text: str) -> ModuleOp:
    """The module of a text that was printed here."""
    return Parser(_context(), text).parse_module()


def _buffer_type(context: Context, text: str) -> loop.BufferType:
    kind = Parser(context, text).parse_type()
    assert isinstance(kind, loop.BufferType)
    return kind


def _context() -> Context:
    context = Context()
    context.load_dialect(Builtin)
    for name in ("sdg", "loop"):
        context.load_dialect(get_all_dialects()[name]())
    return context
