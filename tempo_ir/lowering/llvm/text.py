"""
A builder of LLVM IR text: typed registers with operators, structured loops and branches.

Two things are done here because only `sroa` runs on the text afterwards: integer scalar arithmetic (addresses, sizes,
masks) is hoisted to the loop level of its deepest operand, and shared there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import gcd
from types import MappingProxyType

KINDS = MappingProxyType(
    {
        "i1": "i1",
        "i8": "i8",
        "i16": "i16",
        "i32": "i32",
        "i64": "i64",
        "f16": "half",
        "f32": "float",
        "f64": "double",
        "ptr": "ptr",
    }
)
"""What a register may hold, and how LLVM writes it."""

BYTES = MappingProxyType({"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "f32": 4, "f64": 8})

AVX512_LANES = 16
"""Lanes of the vectors whose masks are registers of bits."""

FLAGS = "nsz contract"
"""
Fast-math flags of ordinary arithmetic: a product may be fused into a sum. Nothing that a program could rely on is given
up: sums are not reordered, NaN and infinity are kept.
"""

REDUCTION_FLAGS = "reassoc nsz contract"
"""Flags where the order of a sum is ours to choose."""


@dataclass(slots=True, eq=False)
class Register:
    """An LLVM value: `lanes` 0 for a scalar, else a vector. `level` is the loop level that defines it. Nobody changes
    one; it is not frozen, as each would take three times as long to make, and a kernel has thousands."""

    name: str
    kind: str
    lanes: int
    level: int
    text: Text
    multiple: int = 1
    """A number that divides the value, where it is a loop's counter."""

    @property
    def type(self) -> str:
        """The LLVM type."""
        return vector_type(self.kind, self.lanes)

    @property
    def typed(self) -> str:
        """Type and name, as an operand is written."""
        return f"{self.type} {self.name}"

    @property
    def is_float(self) -> bool:
        """Does it hold floats?"""
        return self.kind[0] == "f"

    @property
    def is_constant(self) -> bool:
        """Is it a literal?"""
        return self.name[0] != "%"

    def __add__(self, other: Register | float) -> Register:
        return self.text.binary("fadd" if self.is_float else "add", self, other)

    def __radd__(self, other: float) -> Register:
        return self.text.binary("fadd" if self.is_float else "add", other, self)

    def __sub__(self, other: Register | float) -> Register:
        return self.text.binary("fsub" if self.is_float else "sub", self, other)

    def __rsub__(self, other: float) -> Register:
        return self.text.binary("fsub" if self.is_float else "sub", other, self)

    def __mul__(self, other: Register | float) -> Register:
        return self.text.binary("fmul" if self.is_float else "mul", self, other)

    def __rmul__(self, other: float) -> Register:
        return self.text.binary("fmul" if self.is_float else "mul", other, self)

    def __truediv__(self, other: Register | float) -> Register:
        return self.text.binary("fdiv", self, other)

    def __rtruediv__(self, other: float) -> Register:
        return self.text.binary("fdiv", other, self)

    def __neg__(self) -> Register:
        return self.text.negate(self)

    def __and__(self, other: Register | int) -> Register:
        return self.text.binary("and", self, other)

    def __or__(self, other: Register | int) -> Register:
        return self.text.binary("or", self, other)

    def __xor__(self, other: Register | int) -> Register:
        return self.text.binary("xor", self, other)

    def __lshift__(self, other: Register | int) -> Register:
        return self.text.binary("shl", self, other)

    def __rshift__(self, other: Register | int) -> Register:
        """Logical."""
        return self.text.binary("lshr", self, other)


def vector_type(kind: str, lanes: int) -> str:
    """`<16 x float>`, or `float` for no lanes."""
    return f"<{lanes} x {KINDS[kind]}>" if lanes else KINDS[kind]


def suffix(kind: str, lanes: int) -> str:
    """How the type stands in an intrinsic's name: `v16f32`, `f32`."""
    return f"v{lanes}{kind}" if lanes else kind


