"""One `tile.kernel` as Triton source that a person would keep: our value names, one op per line."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Sequence

from xdsl.dialects.builtin import FileLineColLoc, FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from tempo_ir.dialects.tile import elementwise as ew
from tempo_ir.dialects.tile import memory, shape, structure
from tempo_ir.dialects.tile.attributes import (
    PointerType,
    ReduceKind,
    bit_width,
    element_of,
    is_bool,
    is_float,
    is_unsigned,
    shape_of,
)
from tempo_ir.lowering.triton.addresses import constant_of, fits, is_natural
from tempo_ir.lowering.triton.expressions import (
    FORMS,
    Call,
    Infix,
    Prefix,
    computed_type,
    is_narrow_float,
    triton_type,
)

INDENT = "    "
SMALLEST_DOT = 16
REDUCTIONS = {
    ReduceKind.PROD: "multiply",
    ReduceKind.MAX: "nan_maximum",
    ReduceKind.MIN: "nan_minimum",
    ReduceKind.AND: "bitwise_and",
    ReduceKind.OR: "bitwise_or",
}


class KernelPrinter:
    """Prints one kernel; `source()` is the text of the function, `library` the helpers that it calls.

    `precision` is the `input_precision` of f32 dots: "ieee" or "tf32". `wide_dots` casts narrow dot operands to f32, for Triton's
    interpreter, whose bf16 arithmetic is wrong.
    """

    def __init__(self, kernel: structure.KernelOp, precision: str = "ieee", wide_dots: bool = False):
        self.kernel, self.precision, self.wide_dots = kernel, precision, wide_dots
        self.library: list[str] = []
        self._names: dict[SSAValue, str] = {}
        self._taken: set[str] = {"tl", "triton"}
        self._lines: list[str] = []
        self._ranges: dict[int, str] = {}
        self._depth = 1

    def source(self) -> str:
        """The decorated function, with a comment that names its ops and the user's lines."""
        for number, argument in enumerate(self.kernel.body.block.args):
            self._names[argument] = self._unique(argument.name_hint or f"arg{number}")
        self._block(self.kernel.body.block)
        parameters = ", ".join(self._parameter(argument) for argument in self.kernel.body.block.args)
        ranges = [f"{INDENT}{name} = tl.arange(0, {extent})" for extent, name in sorted(self._ranges.items())]
        body = [*ranges, *self._lines] or [f"{INDENT}pass"]
        comment = [f"# {line}" for line in self._comment()]
        header = [*comment, "@triton.jit", f"def {self.kernel.sym_name.data}({parameters}):"]
        return "\n".join([*header, *body]) + "\n"

    def _parameter(self, argument: SSAValue) -> str:
        name = self._names[argument]
        if isinstance(argument.type, PointerType) or is_float(argument.type):
            return name
        return f'{name}: "{triton_type(argument.type)[3:].replace("int", "i")}"'

    def _comment(self) -> list[str]:
        """What the kernel computes, from the locations of its ops."""
        lines: dict[str, set[int]] = {}
        for op in self.kernel.walk():
            if isinstance(location := op.location, FileLineColLoc):
                lines.setdefault(location.filename.data.rsplit("/", 1)[-1], set()).add(location.line.data)
        if not lines:
            return []
        return [", ".join(f"{name}:{_spans(numbers)}" for name, numbers in sorted(lines.items()))]

    # -- names and lines

    def _unique(self, hint: str) -> str:
        base = re.sub(r"\W", "_", hint)
        if not base or base[0].isdigit() or keyword.iskeyword(base):
            base = f"v{base}"
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name

    def _line(self, text: str) -> None:
        self._lines.append(INDENT * self._depth + text)

    def _define(self, value: SSAValue, expression: str) -> None:
        owner = value.owner
        hint = value.name_hint or (owner.name.split(".")[-1] if isinstance(owner, Operation) else "v")
        name = self._names[value] = self._unique(hint)
        self._line(f"{name} = {expression}")

    def _use(self, value: SSAValue) -> str:
        """The name of a value; scalar constants are written where they are used."""
        if isinstance(value.owner, shape.ConstOp) and not shape_of(value):
            return _number(value.owner.number)
        return self._names[value]

    def _range(self, extent: int) -> str:
        if extent & (extent - 1):
            raise DiagnosticException(
                f"kernel @{self.kernel.sym_name.data}: Triton needs tile extents that are powers of two, not {extent}; "
                "lower with loop-lower-kernels for a GPU target"
            )
        if extent not in self._ranges:
            self._ranges[extent] = self._unique(f"range_{extent}")
        return self._ranges[extent]

    def _call(self, function: Call, *arguments: str) -> str:
        if function.library and function.function not in self.library:
            self.library.append(function.function)
        return f"{function.function}({', '.join(arguments)})"

    # -- ops

    def _block(self, block: Block) -> None:
        for op in block.ops:
            self._statement(op)

    def _statement(self, op: Operation) -> None:
        match op:
            case structure.ForOp():
                self._loop(op)
            case structure.IfOp():
                self._branch(op)
            case structure.YieldOp() | memory.ViewOp():
                pass
            case shape.ConstOp() if not shape_of(op.result):
                pass
            case memory.StoreOp() | memory.AtomicAddOp() | memory.ScatterOp() | memory.ScatterAddOp():
                self._write(op)
            case shape.PhiloxOp():
                self._philox(op)
            case _:
                self._define(op.results[0], self._expression(op))

    def _expression(self, op: Operation) -> str:
        match op:
            case structure.ProgramIdOp():
                return f"tl.program_id({op.axis.value.data}).to(tl.int64)"
            case memory.LoadOp() | memory.GatherOp():
                return self._read(op)
            case shape.ConstOp():
                kind = computed_type(element_of(op.result))
                return f"tl.full({_extents(op.result)}, {_number(op.number)}, {kind})"
            case shape.IotaOp():
                return self._iota(op)
            case shape.InRangeOp():
                return self._in_range(op)
            case shape.SplatOp():
                kind = computed_type(element_of(op.result))
                return f"tl.full({_extents(op.result)}, {self._use(op.value)}, {kind})"
            case shape.BroadcastOp():
                return f"tl.broadcast_to({self._use(op.value)}, {_extents(op.result)})"
            case shape.ExpandOp():
                return f"{self._use(op.value)}{'[None, :]' if op.axis_number == 0 else '[:, None]'}"
            case shape.TransOp():
                return f"tl.trans({self._use(op.value)})"
            case shape.ReduceOp():
                return self._reduce(op)
            case shape.ScanOp():
                function = "tl.cumsum" if op.kind.data is ReduceKind.SUM else "tl.cumprod"
                return f"{function}({self._use(op.value)}, axis={op.axis_number}, reverse={op.reverse is not None})"
            case shape.DotOp():
                return self._dot(op)
            case ew.CastOp():
                return self._cast(op)
            case ew.NotOp():
                return f"{self._use(op.value)} == 0" if is_bool(element_of(op.value)) else f"~{self._use(op.value)}"
            case ew.ShlOp() | ew.ShrOp():
                function = "shift_left" if isinstance(op, ew.ShlOp) else "shift_right"
                width = str(bit_width(element_of(op.lhs)))
                return self._call(Call(function, True), self._use(op.lhs), self._use(op.rhs), width)
            case _:
                return self._elementwise(op)

    def _elementwise(self, op: Operation) -> str:
        operands = [self._use(operand) for operand in op.operands]
        if isinstance(op, ew.FloorDivOp) and is_float(element_of(op.lhs)):
            return f"tl.floor({operands[0]} / {operands[1]})"
        if type(op) not in FORMS:
            raise DiagnosticException(f"{op.name} has no form in Triton")
        match form := FORMS[type(op)](op):
            case Call():
                return self._call(form, *operands)
            case Infix(operator):
                return f"{operands[0]} {operator} {operands[1]}"
            case Prefix(operator):
                return f"{operator}{operands[0]}"

    def _cast(self, op: ew.CastOp) -> str:
        source, target = element_of(op.value), element_of(op.result)
        value = self._use(op.value)
        if isinstance(op.value.owner, shape.ConstOp) and not shape_of(op.value):
            return f"tl.full((), {value}, {computed_type(target)})"
        if is_bool(target):
            return f"{value} != 0"
        if is_float(source) and not is_float(target):
            width = bit_width(target)
            low, high = (0, 2**width - 1) if is_unsigned(target) else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
            return self._call(Call("saturate", True), value, str(low), str(high), triton_type(target))
        if is_narrow_float(target):
            return f"{value}.to({triton_type(target)}).to(tl.float32)"
        if isinstance(source, IndexType):  # an argument of the kernel may be a Python number
            return f"tl.cast({value}, {triton_type(target)})"
        return f"{value}.to({triton_type(target)})"

    def _iota(self, op: shape.IotaOp) -> str:
        extent = self._range(shape_of(op.result)[0])
        kind = triton_type(element_of(op.result))
        if constant_of(op.start) == 0:
            return f"{extent}.to({kind})"
        return f"({self._use(op.start)} + {extent}).to({kind})"

    def _in_range(self, op: shape.InRangeOp) -> str:
        extent = self._range(shape_of(op.result)[0])
        start = "" if constant_of(op.start) == 0 else f"{self._use(op.start)} + "
        return f"{start}{extent} < {self._use(op.limit)}"

    def _reduce(self, op: shape.ReduceOp) -> str:
        value, axis = self._use(op.value), op.axis_number
        kind = op.kind.data
        if op.is_position:
            return self._position(op)
        if kind is ReduceKind.SUM:
            return f"tl.sum({value}, axis={axis})"
        if kind in (ReduceKind.MAX, ReduceKind.MIN) and not is_float(element_of(op.value)):
            return f"tl.{kind.value}({value}, axis={axis})"
        self._call(Call(REDUCTIONS[kind], True))
        return f"tl.reduce({value}, {axis}, {REDUCTIONS[kind]})"

    def _position(self, op: shape.ReduceOp) -> str:
        extents = shape_of(op.value)
        place = self._range(extents[op.axis_number])
        if len(extents) == 2:
            place = f"tl.broadcast_to({place}{'[:, None]' if op.axis_number == 0 else '[None, :]'}, {_tuple(extents)})"
        combine = "first_largest" if op.kind.data is ReduceKind.ARGMAX else "first_smallest"
        self._call(Call(combine, True))
        pair = f"({self._use(op.value)}, {place})"
        return f"tl.reduce({pair}, {op.axis_number}, {combine})[1].to({triton_type(element_of(op.result))})"

    def _dot(self, op: shape.DotOp) -> str:
        (m, k), n = shape_of(op.lhs), shape_of(op.rhs)[1]
        lhs, rhs, total = self._dot_operand(op.lhs), self._dot_operand(op.rhs), self._use(op.accumulator)
        element = element_of(op.lhs)
        if min(m, k, n) < SMALLEST_DOT or not is_float(element) or bit_width(element) == 64:
            wide = computed_type(element_of(op.result))
            lhs, rhs = (f"{self._use(value)}.to({wide})" if element_of(op.result) != element else self._use(value)
                        for value in (op.lhs, op.rhs))  # fmt: skip
            return f"{total} + tl.sum({lhs}[:, :, None] * {rhs}[None, :, :], axis=1)"
        return f'tl.dot({lhs}, {rhs}, {total}, input_precision="{self.precision}")'

    def _dot_operand(self, value: SSAValue) -> str:
        """An operand of `tl.dot`: f16 and bf16 go to the tensor cores as they are."""
        element = element_of(value)
        if not is_narrow_float(element) or self.wide_dots:
            return self._use(value)
        return f"{self._use(value)}.to({triton_type(element)})"

    def _philox(self, op: shape.PhiloxOp) -> None:
        def word(value: SSAValue) -> str:
            if isinstance(value.owner, shape.ConstOp) and not shape_of(value):
                return f"tl.full((), {int(_number(value.owner.number)) % 2**32}, tl.uint32)"
            return self._use(value) if is_unsigned(element_of(value)) else f"{self._use(value)}.to(tl.uint32, bitcast=True)"

        words = [word(value) for value in (op.counter0, op.counter1, op.counter2, op.counter3, op.key0, op.key1)]
        extents = shape_of(op.word0)
        if extents:
            words = [f"tl.broadcast_to({text}, {_tuple(extents)})" if shape_of(value) != extents else text
                     for text, value in zip(words, (op.counter0, op.counter1, op.counter2, op.counter3, op.key0, op.key1),
                                            strict=True)]  # fmt: skip
        names = [self._unique(f"word{i}") for i in range(4)]
        self._names.update(zip(op.results, names, strict=True))
        self._line(f"{', '.join(names)} = tl.philox_impl({', '.join(words)})")

    # -- memory

    def _read(self, op: memory.LoadOp | memory.GatherOp) -> str:
        pointer, mask = self._access(op)
        element = op.view_type.element
        masked = "" if mask is None else f", mask={mask}, other={'0' if op.other is None else _number(op.other)}"
        upcast = ".to(tl.float32)" if is_narrow_float(element) else ""
        return f"tl.load({pointer}{masked}){upcast}"

    def _write(self, op: memory.WriteOp | memory.IndexedWriteOp) -> None:
        pointer, mask = self._access(op)
        adds = isinstance(op, (memory.AtomicAddOp, memory.ScatterAddOp))
        function = "tl.atomic_add" if adds else "tl.store"
        value, element = self._use(op.value), element_of(op.value)
        extents = tuple(extent for extent in op.block.data if extent)
        if shape_of(op.value) != extents:
            value = f"tl.broadcast_to({value}, {_tuple(extents)})"
        if is_narrow_float(element):
            value = f"{value}.to({triton_type(element)})"
        self._line(f"{function}({pointer}, {value}{'' if mask is None else f', mask={mask}'})")

    def _access(self, op: memory.AccessOp) -> tuple[str, str | None]:
        """Pointer expression and mask of a block; scalar offsets come first, in 64 bits, then the ranges."""
        view = op.view_op
        scalars: list[str] = [] if view.offset is None else [self._use(view.offset)]
        ranges: list[str] = []
        masks: list[str] = []
        dimensions = zip(op.indices, op.block.data, view.sizes, view.strides, strict=True)
        for axis, (index, extent, size, stride) in enumerate(dimensions):
            if constant_of(index) != 0:
                scalars.append(self._scaled(self._use(index), stride))
            if not extent:
                continue
            spread = self._spread(op, axis)
            positions = isinstance(op, memory.IndexedAccessOp) and op.axis_number == axis
            if positions:
                place = f"{self._use(op.positions)}.to(tl.int64)"
                place = place if not spread else f"({place}){spread}"
            else:
                place = f"{self._range(extent)}{spread}"
                if not isinstance(stride, int) or extent * abs(stride) >= 2**31:
                    place = f"{place}.to(tl.int64)"
            if stride != 0:
                ranges.append(self._scaled(place, stride))
            if positions or not fits(index, extent, size):
                masks += self._bounds(place, index, size, positions)
        offset = f" + ({' + '.join(scalars)})" if len(scalars) > 1 else "".join(f" + {s}" for s in scalars)
        pointer = self._names[view.pointer] + offset + "".join(f" + {r}" for r in ranges)
        return pointer, " & ".join(masks) if masks else None

    def _spread(self, op: memory.AccessOp, axis: int) -> str:
        if len(op.tile_axes) < 2:
            return ""
        return "[:, None]" if op.tile_axes.index(axis) == 0 else "[None, :]"

    def _scaled(self, text: str, stride: int | SSAValue) -> str:
        if stride == 1:
            return text
        return f"{text} * {stride if isinstance(stride, int) else self._use(stride)}"

    def _bounds(self, place: str, index: SSAValue, size: int | SSAValue, positions: bool) -> list[str]:
        start = constant_of(index)
        absolute = place if start == 0 else f"{self._use(index)} + {place}"
        limit = str(size) if isinstance(size, int) else self._use(size)
        bounds = [f"({absolute} < {limit})"]
        if positions or not is_natural(index):
            bounds.insert(0, f"({absolute} >= 0)")
        return bounds

    # -- control flow

    def _loop(self, op: structure.ForOp) -> None:
        counter, *carried = op.body.block.args
        for argument, init in zip(carried, op.init, strict=True):
            self._define(argument, self._initial(init))
        name = self._names[counter] = self._unique(counter.name_hint or "i")
        step = "" if op.step_size == 1 else f", {op.step_size}"
        self._line(f"for {name} in range({self._use(op.low)}, {self._use(op.high)}{step}):")
        self._depth += 1
        before = len(self._lines)
        self._block(op.body.block)
        targets = [self._names[argument] for argument in carried]
        values = [self._use(value) for value in op.yielded]
        moves = [(target, value) for target, value in zip(targets, values, strict=True) if target != value]
        if moves:                                # simultaneous: a value may read what another replaces
            self._line(f"{', '.join(t for t, _ in moves)} = {', '.join(v for _, v in moves)}")
        if len(self._lines) == before:
            self._line("pass")
        self._depth -= 1
        self._names.update(zip(op.carried, targets, strict=True))

    def _initial(self, init: SSAValue) -> str:
        """A carried scalar must enter the loop with the type that it keeps."""
        if isinstance(init.owner, shape.ConstOp) and not shape_of(init):
            return f"tl.full((), {_number(init.owner.number)}, {computed_type(element_of(init))})"
        return self._use(init)

    def _branch(self, op: structure.IfOp) -> None:
        for keyword_, region in (("if", op.then), ("else", op.otherwise)):
            if region is None or (isinstance(region.block.first_op, structure.YieldOp) and keyword_ == "else"):
                continue
            self._line(f"if {self._use(op.condition)}:" if keyword_ == "if" else "else:")
            self._depth += 1
            before = len(self._lines)
            self._block(region.block)
            if len(self._lines) == before:
                self._line("pass")
            self._depth -= 1


def _tuple(extents: Sequence[int]) -> str:
    return f"({', '.join(map(str, extents))}{',' if len(extents) == 1 else ''})"


def _extents(value: SSAValue) -> str:
    return _tuple(shape_of(value))


def _number(attribute: Attribute) -> str:
    """A number as Python source."""
    if isinstance(attribute, FloatAttr):
        number = attribute.value.data
        return repr(number) if math.isfinite(number) else f'float("{number}")'
    assert isinstance(attribute, IntegerAttr)
    if is_bool(attribute.type):
        return str(attribute.value.data != 0)
    number = attribute.value.data
    if not isinstance(attribute.type, IndexType) and is_unsigned(attribute.type):
        number %= 2 ** bit_width(attribute.type)
    return str(number)


def _spans(numbers: set[int]) -> str:
    """`{8, 9, 10, 14}` as `8-10, 14`."""
    spans: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1] = spans[-1][0], number
        else:
            spans.append((number, number))
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
