"""Ten kernels of deep learning as tile programs, each one function of its block sizes, with arguments to call them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Attribute

from tempo_ir.dialects.tile.attributes import INDEX, UI32, PointerType
from tempo_ir.dialects.tile.builder import KernelBuilder, Value
from tempo_ir.dialects.tile.elementwise import NegOp
from tempo_ir.dialects.tile.structure import KernelOp
from tempo_ir.reference.tile import numpy_dtype

F32 = PointerType(f32)
Array = np.ndarray[Any, Any]


@dataclass
class Case:
    """A kernel with arguments: arrays for pointers (written in place), numbers for scalars."""

    kernel: KernelOp
    arguments: list[Array | int | float]
    grid: tuple[int, ...]
    tolerance: float = 3e-5

    def copies(self) -> list[Array | int | float]:
        """The arguments, with arrays of their own."""
        return [x.copy() if isinstance(x, np.ndarray) else x for x in self.arguments]


def cdiv(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> Array:
    """Normal numbers in f32."""
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def linear_tanh(rng: np.random.Generator, rows: int, block_rows: int = 64, columns: int = 64, depth: int = 64) -> Case:
    """tanh(x @ w + bias), rows symbolic"""
    k = KernelBuilder("linear_tanh", {"x": F32, "w": F32, "bias": F32, "out": F32, "rows": INDEX}, grid=[None])
    x = k.view(k["x"], [k["rows"], depth])
    w, bias = k.view(k["w"], [depth, columns]), k.view(k["bias"], [columns])
    out = k.view(k["out"], [k["rows"], columns])
    m = k.program_id(0) * block_rows
    product = k.dot(
        k.load(x, (m, block_rows), (0, depth)),
        k.load(w, (0, depth), (0, columns)),
        k.const(0.0, f32, [block_rows, columns]),
    )
    k.store(k.tanh(product + k.load(bias, (0, columns))[None, :]), out, (m, block_rows), (0, columns))
    arguments = [
        normal(rng, rows, depth),
        normal(rng, depth, columns, scale=0.125),
        normal(rng, columns),
        np.zeros((rows, columns), np.float32),
        rows,
    ]
    return Case(k.finish(), arguments, (cdiv(rows, block_rows),))


def linear(
    rng: np.random.Generator,
    rows: int,
    columns: int,
    depth: int,
    block_columns: int,
    block_depth: int,
    element: Attribute = f32,
    weights_by_column: bool = True,
) -> Case:
    """x @ w, the weights of type `element` stored [columns][depth] (as torch's) or [depth][columns]"""
    k = KernelBuilder("linear", {"x": F32, "w": PointerType(element), "out": F32}, grid=[columns // block_columns])
    x, out = k.view(k["x"], [rows, depth]), k.view(k["out"], [rows, columns])
    w = k.view(k["w"], [columns, depth] if weights_by_column else [depth, columns])
    n = k.program_id(0) * block_columns
    with k.loop(0, depth, block_depth, [k.const(0.0, f32, [rows, block_columns])]) as loop:
        at = (loop.index, block_depth)
        weight = (
            k.load(w, (n, block_columns), at).to(f32).t
            if weights_by_column
            else k.load(w, at, (n, block_columns)).to(f32)
        )
        loop.carry(k.dot(k.load(x, (0, rows), at), weight, loop.carried[0]))
    k.store(loop.results[0], out, (0, rows), (n, block_columns))
    weights = normal(rng, columns, depth, scale=1 / 16)
    weights = weights if weights_by_column else np.ascontiguousarray(weights.T)
    weights = weights.astype(numpy_dtype(element))
    arguments = [normal(rng, rows, depth), weights, np.zeros((rows, columns), np.float32)]
    return Case(k.finish(), arguments, (columns // block_columns,))


def decode_attention(
    rng: np.random.Generator,
    heads: int,
    kv_heads: int,
    width: int,
    length: int,
    block: int,
    keys_by_width: bool = True,
    capacity: int = 4096,
) -> Case:
    """One step of causal decode attention, online softmax; the K cache is [head][width][time] or [head][time][width]"""
    group = heads // kv_heads
    arguments = {"q": F32, "keys": F32, "values": F32, "out": F32, "length": INDEX}
    k = KernelBuilder("decode_attention", arguments, grid=[kv_heads])
    length_, row = k["length"], [group * width, width, 1]
    q, out = (k.view(k[name], [kv_heads, group, width], row) for name in ("q", "out"))
    by_time = [capacity * width, width, 1]
    values = k.view(k["values"], [kv_heads, length_, width], by_time)
    if keys_by_width:
        keys = k.view(k["keys"], [kv_heads, width, length_], [capacity * width, capacity, 1])
    else:
        keys = k.view(k["keys"], [kv_heads, length_, width], by_time)
    head = k.program_id(0)
    query = k.load(q, head, (0, group), (0, width))
    start = [k.const(-1e30, f32, [group]), k.const(0.0, f32, [group]), k.const(0.0, f32, [group, width])]
    with k.loop(0, length_, block, start) as loop:
        t, (top, norm, total) = loop.index, loop.carried
        if keys_by_width:
            key = k.load(keys, head, (0, width), (t, block))
        else:
            key = k.load(keys, head, (t, block), (0, width)).t
        score = k.dot(query, key, k.const(0.0, f32, [group, block])) * width**-0.5
        score = k.select(k.in_range(t, block, length_)[None, :], score, -1e30)
        new_top = k.maximum(top, k.reduce("max", score, 1))
        p, fade = k.exp(score - new_top[:, None]), k.exp(top - new_top)
        weighted = k.dot(p, k.load(values, head, (t, block), (0, width)), total * fade[:, None])
        loop.carry(new_top, norm * fade + k.reduce("sum", p, 1), weighted)
    _, norm, total = loop.results
    k.store(total / norm[:, None], out, head, (0, group), (0, width))
    keys_shape = (kv_heads, width, capacity) if keys_by_width else (kv_heads, capacity, width)
    return Case(
        k.finish(),
        [
            normal(rng, kv_heads, group, width),
            normal(rng, *keys_shape),
            normal(rng, kv_heads, capacity, width),
            np.zeros((kv_heads, group, width), np.float32),
            length,
        ],
        (kv_heads,),
    )


def rmsnorm_linear(
    rng: np.random.Generator, rows: int, columns: int, depth: int, block_columns: int, element: Attribute = f32
) -> Case:
    """rmsnorm(x) * gain @ w.T"""
    arguments = {"x": F32, "gain": F32, "w": PointerType(element), "out": F32}
    k = KernelBuilder("rmsnorm_linear", arguments, grid=[columns // block_columns])
    n = k.program_id(0) * block_columns
    x = k.load(k.view(k["x"], [rows, depth]), (0, rows), (0, depth))
    gain = k.load(k.view(k["gain"], [depth]), (0, depth))
    scale = k.rsqrt(k.reduce("sum", x * x, 1) * (1.0 / depth) + 1e-5)
    w = k.load(k.view(k["w"], [columns, depth]), (n, block_columns), (0, depth)).to(f32)
    product = k.dot(x * scale[:, None] * gain[None, :], w.t, k.const(0.0, f32, [rows, block_columns]))
    k.store(product, k.view(k["out"], [rows, columns]), (0, rows), (n, block_columns))
    weights = normal(rng, columns, depth, scale=1 / 16)
    weights = weights.astype(numpy_dtype(element))
    tensors = [normal(rng, rows, depth), normal(rng, depth), weights, np.zeros((rows, columns), np.float32)]
    return Case(k.finish(), tensors, (columns // block_columns,))


def rnn(rng: np.random.Generator, batch: int, steps: int, block: int, width: int = 64) -> Case:
    """h = tanh(h @ w + x[b, t]): the whole time loop is inside the kernel"""
    k = KernelBuilder("rnn", {"x": F32, "w": F32, "out": F32, "steps": INDEX, "batch": INDEX}, grid=[None])
    b, strides = k.program_id(0) * block, [k["steps"] * width, width, 1]
    x, out = (k.view(k[name], [k["batch"], k["steps"], width], strides) for name in ("x", "out"))
    w = k.load(k.view(k["w"], [width, width]), (0, width), (0, width))
    with k.loop(0, k["steps"], 1, [k.const(0.0, f32, [block, width])]) as loop:
        t = loop.index
        h = k.tanh(k.dot(loop.carried[0], w, k.load(x, (b, block), t, (0, width))))
        k.store(h, out, (b, block), t, (0, width))
        loop.carry(h)
    arguments = [
        normal(rng, batch, steps, width),
        normal(rng, width, width, scale=0.125),
        np.zeros((batch, steps, width), np.float32),
        steps,
        batch,
    ]
    return Case(k.finish(), arguments, (cdiv(batch, block),))


def matmul(rng: np.random.Generator, rows: int, columns: int, depth: int, block: tuple[int, int, int]) -> Case:
    """a @ b, with blocks of rows, columns and depth that may overhang"""
    block_rows, block_columns, block_depth = block
    grid = cdiv(rows, block_rows), cdiv(columns, block_columns)
    k = KernelBuilder("matmul", {"a": F32, "b": F32, "c": F32}, grid=grid)
    m, n = k.program_id(0) * block_rows, k.program_id(1) * block_columns
    a, b, c = k.view(k["a"], [rows, depth]), k.view(k["b"], [depth, columns]), k.view(k["c"], [rows, columns])
    with k.loop(0, depth, block_depth, [k.const(0.0, f32, [block_rows, block_columns])]) as loop:
        at = (loop.index, block_depth)
        loop.carry(k.dot(k.load(a, (m, block_rows), at), k.load(b, at, (n, block_columns)), loop.carried[0]))
    k.store(loop.results[0], c, (m, block_rows), (n, block_columns))
    arguments = [normal(rng, rows, depth), normal(rng, depth, columns), np.zeros((rows, columns), np.float32)]
    return Case(k.finish(), arguments, grid)


def _cartpole(k: KernelBuilder, state: Sequence[Value], force: Value) -> list[Value]:
    x, v, angle, spin = state
    square = angle * angle
    sine = angle * (square * (square * (1 / 120) - 1 / 6) + 1.0)
    cosine = square * (square * (1 / 24) - 0.5) + 1.0
    push = (force + spin * spin * sine * 0.05) * (1 / 1.1)
    turn = (sine * 9.8 - cosine * push) / ((cosine * cosine * (-0.1 / 1.1) + 4 / 3) * 0.5)
    shove = push - turn * cosine * (0.05 / 1.1)
    following = [x + v * 0.02, v + shove * 0.02, angle + spin * 0.02, spin + turn * 0.02]
    size = [k.maximum(y, k.apply(NegOp, y)) for y in (following[0], following[2])]
    alive = k.maximum(size[0] * (1 / 2.4), size[1] * (1 / 0.2095)) < 1.0
    return [k.select(alive, y, 0.0) for y in following]


def rollout(rng: np.random.Generator, environments: int, steps: int, block: int, width: int = 64) -> Case:
    """A whole rollout: MLP 4-width-width-2, a random action, cart and pole, time inside; state is four rank-1 tiles"""
    names = ("w1", "b1", "w2", "b2", "w3", "b3", "action", "observation")
    types = {**dict.fromkeys(names, F32), "steps": INDEX, "environments": INDEX, "seed": i32}
    k = KernelBuilder("rollout", types, grid=[None])
    e = k.program_id(0) * block
    first, third = k.view(k["w1"], [4, width]), k.view(k["w3"], [2, width])
    w1 = [k.load(first, i, (0, width)) for i in range(4)]
    b1, b2 = (k.load(k.view(k[name], [width]), (0, width)) for name in ("b1", "b2"))
    w2 = k.load(k.view(k["w2"], [width, width]), (0, width), (0, width))
    w3 = k.load(third, 1, (0, width)) - k.load(third, 0, (0, width))
    b3_view = k.view(k["b3"], [2])
    b3 = k.load(b3_view, 1) - k.load(b3_view, 0)
    actions = k.view(k["action"], [k["steps"], k["environments"]])
    observations = k.view(k["observation"], [k["steps"], 4, k["environments"]])
    zero_word = k.const(0, UI32)
    with k.loop(0, k["steps"], 1, [k.const(0.0, f32, [block])] * 4) as loop:
        t, state = loop.index, loop.carried
        for i, s in enumerate(state):
            k.store(s, observations, t, i, (e, block))
        hidden = b1[None, :]
        for s, w in zip(state, w1, strict=True):
            hidden = s[:, None] * w[None, :] + hidden
        zero = k.const(0.0, f32, [block, width])
        hidden = k.tanh(k.dot(k.tanh(hidden), w2, zero) + b2[None, :])
        logit = k.reduce("sum", hidden * w3[None, :], 1) + b3
        counter = k.iota(t * k["environments"] + e, block, UI32)
        bits, *_ = k.philox((k["seed"], zero_word), (counter, zero_word, zero_word, zero_word))
        right = (bits >> 8).to(f32) * 2.0**-24 < k.sigmoid(logit)
        k.store(right.to(f32), actions, t, (e, block))
        loop.carry(*_cartpole(k, state, k.select(right, k.const(10.0, f32, [block]), -10.0)))
    tensors = [
        normal(rng, 4, width, scale=0.5),
        np.zeros(width, np.float32),
        normal(rng, width, width, scale=0.125),
        np.zeros(width, np.float32),
        normal(rng, 2, width, scale=0.125),
        np.zeros(2, np.float32),
        np.zeros((steps, environments), np.float32),
        np.zeros((steps, 4, environments), np.float32),
    ]
    return Case(k.finish(), [*tensors, steps, environments, 1234], (cdiv(environments, block),))


def causal_attention(
    rng: np.random.Generator, heads: int, width: int, length: int, block_rows: int, block: int, capacity: int = 1024
) -> Case:
    """Causal prefill attention, everything [head][time][width], the length symbolic"""
    names = ("q", "keys", "values", "out")
    k = KernelBuilder("causal_attention", {**dict.fromkeys(names, F32), "length": INDEX}, grid=[None, heads])
    m, head, strides = k.program_id(0) * block_rows, k.program_id(1), [capacity * width, width, 1]
    q, keys, values, out = (k.view(k[name], [heads, k["length"], width], strides) for name in names)
    query = k.load(q, head, (m, block_rows), (0, width))
    start = [
        k.const(-1e30, f32, [block_rows]),
        k.const(0.0, f32, [block_rows]),
        k.const(0.0, f32, [block_rows, width]),
    ]
    with k.loop(0, k.minimum(m + block_rows, k["length"]), block, start) as loop:
        t, (top, norm, total) = loop.index, loop.carried
        key = k.load(keys, head, (t, block), (0, width))
        score = k.dot(query, key.t, k.const(0.0, f32, [block_rows, block])) * width**-0.5
        past = k.iota(m, block_rows)[:, None] >= k.iota(t, block)[None, :]
        score = k.select(past, score, -1e30)
        new_top = k.maximum(top, k.reduce("max", score, 1))
        p, fade = k.exp(score - new_top[:, None]), k.exp(top - new_top)
        weighted = k.dot(p, k.load(values, head, (t, block), (0, width)), total * fade[:, None])
        loop.carry(new_top, norm * fade + k.reduce("sum", p, 1), weighted)
    _, norm, total = loop.results
    k.store(total / norm[:, None], out, head, (m, block_rows), (0, width))
    tensors = [normal(rng, heads, capacity, width) for _ in range(3)]
    tensors.append(np.zeros((heads, capacity, width), np.float32))
    return Case(k.finish(), [*tensors, length], (cdiv(length, block_rows), heads))


def weight_gradient(rng: np.random.Generator, rows: int, depth: int, columns: int, block: int) -> Case:
    """dw = x.T @ g and db = sum(g), over symbolic rows"""
    k = KernelBuilder("weight_gradient", {"x": F32, "g": F32, "dw": F32, "db": F32, "rows": INDEX})
    x, g = k.view(k["x"], [k["rows"], depth]), k.view(k["g"], [k["rows"], columns])
    start = [k.const(0.0, f32, [depth, columns]), k.const(0.0, f32, [columns])]
    with k.loop(0, k["rows"], block, start) as loop:
        at = (loop.index, block)
        gradient = k.load(g, at, (0, columns))
        dw = k.dot(k.load(x, at, (0, depth)).t, gradient, loop.carried[0])
        loop.carry(dw, loop.carried[1] + k.reduce("sum", gradient, 0))
    dw, db = loop.results
    k.store(dw, k.view(k["dw"], [depth, columns]), (0, depth), (0, columns))
    k.store(db, k.view(k["db"], [columns]), (0, columns))
    tensors = [
        normal(rng, rows, depth),
        normal(rng, rows, columns),
        np.zeros((depth, columns), np.float32),
        np.zeros(columns, np.float32),
    ]
    return Case(k.finish(), [*tensors, rows], ())


def embed_layernorm(rng: np.random.Generator, count: int, width: int, block: int, words: int = 100) -> Case:
    """Rows of an embedding table, normalised; the number of ids is symbolic"""
    types = {"table": F32, "ids": PointerType(i32), "out": F32, "count": INDEX}
    k = KernelBuilder("embed_layernorm", types, grid=[None])
    r = k.program_id(0) * block
    ids = k.load(k.view(k["ids"], [k["count"]]), (r, block))
    x = k.gather(k.view(k["table"], [words, width]), ids, (0, width))
    centred = x - (k.reduce("sum", x, 1) * (1 / width))[:, None]
    scale = k.rsqrt(k.reduce("sum", centred * centred, 1) * (1 / width) + 1e-5)
    k.store(centred * scale[:, None], k.view(k["out"], [k["count"], width]), (r, block), (0, width))
    tensors = [
        normal(rng, words, width),
        rng.integers(0, words, count).astype(np.int32),
        np.zeros((count, width), np.float32),
    ]
    return Case(k.finish(), [*tensors, count], (cdiv(count, block),))