def literal(number: float, kind: str) -> str:
    """A number as LLVM writes it; floats by their bits, integers as signed."""
    if kind == "f64":
        return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"
    if kind in ("f32", "f16"):
        return f"0x{struct.unpack('<Q', struct.pack('<d', _to_single(number)))[0]:016X}"
    if kind == "i1":
        return "true" if number else "false"
    width = int(kind[1:])
    wrapped = int(number) & ((1 << width) - 1)
    return str(wrapped - (1 << width) if wrapped >> (width - 1) else wrapped)


def _to_single(number: float) -> float:
    """`number` rounded to f32; past its range, infinity."""
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


class Text:
    """
    The body of one function under construction. `buffers` is a stack of line lists, one per open loop or branch; a
    register's level is its place on that stack.
    """

    def __init__(self, lanes: int):
        self.lanes = lanes
        self.declarations: set[str] = set()
        self.functions: list[str] = []
        self.shared_functions: dict[str, str] = {}
        """Those that `shared` calls, by name."""
        self._count = 0
        self._buffers: list[list[str]] = [[]]
        self._shared: list[dict[str, Register]] = [{}]
        self._allocations: list[str] = []
        self._spare: Register | None = None
        self._floor = 0

    # -- names, levels, lines

    @property
    def level(self) -> int:
        """The loop level of the lines being written."""
        return len(self._buffers) - 1

    def fresh(self, prefix: str = "v") -> str:
        """A name not used before in this text."""
        self._count += 1
        return f"{prefix}{self._count}"

    def line(self, text: str) -> None:
        """Write an instruction without result."""
        self._buffers[-1].append(f"  {text}")

    def new(self, instruction: str, kind: str, lanes: int = 0) -> Register:
        """Write an instruction and give its result."""
        name = f"%{self.fresh()}"
        self.line(f"{name} = {instruction}")
        return Register(name, kind, lanes, self.level, self)

    def pure(self, instruction: str, kind: str, lanes: int, *operands: Register) -> Register:
        """As `new`, at the level of the deepest operand but inside `keep_inside`, and only once there."""
        level = max((operand.level for operand in operands), default=0)
        known = self._shared[level].get(instruction)
        if known is None and level < self._floor:
            level = self._floor
            known = self._shared[level].get(instruction)
        if known is None:
            name = f"%{self.fresh()}"
            self._buffers[level].append(f"  {name} = {instruction}")
            known = self._shared[level][instruction] = Register(name, kind, lanes, level, self)
        return known

    # -- constants and vectors

    def constant(self, number: float, kind: str, lanes: int = 0) -> Register:
        """A literal, in every lane of a vector."""
        scalar = literal(number, kind)
        return Register(f"splat ({KINDS[kind]} {scalar})" if lanes else scalar, kind, lanes, 0, self)

    def numbers(self, numbers: Sequence[int], kind: str) -> Register:
        """A vector of literals."""
        parts = ", ".join(f"{KINDS[kind]} {literal(number, kind)}" for number in numbers)
        return Register(f"<{parts}>", kind, len(numbers), 0, self)

    def iota(self, kind: str = "i32") -> Register:
        """0, 1, 2, ... in the lanes."""
        return self.numbers(range(self.lanes), kind)

    def tail_mask(self, count: int) -> Register:
        """True in the first `count` lanes."""
        return self.numbers([lane < count for lane in range(self.lanes)], "i1")

    def literal_mask(self, mask: Register) -> list[bool] | None:
        """The lanes of a mask that is a literal; None for one that is computed, or no vector."""
        if not mask.lanes or not mask.is_constant:
            return None
        if mask.name.startswith("splat"):
            return ["true" in mask.name] * mask.lanes
        return ["true" in lane for lane in mask.name.split(",")]

    def broadcast(self, x: Register) -> Register:
        """A scalar in every lane; a vector as it is."""
        if x.lanes:
            return x
        if x.is_constant:
            return Register(f"splat ({x.typed})", x.kind, self.lanes, 0, self)
        vector = vector_type(x.kind, self.lanes)
        first = self._share_integer(f"insertelement {vector} poison, {x.typed}, i32 0", x.kind, self.lanes, x)
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self._share_integer(f"shufflevector {first.typed}, {vector} poison, {zeros}", x.kind, self.lanes, first)

    def _share_integer(self, instruction: str, kind: str, lanes: int, *operands: Register) -> Register:
        """`pure` for integers; floats stay where they are used, so that they do not fill the registers."""
        return self.new(instruction, kind, lanes) if kind[0] == "f" else self.pure(instruction, kind, lanes, *operands)

    def extract(self, x: Register, lane: int) -> Register:
        """One lane of a vector."""
        return self.new(f"extractelement {x.typed}, i32 {lane}", x.kind)

    def unify(self, *operands: Register | float) -> list[Register]:
        """Numbers become literals of the registers' kind, scalars vectors where there is a vector."""
        kind, lanes = "", 0
        for x in operands:
            if isinstance(x, Register):
                kind, lanes = kind or x.kind, lanes or x.lanes
        registers = [x if isinstance(x, Register) else self.constant(x, kind, lanes) for x in operands]
        return [x if x.lanes else self.broadcast(x) for x in registers] if lanes else registers

    # -- arithmetic

    def binary(self, operation: str, a: Register | float, b: Register | float, flags: str = FLAGS) -> Register:
        """A two-operand instruction by its LLVM name; integer scalars are hoisted, so nothing here may trap."""
        x, y = self.unify(a, b)
        if x.is_float:
            return self.new(f"{operation} {flags} {x.typed}, {y.name}", x.kind, x.lanes)
        instruction = f"{operation} {x.typed}, {y.name}"
        return self.new(instruction, x.kind, x.lanes) if x.lanes else self.pure(instruction, x.kind, 0, x, y)

    def negate(self, x: Register) -> Register:
        """-x"""
        return self.new(f"fneg {FLAGS} {x.typed}", x.kind, x.lanes) if x.is_float else self.constant(0, x.kind) - x

    def compare(self, predicate: str, a: Register | float, b: Register | float) -> Register:
        """`predicate` as LLVM names it: `olt`, `une`, ... of floats, `slt`, `ult`, `eq`, ... of integers."""
        x, y = self.unify(a, b)
        if x.is_float:
            return self.new(f"fcmp {predicate} {x.typed}, {y.name}", "i1", x.lanes)
        return self.pure(f"icmp {predicate} {x.typed}, {y.name}", "i1", x.lanes, x, y)

    def both(self, a: Register | None, b: Register | None) -> Register | None:
        """The conjunction of two masks or conditions; None is true."""
        if a is None or b is None:
            return b if a is None else a
        x, y = self.unify(a, b)
        first, second = self.literal_mask(x), self.literal_mask(y)
        if first is not None and second is not None:
            return self.numbers([one and other for one, other in zip(first, second, strict=True)], "i1")
        return self.pure(f"and {x.typed}, {y.name}", "i1", x.lanes, x, y)

    def select(self, condition: Register, a: Register | float, b: Register | float) -> Register:
        """a where the condition holds, else b."""
        x, y = self.unify(a, b)
        if condition.lanes or x.lanes:
            condition, x, y = self.broadcast(condition), self.broadcast(x), self.broadcast(y)
        instruction = f"select {condition.typed}, {x.typed}, {y.typed}"
        if x.is_float or x.lanes:
            return self.new(instruction, x.kind, x.lanes)
        return self.pure(instruction, x.kind, 0, condition, x, y)

    def convert(self, operation: str, x: Register, kind: str) -> Register:
        """A conversion by its LLVM name."""
        instruction = f"{operation} {x.typed} to {vector_type(kind, x.lanes)}"
        if x.is_float or kind[0] == "f":
            return self.new(instruction, kind, x.lanes)
        return self.pure(instruction, kind, x.lanes, x)

    def bits(self, x: Register, kind: str) -> Register:
        """The same bits as another kind of the same width."""
        return x if x.kind == kind else self.convert("bitcast", x, kind)

    def call(self, name: str, kind: str, lanes: int, *operands: Register, flags: str = "") -> Register:
        """Call an intrinsic by its full name; declares it."""
        result = vector_type(kind, lanes)
        self.declarations.add(f"declare {result} @{name}({', '.join(x.type for x in operands)})")
        return self.new(f"call {flags} {result} @{name}({', '.join(x.typed for x in operands)})", kind, lanes)

    def intrinsic(self, name: str, *operands: Register) -> Register:
        """`llvm.NAME` overloaded on its operands' one type."""
        x, *others = self.unify(*operands)
        full = f"llvm.{name}.{suffix(x.kind, x.lanes)}"
        return self.call(full, x.kind, x.lanes, x, *others, flags=FLAGS if x.is_float else "")

    def shared(
        self, name: str, compute: Callable[[Register], Register], operands: Sequence[Register]
    ) -> list[Register]:
        """What `compute` makes of each of the operands, vectors of one kind and no more of them than a call takes in
        registers, by a function of this name that the module has once."""
        count, (first, *_) = len(operands), operands
        full = f"{name}.{suffix(first.kind, first.lanes)}.{count}"
        result = first.type if count == 1 else f"{{ {', '.join([first.type] * count)} }}"
        if full not in self.shared_functions:
            inner = Text(self.lanes)
            parameters = [Register(f"%x{i}", first.kind, first.lanes, 0, inner) for i in range(count)]
            results = [compute(parameter) for parameter in parameters]
            value = results[0] if count == 1 else Register("poison", first.kind, first.lanes, 0, inner)
            for i, each in enumerate(results if count > 1 else ()):
                value = inner.new(f"insertvalue {result} {value.name}, {each.typed}, {i}", first.kind, first.lanes)
            self.define_shared(full, parameters, inner, result, f" {value.name}")
        made = self.new(f"call {result} @{full}({', '.join(x.typed for x in operands)})", first.kind, first.lanes)
        if count == 1:
            return [made]
        return [self.new(f"extractvalue {result} {made.name}, {i}", first.kind, first.lanes) for i in range(count)]

    def define_shared(
        self, name: str, parameters: Sequence[Register], inner: Text, result: str = "void", returned: str = ""
    ) -> None:
        """Define a function that the module has once, from a text in which nothing is open."""
        self.declarations |= inner.declarations
        signature = ", ".join(parameter.typed for parameter in parameters)
        head = f"define internal {result} @{name}({signature}) #0 {{"
        self.shared_functions[name] = "\n".join([head, "entry:", *inner.body(), f"  ret {result}{returned}", "}"])

    def maximum(self, a: Register, b: Register) -> Register:
        """NaN where either is NaN."""
        return self._extremum("maximum", "ogt", a, b)

    def minimum(self, a: Register, b: Register) -> Register:
        """NaN where either is NaN."""
        return self._extremum("minimum", "olt", a, b)

    def _extremum(self, name: str, predicate: str, a: Register, b: Register) -> Register:
        """One instruction where an operand is a literal, which is never NaN: the other one comes last."""
        if not a.is_float:
            raise ValueError("integers have smax, umax")
        if b.is_constant and not a.is_constant:
            a, b = b, a
        if a.is_constant:
            return self.select(self.compare(predicate, a, b), a, b)
        return self.intrinsic(name, a, b)

    # -- variables

    def allocate(self, kind: str, count: int, prefix: str = "s") -> Register:
        """Aligned memory on the stack, for the whole function."""
        name = f"%{self.fresh(prefix)}"
        self._allocations.append(f"  {name} = alloca [{count} x {KINDS[kind]}], align 64")
        return Register(name, "ptr", 0, 0, self)

    def spare(self) -> Register:
        """Memory that may be read where there is nothing to read."""
        if self._spare is None:
            self._spare = self.allocate("i64", 1, "spare")
            self._allocations.append(f"  store i64 0, ptr {self._spare.name}")
        return self._spare

    def variable(self, initial: Register) -> Variable:
        """A mutable register; `sroa` turns it into phis."""
        name = f"%{self.fresh('a')}"
        self._allocations.append(f"  {name} = alloca {initial.type}, align 64")
        variable = Variable(name, initial.kind, initial.lanes, self)
        variable.set(initial)
        return variable

    # -- control flow

    def open(self) -> None:
        """Start a level."""
        self._buffers.append([])
        self._shared.append({})

    def close(self) -> list[str]:
        """End a level and give its lines."""
        self._shared.pop()
        return self._buffers.pop()

    @contextmanager
    def keep_inside(self) -> Generator[None]:
        """Nothing written here is hoisted out of the level that is open now: it would run where it is not needed."""
        outside, self._floor = self._floor, self.level
        yield
        self._floor = outside

    def lines(self, lines: Sequence[str]) -> None:
        """Write the lines of a level that was closed, in order, as they are."""
        self._buffers[-1] += lines

    @contextmanager
    def loop(self, low: Register, high: Register, step: int) -> Generator[Register]:
        """Count from low up to high, exclusive; yields the counter."""
        self.open()
        multiple = gcd(step, int(low.name)) if low.is_constant else 1
        counter = Register(f"%{self.fresh('i')}", "i64", 0, self.level, self, multiple)
        yield counter
        body = self.close()
        following, test = f"%{self.fresh('n')}", f"%{self.fresh('c')}"
        before, head, inside, latch, after = (self.fresh("L") for _ in range(5))
        self._buffers[-1] += [
            f"  br label %{before}",
            f"{before}:",
            f"  br label %{head}",
            f"{head}:",
            f"  {counter.name} = phi i64 [ {low.name}, %{before} ], [ {following}, %{latch} ]",
            f"  {test} = icmp slt i64 {counter.name}, {high.name}",
            f"  br i1 {test}, label %{inside}, label %{after}",
            f"{inside}:",
            *body,
            f"  br label %{latch}",
            f"{latch}:",
            f"  {following} = add nsw i64 {counter.name}, {step}",
            f"  br label %{head}",
            f"{after}:",
        ]

    def branch(self, condition: Register, then: Sequence[str], otherwise: Sequence[str] = ()) -> None:
        """Write a branch from the lines of its two closed levels."""
        first, second, after = (self.fresh("L") for _ in range(3))
        self._buffers[-1] += [
            f"  br i1 {condition.name}, label %{first}, label %{second}",
            f"{first}:",
            *then,
            f"  br label %{after}",
            f"{second}:",
            *otherwise,
            f"  br label %{after}",
            f"{after}:",
        ]

    @contextmanager
    def when(self, condition: Register) -> Generator[None]:
        """A branch without else."""
        self.open()
        yield
        self.branch(condition, self.close())

    # -- functions

    @contextmanager
    def function(self, name: str, parameters: Sequence[tuple[str, str]]) -> Generator[list[Register]]:
        """Define `void @name`; parameters are (name, kind), yielded as registers."""
        self._buffers, self._shared, self._allocations, self._spare = [[]], [{}], [], None
        yield [Register(f"%{parameter}", kind, 0, 0, self) for parameter, kind in parameters]
        signature = ", ".join(f"{KINDS[kind]} %{parameter}" for parameter, kind in parameters)
        self.functions.append(
            "\n".join([f"define void @{name}({signature}) #0 {{", "entry:", *self.body(), "  ret void", "}"])
        )

    def body(self) -> list[str]:
        """The lines of the function, once all levels in it are closed."""
        return [*self._allocations, *self._buffers[0]]


@dataclass(frozen=True, slots=True)
class Variable:
    """A mutable register."""

    name: str
    kind: str
    lanes: int
    text: Text

    def get(self) -> Register:
        """The value now."""
        return self.text.new(f"load {vector_type(self.kind, self.lanes)}, ptr {self.name}", self.kind, self.lanes)

    def set(self, value: Register) -> None:
        """Replace the value; a scalar fills the lanes."""
        value = self.text.broadcast(value) if self.lanes else value
        self.text.line(f"store {value.typed}, ptr {self.name}")


@dataclass(slots=True)
class Running:
    """A mutable register of code without loops and branches: the one that it is now. Less text than a Variable, of
    which `sroa` makes the same."""

    value: Register

    def get(self) -> Register:
        """The value now."""
        return self.value

    def set(self, value: Register) -> None:
        """Replace the value."""
        self.value = value
