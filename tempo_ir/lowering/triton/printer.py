"""One `tile.kernel` as Triton source that a person would keep: our value names, one op per line."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import cast

from xdsl.dialects.builtin import IndexType, NameLoc, f32
from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects.sdg.locations import location_text
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
from tempo_ir.lowering.triton.accesses import limit_of, masks_of, read_text, write_text
from tempo_ir.lowering.triton.addresses import constant_of, fits_32_bits, is_natural, static_bounds
from tempo_ir.lowering.triton.axes import Lane, along
from tempo_ir.lowering.triton.estimates import candidates
from tempo_ir.lowering.triton.expressions import (
    Call,
    Infix,
    Prefix,
    computed_type,
    form_of,
    is_narrow_float,
    library,
    number_of,
    number_text,
    scalar_number,
    signature_type,
    triton_type,
)
from tempo_ir.lowering.triton.hazards import barriers
from tempo_ir.lowering.triton.scalars import PLACE, TABLE
from tempo_ir.lowering.triton.style import DEFAULT_STYLE, KernelSource, Style, file_head
from tempo_ir.lowering.triton.tuning import has_tensor_cores, is_written_out, stages_of, warps_of
from tempo_ir.lowering.triton.uses import is_kept_narrow, is_updated_in_place, is_used_once, same_value, sections_of
from tempo_ir.lowering.triton.values import Limit, Values, filled, identifier_of, literal_of
from tempo_ir.lowering.triton.writer import INDENT, spans, wrapped

COMBINES: Mapping[ReduceKind, str] = MappingProxyType(
    {
        ReduceKind.PROD: "multiply",
        ReduceKind.MAX: "nan_maximum",
        ReduceKind.MIN: "nan_minimum",
        ReduceKind.AND: "bitwise_and",
        ReduceKind.OR: "bitwise_or",
        ReduceKind.ARGMAX: "first_largest",
        ReduceKind.ARGMIN: "first_smallest",
    }
)


def print_kernel(
    kernel: structure.KernelOp,
    style: Style = DEFAULT_STYLE,
    aligned: frozenset[int] = frozenset(),
    stepped: Sequence[int] = (),
) -> KernelSource:
    """The file of one kernel: imports, the kernel, then the helpers that it calls.

    `aligned` numbers the arguments that are multiples of 16 in every launch, `stepped` those that it loads from the
    table of scalars (`scalars.py`). Raises DiagnosticException for what Triton cannot say.
    """
    return _KernelPrinter(kernel, style, aligned, stepped).source()


class _KernelPrinter:
    def __init__(self, kernel: structure.KernelOp, style: Style, aligned: frozenset[int], stepped: Sequence[int]):
        self.kernel, self.style, self.aligned, self.stepped = kernel, style, aligned, stepped
        self.values = Values(kernel)
        self.lines = self.values.lines
        self.barriers = barriers(kernel)
        self.warps, self.stages = warps_of(kernel, style.precision), stages_of(kernel)
        self.ops: dict[str, None] = {}
        self.lanes: dict[SSAValue, list[Lane]] = {}
        self.in_place: dict[SSAValue, str] = {}
        writes = (op for op in kernel.walk() if isinstance(op, (memory.WriteOp, memory.IndexedWriteOp)))
        self.written = {op.view_op.pointer for op in writes}

    def source(self) -> KernelSource:
        name = identifier_of(self.kernel)
        arguments = self.kernel.body.block.args
        parameters: list[tuple[str, str]] = []
        table, place = (self.values.names.unique(name) for name in (f"{TABLE}_ptr", PLACE))
        for number, argument in enumerate(arguments):
            pointer = isinstance(argument.type, PointerType)
            hint = argument.name_hint or f"arg{number}"
            own = self.values.names.new(argument, f"{hint}_ptr" if pointer else hint)
            if number in self.stepped:
                self.load_scalar(own, number, table, place)
                continue
            parameters.append((own, ("*" if pointer else "") + signature_type(element_of(argument))))
        if self.stepped:
            parameters += [(table, "*i64"), (place, "i64")]
        aligned = frozenset(self.values.names[arguments[number]] for number in self.aligned - {*self.stepped})
        self.body()
        annotated = ", ".join(p if _is_untyped(kind) else f'{p}: "{kind}"' for p, kind in parameters)
        plain = [p for p, kind in parameters if not kind.startswith("*") and p not in aligned]
        head = wrapped(f"def {name}({annotated})")
        head[-1] += ":"
        body = self.lines.lines or [f"{INDENT}pass"]
        function = "\n".join([*self.comment(), *wrapped(_decorator(plain)), *head, *body]) + "\n"
        calls = tuple(sorted(self.values.library))
        return KernelSource(
            name,
            "\n\n".join([file_head(calls, self.values.blocks, self.warps, self.stages), function]),
            tuple(parameters),
            aligned,
            self.warps,
            ", ".join(name.removeprefix("sdg.") for name in self.ops),
            self.stages,
            calls,
            self.choices(),
            any(has_tensor_cores(op, self.style.precision) for op in self.kernel.walk() if isinstance(op, shape.DotOp)),
        )

    def choices(self) -> tuple[tuple[int, int], ...]:
        """Warps and stages that are worth a try on the machine."""
        machine = self.style.machine
        found = () if machine is None else candidates(self.kernel, machine, self.style.precision)
        return tuple((choice.warps, choice.stages) for choice in found)

    def body(self) -> None:
        """The lines of the function: indices along axes that start at numbers or arguments, then the ops."""
        block, lanes = self.kernel.body.block, self.values.axes.lanes()
        for lane in lanes:
            self.values.own_name(lane.axis)
            self.values.block_size(lane.axis)
        for op in self.kernel.walk():
            if isinstance(op, memory.AccessOp):
                for lane, limit in masks_of(self.values, op):
                    self.values.limits.setdefault(lane, []).append(limit)
        for lane in lanes:
            if lane.start is None or lane.start in block.args:
                self.values.define_lane(lane)
            else:
                self.lanes.setdefault(lane.start, []).append(lane)
        self.block(block)

    def load_scalar(self, name: str, number: int, table: str, place: str) -> None:
        """A scalar of the table, where those of a launch stand side by side."""
        position = self.stepped.index(number)
        loaded = f"tl.load({table} + {place}{f' + {position}' if position else ''})"
        self.lines.add(f"{name} = tl.multiple_of({loaded}, 16)" if number in self.aligned else f"{name} = {loaded}")

    def comment(self) -> list[str]:
        """What the kernel computes, the user's lines, the grid."""
        lines: dict[str, set[int]] = {}
        for op in self.kernel.walk():
            location = op.location
            if isinstance(location, NameLoc):  # the sdg op that it comes from
                self.ops[location.desc.data] = None
            file, _, line = location_text(location).rpartition(":")
            if file:
                lines.setdefault(file.rsplit("/", 1)[-1], set()).add(int(line))
        parts = textwrap.wrap(", ".join(self.ops), 116)
        parts += [f"{name}:{spans(numbers)}" for name, numbers in sorted(lines.items())]
        return [*(f"# {part}" for part in parts), f"# grid: {self.grid()}"]

    def grid(self) -> str:
        """What the programs stand for: `4 programs, n in blocks of BLOCK_N`."""
        extents = self.kernel.grid.data
        if not extents:
            return "one program"
        ids = [op for op in self.kernel.walk() if isinstance(op, structure.ProgramIdOp)]
        found: list[str] = []
        for number, extent in enumerate(extents):
            count = "the launch says how many" if extent < 0 else str(extent)
            meanings = dict.fromkeys(self.meaning(op) for op in ids if op.axis.value.data == number)
            found.append(" ".join([count, *(f"({meaning})" for meaning in meanings if meaning)]))
        return ", ".join(found)

    def meaning(self, op: structure.ProgramIdOp) -> str:
        """What a program's place along an axis of the grid counts."""
        if (name := along(op.result)) is not None:
            return name
        starts = [use.operation.results[0] for use in op.result.uses if isinstance(use.operation, ew.MulOp)]
        lanes = [lane for start in starts for lane in self.lanes.get(start, ())]
        return "".join(
            f"{self.values.own_name(lane.axis)} by {self.values.block_size(lane.axis)}" for lane in lanes[:1]
        )

    # -- statements

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.statement(op)

    def statement(self, op: Operation) -> None:
        if op in self.barriers:
            self.lines.add("tl.debug_barrier()")
        match op:
            case structure.ForOp():
                self.loop(op)
            case structure.IfOp():
                self.branch(op)
            case structure.YieldOp() | memory.ViewOp():
                pass
            case shape.ConstOp() | ew.CastOp() if literal_of(op.result) is not None:
                pass
            case memory.WriteOp() | memory.IndexedWriteOp():
                self.lines.add(write_text(self.values, op, self.style.checked))
            case shape.PhiloxOp():
                self.philox(op)
            case _ if not self.style.checked and (same := same_value(op)) is not None:
                self.values.write(op.results[0], self.values.bare(same))
            case _ if self.is_inlined(op):
                self.values.write(op.results[0], self.expression(op))
            case _:
                self.define(op.results[0], self.expression(op), shared=self.stays(op))
        for result in op.results:
            for lane in self.lanes.get(result, ()):
                self.values.define_lane(lane)

    def is_inlined(self, op: Operation) -> bool:
        """Whether an op is written where its value is used: numbers, spread axes, what is used but once to address."""
        if self.style.checked:
            return False
        match op:
            case shape.ConstOp() | shape.ExpandOp():
                return True
            case shape.TransOp():
                users = [use.operation for use in op.result.uses]
                return len(users) == 1 and isinstance(users[0], shape.DotOp) and users[0].parent is op.parent
            case shape.InRangeOp():
                return True
            case shape.IotaOp():
                return self.is_lane(op)
            case ew.ComparisonOp() if isinstance(element_of(op.lhs), IndexType):
                users = [use.operation for use in op.result.uses]
                return len(users) == 1 and isinstance(users[0], structure.IfOp) and users[0].parent is op.parent
            case structure.ProgramIdOp() | ew.AddOp() | ew.SubOp() | ew.MulOp() if isinstance(
                op.results[0].type, IndexType
            ):
                return is_used_once(op.results[0])
            case _:
                return False

    def stays(self, op: Operation) -> bool:
        """Whether an op gives the same wherever it is written again."""
        return not isinstance(op, (memory.LoadOp, memory.GatherOp)) or op.view_op.pointer not in self.written

    def define(self, value: SSAValue, expression: str, *, shared: bool) -> None:
        """A line for a value; none where a line before has it. What a loop carries on keeps its name."""
        if value in self.in_place:
            name = self.in_place[value]
            expression = self.values.known(expression) or expression
            added = expression.removeprefix(f"{name} + ")
            self.lines.add(f"{name} = {expression}" if added == expression else f"{name} += {added}")
            self.values.forget(name)
            self.values.names.give(value, name)
            return
        if shared and not self.style.checked:
            self.values.names.give(value, self.values.shared(expression, self.values.hint(value)))
            return
        name = self.values.define(value)
        self.lines.add(f"{name} = {expression}")
        if self.style.checked and not isinstance(element_of(value), IndexType):
            self.lines.add(f"tl.static_assert({name}.dtype == {computed_type(element_of(value))})")

    # -- expressions

    def expression(self, op: Operation) -> str:
        values = self.values
        match op:
            case structure.ProgramIdOp():
                wide = "" if static_bounds(op.result) is not None else ".to(tl.int64)"
                return f"tl.program_id({op.axis.value.data}){wide}"
            case memory.LoadOp() | memory.GatherOp():
                return read_text(values, op, self.style.checked)
            case shape.ConstOp():
                number = number_text(number_of(op.number), element_of(op.result))
                return filled(values.extents(op.result), number, element_of(op.result))
            case shape.IotaOp():
                return self.iota(op)
            case shape.InRangeOp():
                return self.in_range(op)
            case shape.SplatOp():
                return filled(values.extents(op.result), values.bare(op.value), element_of(op.result))
            case shape.BroadcastOp():
                return f"tl.broadcast_to({values.bare(op.value)}, {values.extents(op.result)})"
            case shape.ExpandOp():
                return f"{values.use(op.value)}{'[None, :]' if op.axis_number == 0 else '[:, None]'}"
            case shape.TransOp():
                return f"tl.trans({values.bare(op.value)})"
            case shape.ReduceOp():
                return self.reduce(op)
            case shape.ScanOp():
                return self.scan(op)
            case shape.DotOp():
                return self.dot(op)
            case ew.CastOp():
                return self.cast(op)
            case ew.NotOp():
                return (
                    f"{values.scalar(op.value)} == 0"
                    if is_bool(element_of(op.value))
                    else f"~{values.scalar(op.value)}"
                )
            case ew.BinaryOp():
                return self.binary(op)
            case ew.SelectOp() if literal_of(op.lhs) is None or literal_of(op.rhs) is None:
                return self.elementwise(op, [values.use(operand) for operand in op.operands])
            case _:
                return self.elementwise(op, [values.scalar(operand) for operand in op.operands])

    def elementwise(self, op: Operation, operands: list[str]) -> str:
        match form := form_of(op):
            case Call():
                return self.values.call(form, *operands)
            case Infix(operator):
                return f"{operands[0]} {operator} {operands[1]}"
            case Prefix(operator):
                return f"{operator}{operands[0]}"
            case None:
                raise self.values.error(f"{op.name} has no form in Triton", op)

    def binary(self, op: ew.BinaryOp) -> str:
        """Infix operators let a number take the type of the other operand; functions are told the type."""
        values = self.values
        lhs, rhs = op.lhs, op.rhs
        if (special := self.with_number(op)) is not None:
            return special
        if isinstance(form_of(op), Call):
            operands = [self.stretched(operand, op) for operand in (lhs, rhs)]
            if isinstance(op, (ew.ShlOp, ew.ShrOp)) or (isinstance(op, ew.PowOp) and not is_float(element_of(lhs))):
                operands.append(str(bit_width(element_of(lhs))))
            return self.elementwise(op, operands)
        if (scaled := self.block_start(op)) is not None:
            return scaled
        both = literal_of(lhs) is not None and literal_of(rhs) is not None
        operands = [values.scalar(lhs) if both else values.use(lhs), values.use(rhs)]
        bounds = static_bounds(op.result) if isinstance(op.result.type, IndexType) else None
        if bounds is not None and not fits_32_bits(bounds):
            operands[0] = f"tl.cast({values.use(lhs)}, tl.int64)"
        return self.elementwise(op, operands)

    def block_start(self, op: ew.BinaryOp) -> str | None:
        """`program * BLOCK_N`: where a block begins that is as long as the blocks before it."""
        lanes = self.lanes.get(op.result, ())
        bounds = static_bounds(op.result)
        if not isinstance(op, ew.MulOp) or not lanes or constant_of(op.rhs) != lanes[0].extent:
            return None
        if bounds is not None and not fits_32_bits(bounds):
            return None
        return f"{self.values.use(op.lhs)} * {self.values.block_size(lanes[0].axis)}"

    def stretched(self, operand: SSAValue, op: ew.BinaryOp) -> str:
        """An operand of a library function; Triton's interpreter mistakes comparisons of scalars among tiles."""
        if shape_of(operand) or not shape_of(op.result) or not is_float(element_of(operand)):
            other = op.rhs if operand is op.lhs else op.lhs
            plain = literal_of(other) is None and not cast(Call, form_of(op)).library
            return self.values.typed(operand) if plain else self.values.scalar(operand)
        literal = literal_of(operand)
        if literal is not None:
            return filled(self.values.extents(op.result), literal, element_of(operand))
        return f"tl.broadcast_to({self.values.bare(operand)}, {self.values.extents(op.result)})"

    def with_number(self, op: ew.BinaryOp) -> str | None:
        """Shorter forms of ops whose second operand is a number."""
        lhs, number = op.lhs, scalar_number(op.rhs)
        if number is None or literal_of(lhs) is not None:
            return None
        text, element = self.values.use(lhs), element_of(lhs)
        match op:
            case ew.ShlOp() | ew.ShrOp() if 0 <= number < bit_width(element):
                return f"{text} {'<<' if isinstance(op, ew.ShlOp) else '>>'} {number}"
            case ew.FloorDivOp() | ew.ModOp() if number > 0 and (is_unsigned(element) or self.is_index_natural(lhs)):
                return f"{text} {'//' if isinstance(op, ew.FloorDivOp) else '%'} {number}"
            case ew.PowOp() if number in (2, 3, 4):
                return " * ".join([text] * int(number))
            case ew.PowOp() if number == -1 and is_float(element):
                return f"1.0 / {text}"
            case _:
                return None

    def is_index_natural(self, value: SSAValue) -> bool:
        return isinstance(value.type, IndexType) and is_natural(value)

    def cast(self, op: ew.CastOp) -> str:
        values = self.values
        source, target = element_of(op.value), element_of(op.result)
        if is_bool(target):
            return f"{values.use(op.value)} != 0"
        if is_float(source) and not is_float(target):
            width = bit_width(target)
            low, high = (0, 2**width - 1) if is_unsigned(target) else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
            return values.call(library("saturate"), values.use(op.value), str(low), str(high), triton_type(target))
        if is_narrow_float(target):
            # by way of f32: Triton's interpreter knows no other way to bf16
            wide = (
                values.use(op.value) if computed_type(source) == "tl.float32" else values.cast(op.value, "tl.float32")
            )
            kept = not self.style.checked and is_kept_narrow(op.result)
            return f"{wide}.to({triton_type(target)}){'' if kept else '.to(tl.float32)'}"
        return values.cast(op.value, triton_type(target))

    # -- tiles

    def iota(self, op: shape.IotaOp) -> str:
        lane, shift = self.values.axes.lane((op.result, 0), op.start), constant_of(op.start) or 0
        place, kind = self.values.lane(lane), triton_type(element_of(op.result))
        place = f"({place} + {shift})" if shift else place
        return place if kind == "tl.int32" and static_bounds(op.start) is not None else f"{place}.to({kind})"

    def is_lane(self, op: shape.IotaOp) -> bool:
        """Whether the numbers are those of the indices along the axis."""
        narrow = triton_type(element_of(op.result)) == "tl.int32" and static_bounds(op.start) is not None
        return narrow and (constant_of(op.start) or 0) == 0

    def in_range(self, op: shape.InRangeOp) -> str:
        limit = limit_of(op.start, op.limit)
        return self.values.inside(self.values.axes.lane((op.result, 0), op.start), Limit(limit.size, limit.shift))

    def reduce(self, op: shape.ReduceOp) -> str:
        value, axis, kind = self.values.use(op.value), op.axis_number, op.kind.data
        element = element_of(op.value)
        if op.is_position:
            return self.position(op)
        if kind is ReduceKind.SUM:
            return f"tl.sum({value}, axis={axis}{_own_type(op)})"
        if kind in (ReduceKind.MAX, ReduceKind.MIN) and not is_float(element):
            narrow = f".to({triton_type(element)})" if bit_width(element) < 32 else ""
            return f"tl.{kind.value}({value}, axis={axis}){narrow}"
        self.values.call(library(COMBINES[kind]))
        return f"tl.reduce({value}, {axis}, {COMBINES[kind]})"

    def position(self, op: shape.ReduceOp) -> str:
        extents = shape_of(op.value)
        place = self.values.places((op.value, op.axis_number))
        if len(extents) == 2:
            spread = "[:, None]" if op.axis_number == 0 else "[None, :]"
            place = f"tl.broadcast_to({place}{spread}, {self.values.extents(op.value)})"
        combine = COMBINES[op.kind.data]
        self.values.call(library(combine))
        narrow = "" if bit_width(element_of(op.result)) == 32 else f".to({triton_type(element_of(op.result))})"
        return f"tl.reduce(({self.values.use(op.value)}, {place}), {op.axis_number}, {combine})[1]{narrow}"

    def scan(self, op: shape.ScanOp) -> str:
        function = "tl.cumsum" if op.kind.data is ReduceKind.SUM else "tl.cumprod"
        reverse = "" if op.reverse is None else ", reverse=True"
        return f"{function}({self.values.use(op.value)}, axis={op.axis_number}{reverse}{_own_type(op)})"

    def dot(self, op: shape.DotOp) -> str:
        """`tl.dot`, or a product that is written out where sides are too short for it to pay."""
        element, wide = element_of(op.lhs), element_of(op.result)
        total = self.values.use(op.accumulator)
        if is_written_out(op):
            lhs, rhs = (self.dot_operand(value, computed_type(wide)) for value in (op.lhs, op.rhs))
            product = f"tl.sum({lhs}[:, :, None] * {rhs}[None, :, :], axis=1{_own_type(op)})"
            return product if _is_zero(op.accumulator) else f"{total} + {product}"
        kind = triton_type(element) if is_narrow_float(element) else computed_type(wide)
        lhs, rhs = (self.dot_operand(value, kind) for value in (op.lhs, op.rhs))
        start = "" if _is_zero(op.accumulator) and wide == f32 else f", {total}"
        return f'tl.dot({lhs}, {rhs}{start}, input_precision="{self.style.precision}")'

    def dot_operand(self, value: SSAValue, wide: str) -> str:
        kept = not self.style.checked and is_kept_narrow(value)
        own = triton_type(element_of(value)) if kept else computed_type(element_of(value))
        return self.values.use(value) if own == wide else self.values.cast(value, wide)

    def philox(self, op: shape.PhiloxOp) -> None:
        counters = [self.word(value) for value in (op.counter0, op.counter1, op.counter2, op.counter3)]
        keys = [self.word(value) for value in (op.key0, op.key1)]
        hints = [word.name_hint or f"word_{number}" for number, word in enumerate(op.results)]
        names = [self.values.names.new(word, hint) for word, hint in zip(op.results, hints, strict=True)]
        self.lines.add(f"{', '.join(names)} = tl.philox_impl({', '.join([*counters, *keys])})")

    def word(self, value: SSAValue) -> str:
        """A word of 32 bits as an unsigned integer."""
        if (number := scalar_number(value)) is not None:
            return f"tl.full((), {int(number) % 2**32}, tl.uint32)"
        return self.values.use(value) if is_unsigned(element_of(value)) else f"{self.values.use(value)}.to(tl.uint32)"

    # -- control flow

    def loop(self, op: structure.ForOp) -> None:
        names = self.values.names
        counter, *carried = op.body.block.args
        targets: list[str] = []
        for argument, init, following in zip(carried, op.init, op.yielded, strict=True):
            if (outer := self.handed_on(op, init)) is not None:
                targets.append(names.give(argument, outer))
            else:
                targets.append(self.values.define(argument))
                self.lines.add(f"{targets[-1]} = {self.carried(init)}")
            if not self.style.checked and is_updated_in_place(op, argument, following):
                self.in_place[following] = targets[-1]
        counter_name = self.values.define(counter)
        with self.values.block(f"for {counter_name} in range({self.bounds(op)}):"):
            for lane in self.lanes.get(counter, ()):
                self.values.define_lane(lane)
            self.block(op.body.block)
            moves = [
                (target, self.carried(value))
                for target, value in zip(targets, op.yielded, strict=True)
                if value not in names or names[value] != target
            ]
            if moves:  # at once: a value may read what another replaces
                self.lines.add(f"{', '.join(t for t, _ in moves)} = {', '.join(v for _, v in moves)}")
        for result, target in zip(op.carried, targets, strict=True):
            names.give(result, target)

    def handed_on(self, op: structure.ForOp, init: SSAValue) -> str | None:
        """The name under which a loop round this one carries a value that this one alone changes."""
        outer = op.parent_op()
        if self.style.checked or not isinstance(outer, structure.ForOp) or init not in outer.body.block.args[1:]:
            return None
        result = op.carried[list(op.init).index(init)]
        place = list[SSAValue](outer.body.block.args).index(init) - 1
        alone = len(list(init.uses)) == 1 and outer.yielded[place] is result
        return self.values.names[init] if alone else None

    def bounds(self, op: structure.ForOp) -> str:
        """The arguments of `range`."""
        lanes = [lane for lane in self.lanes.get(op.body.block.args[0], ()) if op.step_size % lane.extent == 0]
        size = self.values.block_size(lanes[0].axis) if lanes else str(op.step_size)
        if lanes and lanes[0].extent != op.step_size:
            size = f"{op.step_size // lanes[0].extent} * {size}"
        step = "" if op.step_size == 1 else f", {size}"
        low, high, start = self.values.bare(op.low), self.values.bare(op.high), op.low.owner
        if lanes and isinstance(start, ew.MulOp) and constant_of(start.rhs) == lanes[0].extent:
            low = f"{self.values.use(start.lhs)} * {self.values.block_size(lanes[0].axis)}"
        return f"{low}, {high}{step}" if step or low != "0" else high

    def carried(self, value: SSAValue) -> str:
        """A value carried by a loop, with the type that it keeps."""
        if isinstance(value.type, IndexType) and static_bounds(value) is not None:
            return f"tl.cast({self.values.use(value)}, tl.int64)"
        return self.values.scalar(value)

    def branch(self, op: structure.IfOp) -> None:
        """`if` and `else`; what programs share among them is one `if` beside the other, since nested ones take more of
        the registers that threads meet by."""
        sections = [] if self.style.checked else sections_of(op)
        if len(sections) > 2:
            for section in sections:
                place = self.values.use(section.place)
                bounds = [f"{place} >= {section.low}"] if section.low is not None else []
                bounds += [f"{place} < {section.high}"] if section.high is not None else []
                with self.values.block(
                    f"if {' & '.join(f'({each})' if len(bounds) > 1 else each for each in bounds)}:"
                ):
                    self.block(section.block)
            return
        with self.values.block(f"if {self.values.bare(op.condition)}:"):
            self.block(op.then.block)
        if op.otherwise is not None and not isinstance(op.otherwise.block.first_op, structure.YieldOp):
            with self.values.block("else:"):
                self.block(op.otherwise.block)


def _decorator(plain: Sequence[str]) -> str:
    """Scalars of any value are not looked at when a kernel is launched: every value would make a variant."""
    if not plain:
        return "@triton.jit"
    return f"@triton.jit(do_not_specialize=[{', '.join(repr(name) for name in plain)}])".replace("'", '"')


def _is_untyped(kind: str) -> bool:
    """Whether Triton finds the type of an argument by itself: pointers, and numbers that are f32."""
    return kind.startswith("*") or kind == "fp32"


def _is_zero(value: SSAValue) -> bool:
    """Whether a tile is known to be filled with zeros."""
    match value.owner:
        case shape.ConstOp(number=number):
            return number_of(number) == 0
        case shape.SplatOp(value=scalar):
            return scalar_number(scalar) == 0
        case _:
            return False


def _own_type(op: shape.ReduceOp | shape.ScanOp | shape.DotOp) -> str:
    """Sums of narrow integers would be widened."""
    element = element_of(op.result)
    return f", dtype={triton_type(element)}" if not is_float(element) and bit_width(element) < 32 else ""
