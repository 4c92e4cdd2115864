"""`tp.host`: a Python object, made anew for every call of the program, whose methods are ops with effects.

Calls on one object run in the order of the equivalent nested loops: the calls stand in program order inside a loop
over each dim that they share. A token per object says so in the graph. For `env.reset(i)` and then
`env.step(action)` over (i, t):

    %e0 = sdg.merge {i = 0 : %env, i > 0 : %e2[i - 1, T - 1]} in (i)          before the reset of iteration i
    %first, %e1 = sdg.host @env::@reset(%i[i]) after %e0[i] in (i)
    %et = sdg.merge {t = 0 : %e1[i], t > 0 : %e2[i, t - 1]} in (i, t)         before step t
    %after, %e2 = sdg.host @env::@step(%action[i, t]) after %et[i, t] in (i, t)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from tempo_ir import index as ix
from tempo_ir.dialects import sdg
from tempo_ir.frontend import elementwise as el
from tempo_ir.frontend.description import HostInfo
from tempo_ir.frontend.dims import Dim, dim_names
from tempo_ir.frontend.dtypes import DType, Spec, spec_of
from tempo_ir.frontend.errors import ProgramError, here
from tempo_ir.frontend.recording import Recording, current
from tempo_ir.frontend.tensor import Tensor, record_op
from tempo_ir.index import Domain, Expr

Returns = Spec | DType | Sequence[Spec | DType] | None


class Host:
    """A host object; `host.method(args, returns=...)` records a call."""

    def __init__(self, recording: Recording, name: str):
        self._recording = recording
        self._name = name
        self._first = recording.add(sdg.HostStateOp(name), here(), name).results[0]
        self._calls: list[sdg.HostOp] = []
        recording.finishers.append(self._complete)

    def __getattr__(self, method: str) -> Method:
        if method.startswith("__"):
            raise AttributeError(method)
        return Method(self, method)

    def record(
        self,
        method: str,
        arguments: Sequence[Any],
        returns: Returns,
        over: Dim | Sequence[Dim],
        gradient: str | None = None,
        vectorized: str | None = None,
        along: Dim | Sequence[Dim] | None = None,
    ) -> Any:
        """Append a call; its token is set when the program is complete."""
        specs = _specs(returns)
        tensors = [el.as_tensor(argument) for argument in arguments]
        if gradient is not None:
            _check_gradient(method, gradient, tensors, specs)
        _check_vectorized(method, vectorized, along, tensors)

        def make(*accesses: sdg.Access, domain: Domain) -> sdg.HostOp:
            types = [spec.type for spec in specs]
            after = self._first
            return sdg.HostOp(
                self._name, method, *accesses, after=after, returns=types, gradient=gradient, domain=domain
            )

        dims = dim_names(over, f"the call of {self._name}.{method}")
        op = record_op(self._recording, make, tensors, dims, None, {})
        assert isinstance(op, sdg.HostOp)
        if vectorized is not None:
            form = sdg.Vectorized(vectorized, _vectorized_dims(method, along, op.domain.dims))
            op.vectorized_attr = sdg.VectorizedAttr(form)
        self._calls.append(op)
        results = tuple(Tensor(self._recording, value) for value in op.outputs)
        if returns is None:
            return None
        return results[0] if isinstance(returns, Spec | DType) else results

    def _complete(self) -> None:
        """Order the calls by tokens."""
        Ordering(self._recording, self._name).sequence(nested(self._calls, 0), (), sdg.Access(self._first))


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a host object, which a program calls."""

    host: Host
    name: str

    def __call__(
        self,
        *arguments: Any,
        returns: Returns = None,
        over: Dim | Sequence[Dim] = (),
        gradient: str | None = None,
        vectorized: str | None = None,
        along: Dim | Sequence[Dim] | None = None,
    ) -> Any:
        """Record a call over the dims that the arguments vary over, and `over`.

        `returns` says what Python gives back: one spec, a tuple of specs, or None for a call without result.
        `gradient` names the method that carries gradients back: it gets the arguments and the gradients of the float
        results, and returns those of the float arguments (one, or a tuple). It is called once per point, for all points
        of a step of training after the calls themselves, in their reverse order.

        `vectorized` names the method that makes the calls at all points of a dim at once, if the compiler sees to that:
        it gets each argument with the points of the dim as axis 0 (of several dims as the first axes, in the order in
        which they were declared), returns each result so, and does to the object what the calls do one by one, in
        order. Where there is no point it is not called. `along` says which dims it takes, by default all that the call
        varies over. Calls that carry gradients back are made point by point. For
        `env.step(b, action, vectorized="step_all", along=b)`, over (t, b), the object has

            def step(self, b, action):          # (), (2,), once per (t, b)
            def step_all(self, b, action):      # (B,), (B, 2), once per t
        """
        return self.host.record(self.name, arguments, returns, over, gradient, vectorized, along)


