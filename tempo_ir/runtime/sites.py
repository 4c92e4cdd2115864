"""What Python runs within a native program: host calls, leaves without a tile form, errors, what ends a dim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tempo_ir.dialects import loop
from tempo_ir.lowering.llvm.host import Site
from tempo_ir.reference.calls import check_end, make_host
from tempo_ir.reference.dtypes import Array
from tempo_ir.runtime.frames import Callee, Frame
from tempo_ir.runtime.rows import Rows, Run

if TYPE_CHECKING:
    from tempo_ir.runtime.calls import Request


class Course:
    """How a call goes: the bounds that hold now, what Python raised in it, whether Ctrl-C was pressed, and whether the
    user's code is running."""

    def __init__(self) -> None:
        self.bounds: Mapping[str, int] = {}
        self.error: BaseException | None = None
        self.interrupted = self.in_method = False

    def begin(self, bounds: Mapping[str, int]) -> None:
        """A call begins."""
        self.bounds, self.error, self.interrupted, self.in_method = bounds, None, False, False

    def ask(self) -> int:
        """1 if the call is to stop."""
        return 1 if self.error is not None or self.interrupted else 0

    def interrupt(self, *_: object) -> None:
        """Ctrl-C: the call is to stop, and so is a method of a host object, which may never come back."""
        self.interrupted = True
        if self.in_method:
            raise KeyboardInterrupt

    def method(self, run: Run) -> Run:
        """What runs the user's code, known to be running."""

        def runs(values: Sequence[int]) -> None:
            try:
                self.in_method = True
                run(values)
            finally:
                self.in_method = False

        return runs

    def finish(self) -> None:
        """Raise what was raised in the call."""
        if self.error is not None:
            raise self.error
        if self.interrupted:
            raise KeyboardInterrupt


class Sites:
    """The sites of a program, run on the memory of one call at a time; `course` hears what is raised."""

    def __init__(self, callee: Callee, frame: Frame, sites: Sequence[Site], course: Course):
        self._callee, self._frame, self._sites, self._course = callee, frame, sites, course
        touched = {operand for site in sites for operand in site.op.operands}
        self._slots = {n: slot for n, slot in enumerate(frame.slots) if slot.buffer.value in touched}
        owned = {slot.buffer.value for slot in self._slots.values() if slot.buffer.owner}
        self._moving = [n for n, site in enumerate(sites) if not owned.isdisjoint(site.op.operands)]
        self._rows = Rows(frame.meanings)
        self._runs: list[Run | None] = [None] * len(sites)
        self._objects: dict[str, Any] = {}
        self._request: Request | None = None

    def place(self, number: int, array: Array) -> None:
        """The buffer of a number lies in an array."""
        slot = self._slots.get(number)
        if slot is not None:
            self._rows.place(slot.buffer.value, array.reshape(-1).view(slot.buffer.dtype))

    def begin(self, request: Request) -> None:
        """A call begins, whose arrays are in their places: host objects are made anew."""
        self._request = request
        self._rows.rebind(self._frame.bounds)
        for name, op in self._callee.hosts.items():
            self._objects[name] = make_host(name, request.hosts, op)

    def end(self) -> None:
        """Forget what the caller owns."""
        self._request = None
        self._objects.clear()
        for slot in self._slots.values():
            if slot.buffer.owner:
                self._rows.forget(slot.buffer.value)
        if self._callee.most:
            self._runs = [None] * len(self._sites)
        for number in self._moving:
            self._runs[number] = None

    def function(self, number: int, scalars: Any, first: int) -> Callable[[], int]:
        """What native code calls at a site; the values of the iterators lie in the scalars, from `first` on."""
        course, last = self._course, first + len(self._sites[number].iterators)

        def call() -> int:
            try:
                run = self._runs[number] or self._made(number)
                run(scalars[first:last])
            except (
                BaseException
            ) as error:  # whatever the user's code raises goes through native code, to be raised after it
                course.error = error
            return 1 if course.error is not None or course.interrupted else 0

        return call

    def _made(self, number: int) -> Run:
        """What runs the operation of a site, for as long as its buffers stay where they are."""
        site, rows = self._sites[number], self._rows
        op, iterators = site.op, site.iterators
        request = self._request
        assert request is not None

        def symbols(values: Sequence[int]) -> dict[str, int]:
            return {**self._course.bounds, **dict(zip(iterators, values, strict=True))}

        def failure(values: Sequence[int]) -> None:
            assert isinstance(op, loop.CheckOp)
            raise rows.failure(op, symbols(values))

        match op:
            case loop.HostOp():
                run = self._runs[number] = self._course.method(rows.host_call(op, self._objects, iterators))
                return run
            case loop.BodyOperation():
                return lambda values: rows.run_body(op, symbols(values), request.seed, request.start)
            case loop.ForOp():
                return lambda values: self._end(op, symbols(values), request)
            case loop.CheckOp():
                return failure
            case _:
                raise AssertionError(f"{op.name} is no operation that Python runs")

    def _end(self, op: loop.ForOp, symbols: Mapping[str, int], request: Request) -> None:
        """A loop has given a bound its value, which `symbols` holds."""
        assert op.gives is not None
        bounds = self._course.bounds = {**self._course.bounds, op.gives: symbols[op.gives]}
        self._rows.rebind(bounds)
        self._runs = [None] * len(self._sites)
        check_end(self._callee.program.space, {name: bounds[name] for name in request.bounds}, op.gives)
