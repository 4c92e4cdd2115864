"""Random sdg programs over (b, t): reads of every kind, recurrences either way, contractions, cases.

A seed gives one program; the passes must not change its outputs, and its gradients are those of central differences.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

VECTOR, SCALAR, MATRIX = "tensor<3xf64>", "tensor<f64>", "tensor<3x3xf64>"
BOUNDS = {"b": "B", "t": "T"}


@dataclass(frozen=True)
class Value:
    """A vector or scalar over some of the dims."""

    name: str
    dims: tuple[str, ...]
    type: str = VECTOR

    def read(self, **entries: str) -> str:
        """`%v[b, t - 1]` for `t="t - 1"`."""
        index = ", ".join(entries.get(dim, dim) for dim in self.dims)
        return f"%{self.name}[{index}]" if self.dims else f"%{self.name}"


def domain(dims: tuple[str, ...]) -> str:
    return f" in ({', '.join(dims)})" if dims else ""


@dataclass
class Generator:
    """Writes one program."""

    random: random.Random
    lines: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    def fresh(self) -> str:
        return f"v{len(self.values)}"

    def add(self, name: str, dims: tuple[str, ...], type_: str, text: str) -> Value:
        self.lines.append(f"  %{name} = {text}")
        self.values.append(Value(name, dims, type_))
        return self.values[-1]

    def pick(self, type_: str | None = None, over: str | None = None) -> Value:
        fitting = [v for v in self.values if type_ in (None, v.type) and (over is None or over in v.dims)]
        return self.random.choice(fitting)

    @staticmethod
    def union(*values: Value) -> tuple[str, ...]:
        return tuple(dim for dim in BOUNDS if any(dim in value.dims for value in values))

    def start(self) -> None:
        for name, dims, type_ in (("x", ("b", "t"), VECTOR), ("y", ("t",), VECTOR), ("k", (), SCALAR)):
            self.lines.append(f'  %{name} = sdg.input "{name}"{domain(dims)} : {type_}')
            self.values.append(Value(name, dims, type_))
        self.lines.append(f'  %w = sdg.input "w" : {MATRIX}')
        self.lines.append(f"  %zero = sdg.constant 0.0 : {VECTOR}")
        self.lines.append(f"  %half = sdg.constant 0.5 : {SCALAR}")
        self.values.append(Value("half", (), SCALAR))

    def step(self) -> None:
        kinds = (self.unary, self.binary, self.binary, self.contract, self.total, self.clamped, self.ranged)
        more = (self.shifted, self.recurrence, self.recurrence, self.chosen, self.softmax, self.reduced_over_batch)
        self.random.choice((*kinds, *more))()

    @staticmethod
    def applied(name: str, value: Value) -> str:
        """An op of one operand that keeps the type."""
        return f"sdg.{name} {value.read()}{domain(value.dims)} : ({value.type}) -> {value.type}"

    def unary(self) -> None:
        value, name = self.pick(), self.random.choice(("tanh", "sin", "neg", "sigmoid", "cos"))
        self.add(self.fresh(), value.dims, value.type, self.applied(name, value))

    def binary(self) -> None:
        lhs, rhs = self.pick(), self.pick()
        name = self.random.choice(("add", "sub", "mul", "maximum", "minimum"))
        type_ = VECTOR if VECTOR in (lhs.type, rhs.type) else SCALAR
        dims = self.union(lhs, rhs)
        types = f"({lhs.type}, {rhs.type}) -> {type_}"
        self.add(self.fresh(), dims, type_, f"sdg.{name} {lhs.read()}, {rhs.read()}{domain(dims)} : {types}")

    def contract(self) -> None:
        value = self.pick(VECTOR)
        spec = self.random.choice(('"a,ab->b"', '"a,ba->b"', '"a,ab->a"'))
        types = f"({VECTOR}, {MATRIX}) -> {VECTOR}"
        text = f"sdg.contract {spec} {value.read()}, %w{domain(value.dims)} : {types}"
        self.add(self.fresh(), value.dims, VECTOR, text)

    def total(self) -> None:
        value, name = self.pick(VECTOR), self.random.choice(("sum", "mean", "max"))
        text = f"sdg.{name} {value.read()} axes [0]{domain(value.dims)} : ({VECTOR}) -> {SCALAR}"
        self.add(self.fresh(), value.dims, SCALAR, text)

    def clamped(self) -> None:
        value = self.pick(over="t")
        entry = self.random.choice(("max(t - 1, 0)", "min(t + 1, T - 1)", "T - 1 - t", "t mod 2", "t floordiv 2"))
        text = f"sdg.neg {value.read(t=entry)}{domain(value.dims)} : ({value.type}) -> {value.type}"
        self.add(self.fresh(), value.dims, value.type, text)

    def ranged(self) -> None:
        value = self.pick(over="t")
        entry = self.random.choice(("0:t + 1", "t:T", "max(0, t - 2):t + 1", "t:min(t + 3, T)", "0:T", "0:t + 1:2"))
        text = f"sdg.sum {value.read(t=entry)} axes [0]{domain(value.dims)} : ({value.type}) -> {value.type}"
        self.add(self.fresh(), value.dims, value.type, text)

    def reduced_over_batch(self) -> None:
        value = self.pick(over="b")
        dims = tuple(dim for dim in value.dims if dim != "b")
        text = f"sdg.sum {value.read(b='0:B')} axes [0]{domain(dims)} : ({value.type}) -> {value.type}"
        self.add(self.fresh(), dims, value.type, text)

    def shifted(self) -> None:
        value = self.pick(VECTOR, over="t")
        cond, entry = self.random.choice((("t > 0", "t - 1"), ("t < T - 1", "t + 1")))
        other = "t = 0" if entry == "t - 1" else "t = T - 1"
        text = f"sdg.merge {{{other} : %zero, {cond} : {value.read(t=entry)}}}{domain(value.dims)}"
        self.add(self.fresh(), value.dims, VECTOR, f"{text} : ({VECTOR}, {VECTOR}) -> {VECTOR}")

    def recurrence(self) -> None:
        """`s[t] = h[t - 1]` or `h[t + 1]`, `h = tanh(0.5 * s + v)`, perhaps through a contraction."""
        value = self.pick(VECTOR, over="t")
        number, where = len(self.values), domain(value.dims)
        s, h = Value(f"s{number}", value.dims), Value(f"h{number}", value.dims)
        first, rest, entry = self.random.choice((("t = 0", "t > 0", "t - 1"), ("t = T - 1", "t < T - 1", "t + 1")))
        types = f"({VECTOR}, {VECTOR}) -> {VECTOR}"
        self.lines.append(f"  %{s.name} = sdg.merge {{{first} : %zero, {rest} : {h.read(t=entry)}}}{where} : {types}")
        scaled = Value(f"m{number}", value.dims)
        if self.random.random() < 0.5:
            body = f'sdg.contract "a,ab->b" {s.read()}, %w{where} : ({VECTOR}, {MATRIX}) -> {VECTOR}'
        else:
            body = f"sdg.mul {s.read()}, %half{where} : ({VECTOR}, {SCALAR}) -> {VECTOR}"
        self.lines.append(f"  %{scaled.name} = {body}")
        self.lines.append(f"  %q{number} = sdg.add {scaled.read()}, {value.read()}{where} : {types}")
        self.add(h.name, value.dims, VECTOR, self.applied("tanh", Value(f"q{number}", value.dims)))

    def chosen(self) -> None:
        lhs, rhs = self.pick(VECTOR), self.pick(VECTOR)
        dims = self.union(lhs, rhs)
        mask = "tensor<3xi1>"
        number = len(self.values)
        types = f"({VECTOR}, {VECTOR}) -> {mask}"
        self.lines.append(f"  %c{number} = sdg.lt {lhs.read()}, {rhs.read()}{domain(dims)} : {types}")
        cond = Value(f"c{number}", dims).read()
        text = f"sdg.select {cond}, {rhs.read()}, {lhs.read()}{domain(dims)} : ({mask}, {VECTOR}, {VECTOR}) -> {VECTOR}"
        self.add(self.fresh(), dims, VECTOR, text)

    def softmax(self) -> None:
        value = self.pick(VECTOR)
        text = f"sdg.softmax {value.read()} axis 0{domain(value.dims)} : ({VECTOR}) -> {VECTOR}"
        self.add(self.fresh(), value.dims, VECTOR, text)


def random_program(seed: int, steps: int = 10, *, gradients: bool = False) -> str:
    """The text of the program of a seed; outputs "y0", "y1", and with `gradients` "loss" and those by all inputs."""
    generator = Generator(random.Random(seed))
    generator.start()
    for _ in range(steps):
        generator.step()
    made = generator.values[4:]
    lines = list(generator.lines)
    for number, value in enumerate(made[-2:]):
        lines.append(f'  sdg.output "y{number}" {value.read()}{domain(value.dims)} : {value.type}')
    if gradients:
        lines += _gradients(generator)
    body = "\n".join(lines)
    return f"sdg.program @p dims(b: B, t: T) where B >= 1 and T >= 1 {{\n{body}\n}}"


def _gradients(generator: Generator) -> list[str]:
    inputs = (("x", ("b", "t"), VECTOR), ("y", ("t",), VECTOR), ("k", (), SCALAR), ("w", (), MATRIX))
    terms = generator.values[4:][-3:]
    lines: list[str] = []
    total: Value | None = None
    for number, value in enumerate(terms):
        if value.type == VECTOR:
            text = f"sdg.sum {value.read()} axes [0]{domain(value.dims)} : ({VECTOR}) -> {SCALAR}"
            lines.append(f"  %l{number} = {text}")
            value = Value(f"l{number}", value.dims, SCALAR)
        if total is None:
            total = value
            continue
        dims = generator.union(total, value)
        text = f"sdg.add {total.read()}, {value.read()}{domain(dims)} : ({SCALAR}, {SCALAR}) -> {SCALAR}"
        lines.append(f"  %a{number} = {text}")
        total = Value(f"a{number}", dims, SCALAR)
    assert total is not None
    lines.append(f'  sdg.output "loss" {total.read()}{domain(total.dims)} : {SCALAR}')
    for key, dims, type_ in inputs:
        types = f"({SCALAR}, {type_}) -> {type_}"
        lines.append(f"  %d{key} = sdg.grad %{total.name} wrt %{key} allow_unused{domain(dims)} : {types}")
        lines.append(f'  sdg.output "d{key}" {Value(f"d{key}", dims).read()}{domain(dims)} : {type_}')
    return lines