@dataclass(frozen=True, slots=True)
class Loop:
    """The calls inside the loop over a dim, in order."""

    dim: str
    body: list[Loop | sdg.HostOp]


def nested(calls: Sequence[sdg.HostOp], depth: int) -> list[Loop | sdg.HostOp]:
    """Calls in program order as loops: neighbours that share the next dim share its loop."""
    result: list[Loop | sdg.HostOp] = []
    group: list[sdg.HostOp] = []
    for position, call in enumerate(calls):
        dims = call.domain.dims
        if len(dims) <= depth:
            result.append(call)
            continue
        group.append(call)
        following = calls[position + 1].domain.dims if position + 1 < len(calls) else ()
        if len(following) <= depth or following[depth] != dims[depth]:
            result.append(Loop(dims[depth], nested(group, depth + 1)))
            group = []
    return result


@dataclass(frozen=True, slots=True)
class Ordering:
    """Sets the tokens of calls so that they run in the order of nested loops."""

    recording: Recording
    name: str

    def sequence(self, items: list[Loop | sdg.HostOp], dims: tuple[str, ...], token: sdg.Access) -> sdg.Access:
        """Order what stands inside the loops over `dims`; gives the token after it, at their current point."""
        for item in items:
            token = self.loop(item, dims, token) if isinstance(item, Loop) else self.call(item, token)
        return token

    def call(self, op: sdg.HostOp, token: sdg.Access) -> sdg.Access:
        """One call after `token`; gives its own token at the current point."""
        op.with_access(len(op.operands) - 1, token.value, token.index)
        return sdg.Access(op.next_token, symbols(op.domain.dims))

    def loop(self, loop: Loop, outer: tuple[str, ...], token: sdg.Access) -> sdg.Access:
        """The calls of a loop; gives the token after its last step."""
        dims = (*outer, loop.dim)
        merge = sdg.MergeOp(domain=Domain(dims), result_type=sdg.TokenType())
        self.recording.block.insert_op_before(merge, first_call(loop))
        merge.location = first_call(loop).location
        after = self.sequence(loop.body, dims, sdg.Access(merge.result, symbols(dims)))
        dim, bound = ix.Sym(loop.dim), self.recording.dims[loop.dim]
        merge.set_cases(
            [
                (ix.compare("=", dim, 0), token),
                (ix.compare(">", dim, 0), at(after, loop.dim, dim - 1)),
            ]
        )
        return at(after, loop.dim, bound - 1)


def first_call(item: Loop | sdg.HostOp) -> sdg.HostOp:
    """The first call inside a loop."""
    return first_call(item.body[0]) if isinstance(item, Loop) else item


def symbols(dims: Sequence[str]) -> tuple[Expr, ...]:
    """The current point of the dims."""
    return tuple(ix.Sym(name) for name in dims)


def at(token: sdg.Access, dim: str, point: Expr) -> sdg.Access:
    """The token read at another point of one dim."""
    return sdg.Access(token.value, ix.substitute(token.index, {dim: point}))


def _check_gradient(method: str, gradient: object, arguments: Sequence[Tensor], returns: Sequence[Spec]) -> None:
    """Raises ProgramError for a gradient that is no name, and for a call without floats on either side."""
    if not isinstance(gradient, str) or not gradient.isidentifier():
        raise ProgramError(f"gradient={gradient!r} names no method: give the name of a method of the object, as a text")
    if not any(argument.dtype.kind == "float" for argument in arguments):
        raise ProgramError(f"{method} gets no float, so gradient='{gradient}' has nothing to return: leave it out")
    if not any(spec.dtype.kind == "float" for spec in returns):
        raise ProgramError(f"{method} returns no float, so gradient='{gradient}' is never called: leave it out")


