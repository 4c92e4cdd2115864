"""The host program: the loops of a loop program, with its launches as calls, as one native function.

    i32 @host(void** buffers, i64* scalars, i32 (**callbacks)())

- `buffers` holds the address of each buffer of the program, in order, then that of the kernels' scratch and that of a
  team of threads, null where there is but one (see `parallel`);
  `scalars` the bounds, then the seed, where each dim starts, and the most that a bound may be that a loop gives.
- What only Python can do (host calls, leaves without a tile form, errors) is a *site*: `callbacks[1 + n]` is called,
  the values of the iterators round it behind the scalars. What it returns is not 0 when it raised: the program stops
  and returns 1. A row of integers that is to be put in order is a site too, after native code could not (`order`).
- A loop that gives a bound is a site too, called when it has ended, with the bound.
- Copies to the memory of the host and back are copies of bytes: here it is memory like any other.
- A program that is *clocked*, for a profile, is given one more address, of i64 numbers: the cycles of the call, then of
  each launch how often it ran, its cycles, and those of its shortest run.
- `callbacks[0]` is asked now and then, as loops go on, whether to go on (Ctrl-C).

Between the loops nothing is allocated and nothing else is called: where the buffers lie is decided before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Block, Operation, SSAValue

from tempo_ir.dialects import loop
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.index import And, Binary, Compare, Cond, Const, Expr, MinMax, Or, Sym, Truth
from tempo_ir.lowering.kernels.draws import SEED, start_of
from tempo_ir.lowering.kernels.layout import Layout, array_of, element_bytes, most_of
from tempo_ir.lowering.llvm import order
from tempo_ir.lowering.llvm.parallel import run_name
from tempo_ir.lowering.llvm.target import Target

HOST = "host"
"""The name of the native function."""
POLL_CYCLES = 100_000_000
"""How many cycles may pass between two questions whether to go on, where there is a cycle counter: some 30 ms."""
POLL_ITERATIONS = 64
"""How many iterations of an innermost loop pass between two looks at the clock; a power of two."""
CLOCKS = 3
"""How many numbers a launch of a clocked program has."""

DECLARATIONS = (
    "declare i64 @llvm.smin.i64(i64, i64)",
    "declare i64 @llvm.smax.i64(i64, i64)",
    "declare i64 @llvm.readcyclecounter()",
    "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
)
"""What the host program calls beside the kernels."""

_INSTRUCTIONS: Mapping[str, str] = {"+": "add", "-": "sub", "*": "mul"}
_COMPARISONS: Mapping[str, str] = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "=": "eq", "!=": "ne"}


@dataclass(frozen=True, slots=True)
class Site:
    """An operation that Python runs, and the symbols whose values it is given, in order: iterators, or a bound."""

    op: Operation
    iterators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HostProgram:
    """The text of `@host`, and what its arguments are."""

    text: str
    buffers: tuple[SSAValue, ...]
    scalars: tuple[str, ...]
    sites: tuple[Site, ...]
    launches: tuple[loop.LaunchOp, ...]
    orders: tuple[str, ...]
    """The kinds of keys that it has put in order by functions of `order`."""


def scalar_names(program: loop.ProgramOp) -> tuple[str, ...]:
    """The scalars of a host program: the bounds, the seed, the start of each dim, the most that a bound may be."""
    starts = (start_of(name) for name in program.space.names)
    most = (symbol for _, symbol in most_of(program))
    return (*program.space.params, *(str(symbol) for symbol in (SEED, *starts, *most)))


def lower_host(
    program: loop.ProgramOp,
    kernels: Mapping[str, KernelOp],
    split: Collection[str],
    target: Target,
    *,
    clocked: bool = False,
) -> HostProgram:
    """The host program of a loop program whose leaves are launches, except those that Python runs; launches of the
    kernels in `split` may be cut over threads. One that is `clocked` counts cycles, if the target can."""
    counts = has_cycle_counter(target)
    text = _HostText(program, kernels, split, has_cycle_counter=counts, clocked=clocked and counts)
    text.block(program.body.block)
    sites, launches, orders = tuple(text.sites), tuple(text.launches), tuple(text.orders)
    return HostProgram(text.finished(), text.buffers, scalar_names(program), sites, launches, orders)


def has_cycle_counter(target: Target) -> bool:
    """Whether programs may read how many cycles have passed."""
    return "x86" in target.cpu or target.lanes >= 8


class _HostText:
    """The lines of the function, written as the loops are walked."""

    def __init__(
        self,
        program: loop.ProgramOp,
        kernels: Mapping[str, KernelOp],
        split: Collection[str],
        *,
        has_cycle_counter: bool,
        clocked: bool,
    ):
        self.program = program
        self.kernels = kernels
        self.split = split
        self.has_cycle_counter = has_cycle_counter
        self.clocked = clocked
        self.buffers = tuple(op.buffer for op in program.body.walk() if isinstance(op, loop.BufferOperation))
        self.sites: list[Site] = []
        self.launches: list[loop.LaunchOp] = []
        self.lines: list[str] = []
        self.count = 0
        self.symbols: dict[str, str] = {}
        self.iterators: list[str] = []
        self.exits = 0
        self.orders: dict[str, None] = {}
        """The kinds of keys that native code puts in order."""
        for number, name in enumerate(scalar_names(program)):
            self.symbols[name] = self._loaded("i64", "%scalars", number)
        self.numbers: dict[SSAValue, int] = {buffer: number for number, buffer in enumerate(self.buffers)}
        self.clocks = self._loaded("ptr", "%buffers", len(self.buffers) + 2) if clocked else ""
        self.begin = self.cycles() if clocked else ""

    def finished(self) -> str:
        """The text of the function."""
        if self.clocked:
            self._add_cycles(0, self.begin)
        return "\n".join(
            [
                f"define i32 @{HOST}(ptr %buffers, ptr %scalars, ptr %callbacks) {{",
                "entry:",
                f"  %symbols = getelementptr i64, ptr %scalars, i64 {len(scalar_names(self.program))}",
                "  %deadline = alloca i64",
                "  store i64 0, ptr %deadline",
                *self.lines,
                "  ret i32 0",
                *(["stop:", "  ret i32 1"] if self.exits else []),
                "}",
                "",
            ]
        )

    # -- lines

    def fresh(self) -> str:
        """A new name."""
        self.count += 1
        return f"h{self.count}"

    def value(self, instruction: str) -> str:
        """An instruction that gives a value."""
        name = f"%{self.fresh()}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def label(self, name: str) -> None:
        """A new basic block, entered from the one before too."""
        self.lines += [f"  br label %{name}", f"{name}:"]

    def branch(self, condition: str, then: str, otherwise: str) -> None:
        """End the basic block with a choice, and begin `then`."""
        self.lines += [f"  br i1 {condition}, label %{then}, label %{otherwise}", f"{then}:"]

    def _loaded(self, kind: str, array: str, number: int) -> str:
        address = self.value(f"getelementptr {kind}, ptr {array}, i64 {number}")
        return self.value(f"load {kind}, ptr {address}")

    # -- index expressions

    def integer(self, expression: Expr) -> str:
        """An index expression as an i64."""
        match expression:
            case Const(number):
                return str(number)
            case Sym(name):
                return self.symbols[name]
            case MinMax(op, args):
                result, *others = (self.integer(arg) for arg in args)
                for other in others:
                    result = self.value(f"call i64 @llvm.s{op}.i64(i64 {result}, i64 {other})")
                return result
            case Binary("//" | "%" as op, lhs, rhs):
                return self._division(op, self.integer(lhs), self.integer(rhs))
            case Binary(op, lhs, rhs):
                return self.value(f"{_INSTRUCTIONS[op]} i64 {self.integer(lhs)}, {self.integer(rhs)}")

    def _division(self, op: str, dividend: str, divisor: str) -> str:
        """Rounded down; the remainder has the sign of the divisor."""
        remainder = self.value(f"srem i64 {dividend}, {divisor}")
        signs = self.value(f"xor i64 {remainder}, {divisor}")
        differs = self.value(f"icmp slt i64 {signs}, 0")
        whole = self.value(f"icmp eq i64 {remainder}, 0")
        adjust = self.value(f"select i1 {whole}, i1 false, i1 {differs}")
        if op == "%":
            moved = self.value(f"add i64 {remainder}, {divisor}")
            return self.value(f"select i1 {adjust}, i64 {moved}, i64 {remainder}")
        quotient = self.value(f"sdiv i64 {dividend}, {divisor}")
        less = self.value(f"zext i1 {adjust} to i64")
        return self.value(f"sub i64 {quotient}, {less}")

    def truth(self, condition: Cond) -> str:
        """A condition as an i1."""
        match condition:
            case Truth(value):
                return "true" if value else "false"
            case Compare(op, lhs, rhs):
                return self.value(f"icmp {_COMPARISONS[op]} i64 {self.integer(lhs)}, {self.integer(rhs)}")
            case And(args) | Or(args):
                word = "and" if isinstance(condition, And) else "or"
                result, *others = (self.truth(arg) for arg in args)
                for other in others:
                    result = self.value(f"{word} i1 {result}, {other}")
                return result

    # -- operations

    def block(self, block: Block) -> None:
        """The operations of a block in order."""
        for op in block.ops:
            match op:
                case loop.ForOp():
                    self.loop(op)
                case loop.IfOp():
                    self.guard(op)
                case loop.LaunchOp():
                    self.launch(op)
                case loop.CheckOp():
                    self.check(op)
                case loop.TransferOp():
                    self.transfer(op)
                case loop.AccessOperation():
                    self.call_back(op)
                case _:
                    pass  # buffers and frees: where they lie is decided before

    def loop(self, op: loop.ForOp) -> None:
        """A loop, upwards or downwards; it may end by its data."""
        name = self.fresh()
        lower, upper, step = self.integer(op.lower), self.integer(op.upper), op.step
        first, last, change = lower, upper, step
        if op.down:
            distance = self.value(f"sub i64 {upper}, {lower}")
            steps = self._division("//", self.value(f"sub i64 {distance}, 1"), str(step))
            first = self.value(f"add i64 {lower}, {self.value(f'mul i64 {steps}, {step}')}")
            last, change = lower, -step
        self.label(f"{name}.before")
        self.label(f"{name}.head")
        counter, following = f"%{name}", f"%{name}.next"
        head = f"  {counter} = phi i64 [ {first}, %{name}.before ], [ {following}, %{name}.latch ]"
        self.lines.append(head)
        going = self.value(f"icmp {'sge' if op.down else 'slt'} i64 {counter}, {last}")
        self.branch(going, f"{name}.body", f"{name}.after")
        shadowed = self.symbols.get(op.iterator)
        self.symbols[op.iterator] = counter
        self.iterators.append(op.iterator)
        inner = len(self.iterators) > 1 and not any(isinstance(other, loop.ForOp) for other in op.body.walk())
        self.poll(counter if inner else None)
        self.block(op.body.block)
        if op.until is not None:
            self._until(op, name)
        self.iterators.pop()
        if shadowed is not None:
            self.symbols[op.iterator] = shadowed
        self.label(f"{name}.latch")
        self.lines += [f"  {following} = add i64 {counter}, {change}", f"  br label %{name}.head", f"{name}.after:"]
        if op.gives is not None:
            self._give(op.gives, op, name)

    def _give(self, bound: str, op: loop.ForOp, name: str) -> None:
        """What comes after a loop knows how many iterations there were; Python is told, and checks it."""
        count = f"phi i64 [ %{name}, %{name}.head ], [ %{name}.count, %{name}.until ]"
        self.symbols[bound] = self.value(count)
        self._site(op, f"{self.fresh()}.go")

    def _until(self, op: loop.ForOp, name: str) -> None:
        assert op.until is not None
        self.label(f"{name}.until")
        self.lines.append(f"  %{name}.count = add i64 %{name}, 1")
        address = self.address(loop.BufferAccess.of(*op.until))
        done = self.value(f"icmp ne i8 {self.value(f'load i8, ptr {address}')}, 0")
        self.lines.append(f"  br i1 {done}, label %{name}.after, label %{name}.latch")
        self.lines.append(f"{name}.unreached:")

    def address(self, access: loop.BufferAccess) -> str:
        """Where the first element of an access lies."""
        layout = self.layout(access.buffer)
        offset = self.integer(array_of(access, layout).offset * element_bytes(layout.element))
        return self.value(f"getelementptr i8, ptr {self.pointer(access.buffer)}, i64 {offset}")

    def pointer(self, buffer: SSAValue) -> str:
        """The address of a buffer, loaded where it is used: hundreds of registers that live through the whole function
        are most of the time that code generation takes, and would be loaded from the stack anyway."""
        return self._loaded("ptr", "%buffers", self.numbers[buffer])

    def layout(self, buffer: SSAValue) -> Layout:
        """How a buffer lies in memory."""
        assert isinstance(buffer.type, loop.BufferType)
        return Layout.of(buffer.type, self.program.space, most_of(self.program))

    def transfer(self, op: loop.TransferOp) -> None:
        """A copy of a row, which is one stretch of memory, between the memory of the device and that of the host."""
        layout = self.layout(op.target.buffer)
        target, source = self.address(op.target), self.address(op.source)
        size = self.integer(layout.pitch * element_bytes(layout.element))
        self.lines.append(f"  call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")

    def guard(self, op: loop.IfOp) -> None:
        """A branch."""
        name = self.fresh()
        self.branch(self.truth(op.condition), f"{name}.then", f"{name}.else")
        self.block(op.then.block)
        self.lines += [f"  br label %{name}.after", f"{name}.else:"]
        if op.otherwise is not None:
            self.block(op.otherwise.block)
        self.label(f"{name}.after")

    def launch(self, op: loop.LaunchOp) -> None:
        """A call of a kernel: its pointers, its scalars, and the programs of the grid to run, from and to."""
        kernel = self.kernels[op.kernel.root_reference.data]
        scalars = [self.integer(scalar) for scalar in op.scalars]
        own = len(kernel.body.block.args) - len(op.buffers)
        open_axes = iter(scalars[own:])
        arguments = [f"ptr {self.pointer(buffer)}" for buffer in op.buffers]
        arguments += [f"i64 {scalar}" for scalar in scalars[:own]]
        for extent in kernel.grid.data:
            programs = next(open_axes) if extent < 0 else str(extent)
            arguments += ["i64 0", f"i64 {programs}"]
        arguments.append(f"ptr {self._loaded('ptr', '%buffers', len(self.buffers))}")
        name = kernel.sym_name.data
        if name in self.split:
            name = run_name(name)
            arguments.append(f"ptr {self._loaded('ptr', '%buffers', len(self.buffers) + 1)}")
        begin = self.cycles() if self.clocked else ""
        self.lines.append(f"  call void @{name}({', '.join(arguments)})")
        if self.clocked:
            self._clock(len(self.launches), begin)
        self.launches.append(op)

    def cycles(self) -> str:
        """How many have passed."""
        return self.value("call i64 @llvm.readcyclecounter()")

    def _clock(self, launch: int, begin: str) -> None:
        """Note a run of a launch: one more, its cycles, and the least there were."""
        self._change_clock(CLOCKS * launch + 1, lambda count: self.value(f"add i64 {count}, 1"))
        taken = self._add_cycles(CLOCKS * launch + 2, begin)
        least = CLOCKS * launch + 3
        self._change_clock(least, lambda other: self.value(f"call i64 @llvm.smin.i64(i64 {other}, i64 {taken})"))

    def _add_cycles(self, number: int, begin: str) -> str:
        taken = self.value(f"sub i64 {self.cycles()}, {begin}")
        self._change_clock(number, lambda total: self.value(f"add i64 {total}, {taken}"))
        return taken

    def _change_clock(self, number: int, change: Callable[[str], str]) -> None:
        place = self.value(f"getelementptr i64, ptr {self.clocks}, i64 {number}")
        changed = change(self.value(f"load i64, ptr {place}"))
        self.lines.append(f"  store i64 {changed}, ptr {place}")

    def poll(self, counter: str | None) -> None:
        """Ask whether to go on, if it was long ago that this was asked; in an inner loop, every few iterations."""
        name = self.fresh()
        if counter is not None:
            low = self.value(f"and i64 {counter}, {POLL_ITERATIONS - 1}")
            self.branch(self.value(f"icmp eq i64 {low}, 0"), f"{name}.look", f"{name}.go")
        if self.has_cycle_counter:
            now = self.cycles()
            due = self.value(f"icmp ugt i64 {now}, {self.value('load i64, ptr %deadline')}")
            self.branch(due, f"{name}.ask", f"{name}.go")
            later = self.value(f"add i64 {now}, {POLL_CYCLES}")
            self.lines.append(f"  store i64 {later}, ptr %deadline")
        self._call(0, f"{name}.go")

    def check(self, op: loop.CheckOp) -> None:
        """Where the kernel has left a number, Python makes the error of it."""
        name = self.fresh()
        status = self.value(f"load i64, ptr {self.pointer(op.status)}")
        wrong = self.value(f"icmp ne i64 {status}, 0")
        self.branch(wrong, f"{name}.wrong", f"{name}.right")
        self._site(op, f"{name}.right")

    def call_back(self, op: loop.AccessOperation) -> None:
        """What Python runs; a row of integers is put in order by native code, where it can."""
        after = f"{self.fresh()}.go"
        if op.reads and op.writes:
            source, target = (array_of(access, self.layout(access.buffer)) for access in (op.reads[0], op.writes[0]))
            kind = order.keys_of(op, source, target)
            if kind is not None:
                self.orders[kind] = None
                count = source.axes[0].extent
                arguments = [f"ptr {self.address(access)}" for access in (op.reads[0], op.writes[0])]
                arguments.append(f"i64 {count if isinstance(count, int) else self.integer(count)}")
                result = self.value(f"call i32 @{order.function_name(kind)}({', '.join(arguments)})")
                self.branch(self.value(f"icmp eq i32 {result}, 1"), f"{after}.python", after)
        self._site(op, after)

    def _site(self, op: Operation, after: str) -> None:
        """Python runs an operation, with the values of the iterators round it; of a loop that ended, with the bound."""
        names = self.iterators if not isinstance(op, loop.ForOp) else list(filter(None, [op.gives]))
        for number, name in enumerate(names):
            place = self.value(f"getelementptr i64, ptr %symbols, i64 {number}")
            self.lines.append(f"  store i64 {self.symbols[name]}, ptr {place}")
        self.sites.append(Site(op, tuple(names)))
        self._call(len(self.sites), after)

    def _call(self, number: int, after: str) -> None:
        """Call a call-back and go on at `after` if it returns 0."""
        function = self._loaded("ptr", "%callbacks", number)
        result = self.value(f"call i32 {function}()")
        going = self.value(f"icmp eq i32 {result}, 0")
        self.lines += [f"  br i1 {going}, label %{after}, label %stop", f"{after}:"]
        self.exits += 1


def kernels_of(ops: Sequence[Operation]) -> dict[str, KernelOp]:
    """The tile kernels of a module by name."""
    return {op.sym_name.data: op for op in ops if isinstance(op, KernelOp)}
