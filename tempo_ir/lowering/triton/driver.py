"""A loop program as a Python driver: loops, guards, launches of Triton kernels, calls of host objects.

    def step_t(guard):
        next_t[(1,)](scalars, T)                      # counts t, and computes the scalars of its step
        if guard:  # t == 0
            copy_kernel_3[(1,)](s, scalars, 4)        # its own stand at 4
        ...

    scalars[1] = -1
    for t in range(T):
        steps.run(step_t, t == 0)                     # launches, or a CUDA graph that repeats them

The text is the same for tensors on a GPU and, in Triton's interpreter, on the CPU. It is the twin of the native host
program (`lowering.llvm.host`). Outputs are new tensors; all other buffers lie in one piece of memory, and where bounds
are known those that are not needed at once share it: `buffers(T)` lists them, `Arena` in `support.py` places them.
What a step is says `steps.py`, which scalars stand in the table `scalars.py`, who waits for copies `copies.py`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import DiagnosticException

from tempo_ir.dialects import loop, sdg
from tempo_ir.dialects.sdg.locations import host_text, op_text
from tempo_ir.dialects.types import Extent, dtype_name, shape_of
from tempo_ir.index import Entry, Expr, Slice, free_symbols
from tempo_ir.index.expr import TRUE
from tempo_ir.lowering.kernels.draws import start_of
from tempo_ir.lowering.kernels.layout import Layout, array_of, most_of
from tempo_ir.lowering.kernels.library import library_op
from tempo_ir.lowering.storage.intervals import buffer_intervals
from tempo_ir.lowering.triton.copies import ends, waited_for
from tempo_ir.lowering.triton.driver_names import (
    LOCALS,
    SUPPORT,
    parameter_names,
    program_name,
    program_of,
    symbol_names,
)
from tempo_ir.lowering.triton.expressions import Number, number_text, triton_type
from tempo_ir.lowering.triton.python_text import condition_text, expression_text, extent_text, tuple_text
from tempo_ir.lowering.triton.scalars import TABLE, Level
from tempo_ir.lowering.triton.steps import WORTH_A_GRAPH, Part, is_idle, parts, scalar_table
from tempo_ir.lowering.triton.values import identifier_of
from tempo_ir.lowering.triton.writer import INDENT, Lines, Names
from tempo_ir.names import fresh_name

WIDTH = 100
"""Of the lines of lists."""


def driver_text(module: ModuleOp) -> str:
    """The file `driver.py` of a module of one loop program and its kernels.

    Raises DiagnosticException where the program still has leaves that are no kernels.
    """
    return _Driver(module).text()


class _Driver:
    def __init__(self, module: ModuleOp):
        self.program, self.table = program_of(module), scalar_table(module)
        self.kernels, self.space = self.table.kernels, self.program.space
        self.functions = {name: identifier_of(kernel) for name, kernel in self.kernels.items()}
        steps = [level.kernel for level in self.table.levels.values()]
        taken = (*SUPPORT, *LOCALS, *self.functions.values(), *steps, program_name(self.program))
        self.names = Names((*taken, *parameter_names(module).values()))
        self.symbols = symbol_names(module, self.names)
        self.most = most_of(self.program)
        self.allocs = [op for op in self.program.operations() if isinstance(op, loop.AllocOp) and _is_used(op)]
        self.has_copies = any(isinstance(op, loop.TransferOp) for op in self.program.walk())
        self.statuses: dict[Operation, str] = {}
        self.iterators: dict[str, str] = {}
        self.hosts: dict[str, str] = {}
        self.layouts: dict[SSAValue, Layout] = {}
        self.used: set[str] = set()
        self.launched: set[str] = set()
        self.lines, self.steps = Lines(), Lines()
        self.guards: dict[str, str] | None = None
        """In the function of a step, its parameters: the conditions that change from step to step, by their text."""

    def text(self) -> str:
        hosts = self.host_names()
        self.head(hosts)
        for op in self.program.body.block.ops:
            if isinstance(op, loop.NamedBufferOperation):
                self.make(op)
        buffers = self.memory()
        head, self.lines = self.lines, Lines()
        self.block(self.program.body.block)
        outputs = [op for op in self.program.body.block.ops if isinstance(op, loop.OutputOp)]
        if self.has_copies:
            self.lines.add("copies.finish()")
        if buffers:
            self.lines.add("arena.give(memory)")
        self.give_back([f"{_string(op.key.data)}: {self.result(op)}" for op in outputs])
        parameters = "".join(f", {self.symbols[name]}" for name in self.space.params)
        options = "seed=0, start=None, hosts=None" + (", extents=None" if self.most else "") + ", graphs=None"
        if self.steps.lines:
            head.add(f"steps = {self.support('Steps')}(device, graphs)")
        signature = f"def {program_name(self.program)}(arrays, *{parameters}, {options}):"
        imports = ["from . import kernels"] if self.launched else []
        bound = [f"{name} = {self.support('Bound')}(kernels.{name})" for name in sorted(self.launched)]
        if self.used:
            imports.append(f"from .support import {', '.join(sorted(self.used))}")
        return "\n".join(
            [
                f'"""The program @{self.program.sym_name.data}: its loops, over Triton kernels."""',
                "",
                "import torch",
                "",
                *imports,
                *(["", *bound] if bound else []),
                *buffers,
                "",
                "",
                signature,
                *self.docstring(hosts),
                *head.lines,
                *(["", *self.steps.lines] if self.steps.lines else []),
                *self.lines.lines,
                "",
            ]
        )

    def docstring(self, hosts: Sequence[str]) -> list[str]:
        """What the function takes and gives."""
        ops = [op for op in self.program.body.block.ops if isinstance(op, loop.NamedBufferOperation)]
        lines = [
            '"""Outputs by name, for `arrays` by name and the bounds.',
            "",
            "`start` says by dim where a call that resumes goes on; `hosts` makes host objects, by name"
            + (f": {', '.join(hosts)}." if hosts else "; there are none."),
            *(
                ["`arena_bytes(buffers(...))` of `support.py` says how much memory it takes beside arrays and outputs."]
                if self.allocs
                else []
            ),
            "`graphs` says whether steps are repeated as CUDA graphs; if not told, on a GPU they are."
            if self.steps.lines
            else "`graphs` says nothing: no step has enough launches for a graph.",
            *(
                f"{self.symbols[bound]} is the most steps that there may be; `extents` takes their number."
                for bound, _ in self.most
            ),
            "",
            *(f"{op.name.partition('.')[2]} {op.key.data}: {self.type_text(op)}" for op in ops),
            '"""',
        ]
        return [f"    {line}" if line else "" for line in lines]

    def type_text(self, op: loop.BufferOperation) -> str:
        layout = Layout.of(op.buffer_type, self.space)
        extents = [*layout.rows, *layout.room]
        return f"{dtype_name(layout.element)}[{', '.join(map(str, extents))}]"

    def host_names(self) -> list[str]:
        """The host objects, by first use."""
        hosts = [op for op in self.program.walk() if isinstance(op, loop.HostOp)]
        return list(dict.fromkeys(op.method.root_reference.data for op in hosts))

    def head(self, hosts: Sequence[str]) -> None:
        """The lines before the loops: where to compute, where dims start, host objects."""
        named = [op for op in self.program.body.block.ops if isinstance(op, loop.InputOp | loop.ParameterOp)]
        where = f"arrays[{_string(named[0].key.data)}].device" if named else "torch.get_default_device()"
        self.lines.add(f"device = {where}")
        operations = [op for op in self.program.walk() if isinstance(op, loop.LoopOperation)]
        used = {symbol for op in operations for _, symbols in op.symbol_uses() for symbol in symbols}
        for name in self.space.names:
            if (symbol := str(start_of(name))) in used:
                self.lines.add(f'{self.symbols[symbol]} = (start or {{}}).get("{name}", 0)')
        for bound, symbol in self.most:
            self.lines.add(f"{self.symbols[str(symbol)]} = {self.symbols[bound]}")
        for name in hosts:
            self.hosts[name] = self.names.unique(name)
            self.lines.add(f'{self.hosts[name]} = {self.support("make_host")}(hosts, "{name}")')

    def support(self, function: str) -> str:
        """A function of `support.py`, which the driver imports."""
        self.used.add(function)
        return function

    # -- memory

    def layout(self, op: loop.BufferOperation) -> Layout:
        if op.buffer not in self.layouts:
            self.layouts[op.buffer] = Layout.of(op.buffer_type, self.space, self.most)
        return self.layouts[op.buffer]

    def make(self, op: loop.NamedBufferOperation) -> None:
        """A buffer of the caller's: an array that is given, or one to give."""
        layout = self.layout(op)
        name = self.names.new(op.buffer, op.buffer.name_hint or op.key.data)
        if not isinstance(op, loop.OutputOp):
            self.lines.add(f"{name} = {self.support('placed')}(arrays[{_string(op.key.data)}])")
            return
        shape = tuple_text([self.extent(extent) for extent in self.shape(op, layout)])
        self.lines.add(f"{name} = torch.zeros({shape}, dtype={_torch_type(layout)}, device=device)")

    def memory(self) -> list[str]:
        """The buffers of a call, which stand in one piece of memory: a function lists them, the program takes them."""
        if not self.allocs and not self.table.size:
            return []
        spans = buffer_intervals(self.program)
        end = max((span.last for span in spans.values()), default=0)
        listed: dict[str, str] = {}
        symbols: set[str] = set()
        if self.table.size:
            listed[TABLE] = f"({self.table.size},), torch.int64, 0, {end}"
        for op in self.allocs:
            layout, span = self.layout(op), spans[op.buffer]
            shape = self.shape(op, layout)
            symbols |= {symbol for extent in shape if isinstance(extent, Expr) for symbol in free_symbols(extent)}
            text = f"{tuple_text([self.extent(extent) for extent in shape])}, {_torch_type(layout)}"
            if _is_status(op.buffer):  # read when the step is over
                listed |= dict.fromkeys(self.status(op), f"{text}, 0, {end}")
                continue
            name = self.names.new(op.buffer, op.buffer.name_hint or "buffer")
            listed[name] = f"{text}, {span.first}, {span.last}{', host=True' if loop.is_host(op.buffer) else ''}"
        sizes = ", ".join(self.symbols[symbol] for symbol in sorted(symbols))
        self.lines.add(f"memory = arena.take(buffers({sizes}), device)")
        self.unpack([*listed])
        if self.has_copies:
            self.lines.add(f"copies = {self.support('Copies')}(memory)")
        for name in dict.fromkeys(self.statuses.values()):
            self.lines.add(f"{name}.zero_()")
        if (level := self.table.level_of(None)) is not None:
            self.compute(level)
        return [
            "",
            f"arena = {self.support('Arena')}()",
            "",
            "",
            f"def buffers({sizes}):",
            f'{INDENT}"""The buffers of a call: shape, type, and from where to where in the program each is needed."""',
            f"{INDENT}return {{",
            *(f'{INDENT * 2}"{name}": {self.support("Buffer")}({text}),' for name, text in listed.items()),
            f"{INDENT}}}",
        ]

    def status(self, op: loop.AllocOp) -> list[str]:
        """The names of the memory that checks read: one for each, so that all may be read when a step is over."""
        found: list[str] = []
        for check in [use.operation for use in op.buffer.uses if isinstance(use.operation, loop.CheckOp)][::-1]:
            found.append(self.names.unique(op.buffer.name_hint or "status"))
            self.statuses[check] = found[-1]
            launch = check.prev_op
            while launch is not None and not (isinstance(launch, loop.LaunchOp) and op.buffer in launch.buffers):
                launch = launch.prev_op
            if launch is not None:
                self.statuses[launch] = found[-1]
        return found

    def compute(self, level: Level) -> None:
        """The launch of the kernel that computes scalars."""
        told = "".join(f", {self.symbols[symbol]}" for symbol in self.table.symbols(level))
        self.launched.add(level.kernel)
        self.lines.add(f"{level.kernel}[(1,)]({TABLE}{told})")

    def give_back(self, results: Sequence[str]) -> None:
        """The outputs by name, on one line where they fit."""
        if len(text := f"return {{{', '.join(results)}}}") <= WIDTH:
            self.lines.add(text)
            return
        with self.lines.continued("return {"):
            for result in results:
                self.lines.add(f"{result},")
        self.lines.add("}")

    def unpack(self, names: Sequence[str]) -> None:
        """The tensors of the memory, by name."""
        text = f"{', '.join(names) if len(names) > 1 else f'({names[0]},)'} = memory.tensors"
        if len(text) <= WIDTH:
            self.lines.add(text)
            return
        with self.lines.continued("("):
            for line in textwrap.wrap(f"{', '.join(names)},", WIDTH):
                self.lines.add(line)
        self.lines.add(") = memory.tensors")

    def shape(self, op: loop.BufferOperation, layout: Layout) -> Sequence[Extent]:
        """The extents of a buffer; one for a whole row whose extents differ from row to row."""
        row = layout.room
        if isinstance(op, loop.OutputOp):
            return (*layout.rows, *row)
        stored = set(layout.type.dim_names)
        if any(isinstance(extent, Expr) and free_symbols(extent) & stored for extent in row):
            return (*layout.rows, layout.pitch)
        return (*layout.rows, *row)

    def rows(self, access: loop.BufferAccess) -> str:
        """`Rows(...)`: the rows of an access."""
        array = array_of(access, self.layouts[access.buffer])
        shape = tuple_text([self.extent(extent) for extent in shape_of(access.type)])
        strides = tuple_text([self.integer(axis.stride) for axis in array.axes])
        wraps = {n: axis.wrap for n, axis in enumerate(array.axes) if axis.wrap is not None}
        rings = ", ".join(f"{n}: ({self.integer(first)}, {slots})" for n, (first, slots) in wraps.items())
        arguments = [self.names[access.buffer], self.integer(array.offset), shape, strides]
        return f"{self.support('Rows')}({', '.join([*arguments, *([f'{{{rings}}}'] if rings else [])])})"

    # -- index expressions

    def integer(self, expression: Expr) -> str:
        return expression_text(expression, self.symbols)

    def extent(self, extent: Extent) -> str:
        return extent_text(extent, self.symbols)

    def point(self, point: Iterable[tuple[str, Entry]]) -> str:
        coordinates = [f'"{name}": {self.entry(value)}' for name, value in point]
        return f"{{{', '.join(coordinates)}}}"

    def entry(self, entry: Entry) -> str:
        """A number, or the points of a range."""
        if isinstance(entry, Slice):
            return f"range({self.integer(entry.start)}, {self.integer(entry.stop)})"
        return self.integer(entry)

    # -- operations

    def block(self, block: Block, level: Level | None = None) -> None:
        """The operations of a block; of a loop's body the scalars of the step are computed first."""
        last = ends(block)
        for part in parts(block, self.table):
            if self.is_step(part, level):
                self.step(part, level)
            else:
                if level is not None:
                    self.compute(level)
                for op in part.ops:
                    self.operation(op)
            level = None
            for op in part.ops:
                for buffer in last.get(op, ()):
                    self.lines.add(f"copies.wait({self.names[buffer]})")
        if level is not None:
            self.compute(level)

    def is_step(self, part: Part, level: Level | None) -> bool:
        """Whether a part of a loop's body is a function, which a graph may repeat and is worth it."""
        total = part.launches + (level is not None)
        return (
            self.guards is None
            and part.repeatable
            and total >= WORTH_A_GRAPH
            and bool(loop.enclosing_loops(part.ops[0]))
        )

    def step(self, part: Part, level: Level | None) -> None:
        """A function of what a graph may repeat, which is told the guards that change from step to step; its call."""
        iterator = loop.enclosing_loops(part.ops[0])[-1].iterator
        name = self.names.unique(f"step_{iterator}")
        self.mirrored(part.ops, self.waits)
        outside, self.lines, self.guards = self.lines, Lines(2), {}
        if level is not None:
            self.compute(level)
        for op in part.ops:
            self.operation(op)
        body, self.lines, guards, self.guards = self.lines, outside, self.guards, None
        self.steps.add(f"def {name}({', '.join(guards.values())}):")
        self.steps.lines += [*body.lines, ""]
        self.lines.add(f"steps.run({', '.join([name, *guards])})")
        self.mirrored(part.ops, self.check)

    def mirrored(self, ops: Iterable[Operation], lines_of: Callable[[Operation], list[str]]) -> None:
        """Lines for operations, equal ones once, under guards as the operations stand."""
        seen: set[str] = set()
        for op in ops:
            if not isinstance(op, loop.IfOp):
                for line in [line for line in lines_of(op) if line not in seen]:
                    self.lines.add(line)
                    seen.add(line)
                continue
            sides = [(f"if {condition_text(op.condition, self.symbols)}:", op.then)]
            sides += [] if op.otherwise is None else [("else:", op.otherwise)]
            wanted = [any(map(lines_of, side.walk())) for _, side in sides]
            for number, (header, side) in enumerate(sides):
                if any(wanted[number:]):
                    with self.lines.block(header):
                        self.mirrored(side.block.ops, lines_of)

    def waits(self, op: Operation) -> list[str]:
        """What is waited for before an operation: copies of rows that it touches."""
        found: list[str] = []
        for buffer, index in waited_for(op):
            place = ""
            if index is not None:
                offset = array_of(loop.BufferAccess.of(buffer, index), self.layouts[buffer]).offset
                place = f", {self.integer(offset)}"
            found.append(f"copies.wait({self.names[buffer]}{place})")
        return found

    def check(self, op: Operation) -> list[str]:
        """What a kernel has left is read and, if it is an error, raised."""
        if not isinstance(op, loop.CheckOp):
            return []
        messages = ", ".join(map(_string, op.messages))
        return [f"{self.support('check')}({self.statuses[op]}, [{messages}], {self.point(op.point)})"]

    def operation(self, op: Operation) -> None:
        if self.guards is None:  # for a step all is waited for before it
            self.mirrored([] if isinstance(op, loop.IfOp) else [op], self.waits)
        match op:
            case loop.ForOp():
                self.loop(op)
            case loop.IfOp():
                self.guard(op)
            case loop.LaunchOp():
                self.launch(op)
            case loop.CheckOp():
                if self.guards is None:  # of a step all come when it is over
                    self.mirrored([op], self.check)
            case loop.HostOp():
                self.host(op)
            case loop.TransferOp():
                way = op.name.partition(".")[2]
                self.lines.add(f"copies.{way}({self.rows(op.source)}, {self.rows(op.target)})")
            case loop.ComputeOp() if (literal := _literal(op)) is not None:
                self.literal(op, literal)
            case loop.ComputeOp() if (inner := library_op(op)) is not None:
                self.library(op, inner)
            case _:
                error = DiagnosticException(f"{op.name} is no kernel yet: run loop-lower-kernels for a GPU first")
                error.op = op  # pyright: ignore[reportAttributeAccessIssue]
                raise error

    def loop(self, op: loop.ForOp) -> None:
        """A loop, upwards or downwards; it may end by its data."""
        step = "" if op.step == 1 else f", {op.step}"
        lower = "" if self.integer(op.lower) == "0" and not step else f"{self.integer(op.lower)}, "
        values = f"range({lower}{self.integer(op.upper)}{step})"
        if (level := self.table.level_of(op)) is not None:
            first = self.integer(self.table.before_first(op))
            self.lines.add(f"{TABLE}[{self.table.counters[op.iterator]}] = {first}")
        shadowed = self.symbols.get(op.iterator)
        name = self.symbols[op.iterator] = self.iterator(op.iterator)
        with self.lines.block(f"for {name} in {f'reversed({values})' if op.down else values}:"):
            self.block(op.body.block, level)
            if op.until is not None:
                buffer, index = op.until
                offset = array_of(loop.BufferAccess.of(buffer, index), self.layouts[buffer]).offset
                with self.lines.block(f"if {self.names[buffer]}.view(-1)[{self.integer(offset)}]:"):
                    if op.gives is not None:
                        self.lines.add(f"{self.symbols[op.gives]} = {name} + 1")
                    self.lines.add("break")
        if op.gives is not None:
            self.give(op.gives)
        if shadowed is not None:
            self.symbols[op.iterator] = shadowed

    def give(self, bound: str) -> None:
        """A loop has given a bound: the caller is told, and what the program declares must hold of it."""
        value = self.symbols[bound]
        with self.lines.block("if extents is not None:"):
            self.lines.add(f"extents[{_string(bound)}] = {value}")
        if self.space.where != TRUE:
            failed = f"the program is declared for `{self.space.where}`, which data that ended a dim fails"
            with self.lines.block(f"if not ({condition_text(self.space.where, self.symbols)}):"):
                error = self.support("ProgramError")
                self.lines.add(f"raise {error}({_string(failed)}, {{{_string(bound)}: {value}}})")
        if (level := self.table.level_of(None, late=True)) is not None:
            self.compute(level)

    def result(self, op: loop.OutputOp) -> str:
        """An output with the rows of the steps that ran."""
        name, layout = self.names[op.buffer], self.layouts[op.buffer]
        whole = Layout.of(op.buffer_type, self.space)
        axes = [*zip((*whole.rows, *whole.room), (*layout.rows, *layout.room), strict=True)]
        if all(extent == room for extent, room in axes):
            return name
        slices = (f":{self.extent(extent)}" if extent != room else ":" for extent, room in axes)
        return f"{name}[{', '.join(slices)}].contiguous()"

    def iterator(self, name: str) -> str:
        """The Python name of an iterator, the same in all of its loops."""
        if name not in self.iterators:
            self.iterators[name] = self.names.unique(name)
        return self.iterators[name]

    def guard(self, op: loop.IfOp) -> None:
        with self.lines.block(self.guard_text(op)):
            self.block(op.then.block)
        if op.otherwise is not None and not all(map(is_idle, op.otherwise.block.ops)):
            with self.lines.block("else:"):
                self.block(op.otherwise.block)

    def guard_text(self, op: loop.IfOp) -> str:
        """The line of a guard; in the function of a step one that changes is a parameter."""
        text = condition_text(op.condition, self.symbols)
        if self.guards is None or not free_symbols(op.condition) & self.table.iterators:
            return f"if {text}:"
        if text not in self.guards:
            self.guards[text] = fresh_name("guard", {*self.guards.values()})
        return f"if {self.guards[text]}:  # {text}"

    def launch(self, op: loop.LaunchOp) -> None:
        """A launch: the grid, then the pointers and the scalars."""
        kernel = self.kernels[op.kernel.root_reference.data]
        open_axes = iter(self.table.grid(op))
        grid = [str(extent) if extent >= 0 else self.extent(next(open_axes)) for extent in kernel.grid.data]
        pointers = [self.names[b] if b in self.names else self.statuses[op] for b in op.buffers]
        arguments = [*pointers, *map(self.integer, self.table.plain(op))]
        if (place := self.table.places.get(op)) is not None:
            arguments += [TABLE, str(place)]
        name = self.functions[kernel.sym_name.data]
        self.launched.add(name)
        self.lines.add(f"{name}[{tuple_text(grid or ['1'])}]({', '.join(arguments)})")

    def host(self, op: loop.HostOp) -> None:
        """A call of a host object: rows in, rows out."""
        name, method = op.callee
        with self.lines.continued(f"{self.support('call_host')}("):
            self.lines.add(f"{self.hosts[name]},")
            self.lines.add(f'("{name}", "{method}"),')
            self.list([self.rows(access) for access in op.reads])
            self.list([self.rows(access) for access in op.writes])
            self.lines.add(f"{_string(host_text(op))},")
            self.lines.add(f"{self.point((*op.point, *op.over))},")
        self.lines.add(")")

    def list(self, items: Sequence[str]) -> None:
        """A list among the lines of a call."""
        if len(items) < 2:
            self.lines.add(f"[{''.join(items)}],")
            return
        with self.lines.continued("["):
            for item in items:
                self.lines.add(f"{item},")
        self.lines.add("],")

    def literal(self, op: loop.ComputeOp, constant: DenseIntOrFPElementsAttr) -> None:
        """Memory filled with numbers."""
        kind = _torch_type(self.layouts[op.writes[0].buffer])
        numbers = ", ".join(number_text(cast(Number, number)) for number in constant.get_values())
        rows = self.rows(op.writes[0])
        with self.lines.continued(f"{rows}.write("):
            for line in textwrap.wrap(f"torch.tensor([{numbers}], dtype={kind})", 100):
                self.lines.add(line)
        shape = tuple_text([self.extent(extent) for extent in shape_of(op.writes[0].type)])
        self.lines.lines[-1] += f".view({shape})"
        self.lines.add(")")

    def library(self, op: loop.ComputeOp, inner: Operation) -> None:
        """What torch computes."""
        reads = [f"{self.rows(access)}.read()" for access in op.reads]
        match inner:
            case sdg.OrderOp():
                name = inner.name.removeprefix("sdg.")
                call = f"{self.support(name)}({reads[0]}, {inner.axis}, {inner.descending})"
            case sdg.ScatterAddOp():
                shape = tuple_text([self.extent(extent) for extent in shape_of(op.writes[0].type)])
                where = f"{_string(op_text(inner))}, {self.point(op.point)}"
                arguments = f"{', '.join(reads)}, {inner.axis}, {shape}, {where}"
                call = f"{self.support('scatter_add')}({arguments})"
            case _:
                raise AssertionError(f"{inner.name} is no op of torch's")
        self.lines.add(f"{self.rows(op.writes[0])}.write({call})")


def _literal(op: loop.ComputeOp) -> DenseIntOrFPElementsAttr | None:
    """The numbers that a leaf fills memory with, if it does nothing else."""
    ops = list(op.body.block.ops)
    if op.ins or len(ops) != 2 or not isinstance(constant := ops[0], sdg.ConstantOp):
        return None
    return constant.value if isinstance(constant.value, DenseIntOrFPElementsAttr) else None


def _is_used(op: loop.AllocOp) -> bool:
    """Whether anything but its end happens to a buffer."""
    return any(not isinstance(use.operation, loop.FreeOp) for use in op.buffer.uses)


def _is_status(buffer: SSAValue) -> bool:
    """Whether a check reads the buffer, which must then be zero at first."""
    return any(isinstance(use.operation, loop.CheckOp) for use in buffer.uses)


def _torch_type(layout: Layout) -> str:
    name = triton_type(layout.element).removeprefix("tl.")
    return "torch.bool" if name == "int1" else f"torch.{name}"


def _string(text: str) -> str:
    """A string in double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