def _check_vectorized(
    method: str, vectorized: object, along: Dim | Sequence[Dim] | None, arguments: Sequence[Tensor]
) -> None:
    """Raises ProgramError for a vectorised form that is no name, that is given nothing, or that is missing."""
    if vectorized is None:
        if along is not None:
            raise ProgramError(f"{method}: along= says of which dims vectorized= takes the points: name that method")
        return
    if not isinstance(vectorized, str) or not vectorized.isidentifier():
        what = f"vectorized={vectorized!r} names no method"
        raise ProgramError(f"{what}: give the name of a method of the object, as a text")
    if not arguments:
        what = f"{method} gets no argument, so vectorized='{vectorized}' could not tell how many points there are"
        raise ProgramError(f"{what}: pass the number of the point")


def _vectorized_dims(method: str, along: Dim | Sequence[Dim] | None, dims: tuple[str, ...]) -> tuple[str, ...]:
    """The dims that a vectorised form takes. Raises ProgramError for one that the call does not vary over, and where
    there is none."""
    named = dims if along is None else dim_names(along, f"the vectorised form of {method}")
    if not named:
        what = f"{method} varies over no dim" if along is None else "along= names no dim"
        raise ProgramError(f"{what}, so there are no points to take at once: leave vectorized= out")
    if unknown := [dim for dim in named if dim not in dims]:
        what = f"{method} does not vary over {unknown[0]}, but over {', '.join(dims) or 'no dim'}"
        raise ProgramError(f"{what}: say over=, or leave it out of along=")
    return named


def _specs(returns: Returns) -> list[Spec]:
    listed = [] if returns is None else list(returns) if isinstance(returns, Sequence) else [returns]
    return [spec_of(spec, "returns") for spec in listed]


def host(make: Callable[[], object], name: str | None = None) -> Host:
    """A Python object that the program calls; `make` makes a new one for every call of the program.

    Its methods are ops: `obs = env.reset(i, returns=tp.f32[8, 4])`. Arguments arrive as numpy arrays that cannot be
    written to. Raises ProgramError for a `make` that cannot be called.
    """
    if not callable(make):
        raise ProgramError(f"tp.host takes a function that makes the object of a call, as lambda: {make!r}")
    recording = current()
    chosen = unique(name or _name_of(make), recording)
    recording.hosts[chosen] = HostInfo(chosen, make, here())
    return Host(recording, chosen)


def unique(name: str, recording: Recording) -> str:
    """A name that no other host object of the program has."""
    count = 1
    chosen = name
    while chosen in recording.hosts:
        count += 1
        chosen = f"{name}_{count}"
    return chosen


def _name_of(make: Callable[[], object]) -> str:
    """The class that `make` names: `CartPoles`, or the first name in `lambda: CartPoles(envs)`."""
    name = getattr(make, "__name__", "object")
    if name == "<lambda>":
        names = make.__code__.co_names
        name = names[0] if names else "object"
    lowered = name.lower()
    return lowered if SSAValue.is_valid_name(lowered) else "object"


class Printer:
    """The host object behind `tp.log`: one line of `label=value` per call."""

    def __init__(self, labels: Sequence[Sequence[str]]):
        self._labels = labels

    def __getattr__(self, method: str) -> Callable[..., None]:
        number = method.removeprefix("line")
        if not method.startswith("line") or not number.isdigit():
            raise AttributeError(method)
        return partial(print_line, self._labels[int(number)])


def print_line(labels: Sequence[str], *values: Any) -> None:
    """Print `i=3 loss=0.25`."""
    pairs = zip(labels, values, strict=True)
    texts = (f"{label}={value:g}" if np.ndim(value) == 0 else f"{label}={value}" for label, value in pairs)
    print(*texts, flush=True)


def log(*values: Any, **named: Any) -> None:
    """Print a line while the program runs: `tp.log(i, loss=loss)` prints `i=3 loss=0.25`, once per point."""
    recording = current()
    if recording.log is None:
        labels: list[list[str]] = []
        recording.log = (host(partial(Printer, labels), "log"), labels)
    printer, labels = recording.log
    positional = [
        str(value) if isinstance(value, Dim) else _label(value, position) for position, value in enumerate(values)
    ]
    labels.append([*positional, *named])
    printer.record(f"line{len(labels) - 1}", [*values, *named.values()], None, ())


def _label(value: Any, position: int) -> str:
    name = value.value.name_hint if isinstance(value, Tensor) else None
    return name or f"value{position}"
