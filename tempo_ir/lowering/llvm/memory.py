"""Reading and writing memory from registers: what an element looks like in memory, vectors, masks, gathers, atomics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from xdsl.dialects.builtin import BFloat16Type, Float16Type
from xdsl.ir import Attribute

from tempo_ir.dialects.tile.attributes import bit_width, is_bool, is_float
from tempo_ir.lowering.llvm.address import Linear, materialize, offset_pointer
from tempo_ir.lowering.llvm.text import BYTES, KINDS, Register, Text, suffix, vector_type

LINE = 64
"""Bytes of a cache line."""


@dataclass(frozen=True)
class Element:
    """
    An element type: the kind of register that computes it, and its form in memory. f16 and bf16 are computed in f32;
    a bool is a byte in memory.
    """

    kind: str
    storage: str
    is_bfloat: bool = False

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return BYTES[self.storage]


@lru_cache(maxsize=64)
def element_layout(element: Attribute) -> Element:
    """How an element type of the tile dialect is held."""
    if isinstance(element, BFloat16Type):
        return Element("f32", "i16", is_bfloat=True)
    if isinstance(element, Float16Type):
        return Element("f32", "f16")
    if is_bool(element):
        return Element("i1", "i8")
    kind = f"{'f' if is_float(element) else 'i'}{bit_width(element)}"
    return Element(kind, kind)


def register_layout(kind: str) -> Element:
    """How scratch memory holds registers of a kind: as they are, but for a bool."""
    return Element(kind, "i8" if kind == "i1" else kind)


@dataclass(frozen=True)
class Buffer:
    """A pointer and what it points to."""

    pointer: Register
    element: Element

    def at(self, offset: Linear) -> Register:
        """The address `offset` elements on."""
        return offset_pointer(self.pointer.text, self.pointer, offset, KINDS[self.element.storage])


def decode(element: Element, x: Register) -> Register:
    """From the form in memory to a register."""
    text = x.text
    if element.is_bfloat:
        return text.bits(text.convert("zext", x, "i32") << 16, "f32")
    if element.storage == "f16":
        return text.convert("fpext", x, "f32")
    if element.kind == "i1":
        return text.compare("ne", x, 0)
    return x


def encode(element: Element, x: Register) -> Register:
    """From a register to the form in memory, rounding to nearest even."""
    text = x.text
    if element.is_bfloat:
        bits = text.bits(x, "i32")
        rounded = (bits + ((bits >> 16) & 1) + 0x7FFF) >> 16
        quiet_nan = text.constant(0x7FC0, "i32", x.lanes)
        return text.convert("trunc", text.select(text.compare("uno", x, x), quiet_nan, rounded), "i16")
    if element.storage == "f16":
        return text.convert("fptrunc", x, "f16")
    if element.kind == "i1":
        return text.convert("zext", x, "i8")
    return x


def round_trip(element: Element, x: Register) -> Register:
    """x rounded to what memory can hold."""
    return decode(element, encode(element, x)) if element.kind == "f32" and element.storage != "f32" else x


def load(buffer: Buffer, offset: Linear) -> Register:
    """One element."""
    element, text = buffer.element, buffer.pointer.text
    address = buffer.at(offset)
    instruction = f"load {KINDS[element.storage]}, ptr {address.name}, align {element.size}"
    return decode(element, text.new(instruction, element.storage))


def load_vector(
    buffer: Buffer, offset: Linear, mask: Register | None = None, other: Register | None = None
) -> Register:
    """Consecutive elements; where the mask is false, `other` or zero."""
    element, text = buffer.element, buffer.pointer.text
    address, type_ = buffer.at(offset), vector_type(element.storage, text.lanes)
    if mask is None:
        instruction = f"load {type_}, ptr {address.name}, align {element.size}"
        return decode(element, text.new(instruction, element.storage, text.lanes))
    name = f"llvm.masked.load.{suffix(element.storage, text.lanes)}.p0"
    text.declarations.add(f"declare {type_} @{name}(ptr, {mask.type}, {type_})")
    arguments = f"ptr align {element.size} {address.name}, {mask.typed}, {type_} zeroinitializer"
    x = decode(element, text.new(f"call {type_} @{name}({arguments})", element.storage, text.lanes))
    return x if other is None else text.select(mask, x, other)


def load_words(buffer: Buffer, offset: Linear) -> Register:
    """Consecutive elements of 16 bits, two in each lane of a vector of 32 bits, as they are stored."""
    text = buffer.pointer.text
    type_ = vector_type("i32", text.lanes)
    instruction = f"load {type_}, ptr {buffer.at(offset).name}, align {buffer.element.size}"
    return text.new(instruction, "i32", text.lanes)


def store(buffer: Buffer, offset: Linear, x: Register) -> None:
    """One element."""
    encoded = encode(buffer.element, x)
    x.text.line(f"store {encoded.typed}, ptr {buffer.at(offset).name}, align {buffer.element.size}")


def store_vector(buffer: Buffer, offset: Linear, x: Register, mask: Register | None = None) -> None:
    """
    Consecutive elements, those where the mask is true. One lane is stored as a scalar: LLVM 22 writes it in the type
    before a `trunc`, over its neighbours (llvm/llvm-project#179489).
    """
    element, text = buffer.element, buffer.pointer.text
    lanes = None if mask is None else text.literal_mask(mask)
    if lanes is not None and sum(lanes) == 1:
        lane = lanes.index(True)
        store(buffer, offset + lane, text.extract(x, lane) if x.lanes else x)
        return
    encoded, address = encode(element, text.broadcast(x)), buffer.at(offset)
    if mask is None:
        text.line(f"store {encoded.typed}, ptr {address.name}, align {element.size}")
        return
    name = f"llvm.masked.store.{suffix(element.storage, text.lanes)}.p0"
    text.declarations.add(f"declare void @{name}({encoded.type}, ptr, {mask.type})")
    text.line(f"call void @{name}({encoded.typed}, ptr align {element.size} {address.name}, {mask.typed})")


def prefetch(buffer: Buffer, offset: Linear, near: bool = False, written: bool = False) -> None:
    """Ask for the line of an element to be brought into the L2 cache, or the L1 cache if `near`, to be `written` there;
    the address may be anywhere."""
    text = buffer.pointer.text
    text.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    distance = materialize(text, offset)
    kind = KINDS[buffer.element.storage]
    address = text.pure(f"getelementptr {kind}, ptr {buffer.pointer.name}, {distance.typed}", "ptr", 0, distance)
    text.line(f"call void @llvm.prefetch.p0(ptr {address.name}, i32 {int(written)}, i32 {3 if near else 2}, i32 1)")


def lane_offsets(text: Text, stride: Linear | int) -> Register:
    """0, stride, 2 stride, ... as the offsets of lanes."""
    if isinstance(stride, int) or stride.is_constant:
        step = stride if isinstance(stride, int) else stride.constant
        return text.numbers([step * lane for lane in range(text.lanes)], "i64")
    step = text.broadcast(materialize(text, stride))
    iota = text.iota("i64")
    return text.pure(f"mul {step.typed}, {iota.name}", "i64", text.lanes, step)


def _addresses(buffer: Buffer, offset: Linear, offsets: Register) -> Register:
    base = buffer.at(offset)
    storage = KINDS[buffer.element.storage]
    instruction = f"getelementptr {storage}, ptr {base.name}, {offsets.typed}"
    return base.text.pure(instruction, "ptr", base.text.lanes, base, offsets)


def gather(
    buffer: Buffer, offset: Linear, offsets: Register, mask: Register | None = None, other: Register | None = None
) -> Register:
    """Elements at `offset` plus one offset per lane; where the mask is false, `other` or zero."""
    element, text = buffer.element, buffer.pointer.text
    addresses, type_ = _addresses(buffer, offset, offsets), vector_type(element.storage, text.lanes)
    active = mask if mask is not None else text.constant(1, "i1", text.lanes)
    name = f"llvm.masked.gather.{suffix(element.storage, text.lanes)}.v{text.lanes}p0"
    text.declarations.add(f"declare {type_} @{name}({addresses.type}, {active.type}, {type_})")
    aligned = f"{addresses.type} align {element.size} {addresses.name}"
    instruction = f"call {type_} @{name}({aligned}, {active.typed}, {type_} zeroinitializer)"
    x = decode(element, text.new(instruction, element.storage, text.lanes))
    return x if other is None or mask is None else text.select(mask, x, other)


def scatter(buffer: Buffer, offset: Linear, offsets: Register, x: Register, mask: Register | None = None) -> None:
    """Write one element per lane, the last lane last."""
    element, text = buffer.element, buffer.pointer.text
    encoded, addresses = encode(element, text.broadcast(x)), _addresses(buffer, offset, offsets)
    active = mask if mask is not None else text.constant(1, "i1", text.lanes)
    name = f"llvm.masked.scatter.{suffix(element.storage, text.lanes)}.v{text.lanes}p0"
    text.declarations.add(f"declare void @{name}({encoded.type}, {addresses.type}, {active.type})")
    aligned = f"{addresses.type} align {element.size} {addresses.name}"
    text.line(f"call void @{name}({encoded.typed}, {aligned}, {active.typed})")


def add_atomically(buffer: Buffer, offset: Linear, x: Register) -> None:
    """Add to one element, indivisibly."""
    operation = "fadd" if x.is_float else "add"
    address = buffer.at(offset)
    x.text.new(f"atomicrmw {operation} ptr {address.name}, {x.typed} monotonic, align {buffer.element.size}", x.kind)


def can_add_atomically(element: Element) -> bool:
    """Is the form in memory the one that is computed?"""
    return element.kind == element.storage
