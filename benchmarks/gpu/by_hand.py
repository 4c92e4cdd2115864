# pyright: basic, reportArgumentType=false, reportOperatorIssue=false
"""What an engineer would write in Triton for the programs that are measured, to stand beside what the compiler makes.

Attention of one query over a cache in shares of the keys, attention of a prompt in blocks of queries, a norm with the
product behind it, all steps of a recurrent network and of a rollout: each for contiguous tensors of one type, heads of
a power of two.
"""

import torch
import triton
import triton.language as tl

SHARES = 32


@triton.jit
def share_of_keys(
    q,
    k,
    v,
    sums,
    greatest,
    totals,
    n,
    scale,
    H: tl.constexpr,
    G: tl.constexpr,
    R: tl.constexpr,
    D: tl.constexpr,
    B: tl.constexpr,
    S: tl.constexpr,
):
    """Keys `share * length` and on for the G queries of one head, of which R >= G rows are computed."""
    share, head = tl.program_id(0), tl.program_id(1)
    row, column = tl.arange(0, R), tl.arange(0, D)
    query = tl.load(q + (head * G + row[:, None]) * D + column[None, :], mask=row[:, None] < G, other=0.0)
    most = tl.full((R,), float("-inf"), tl.float32)
    total = tl.zeros((R,), tl.float32)
    sum_ = tl.zeros((R, D), tl.float32)
    length = tl.cdiv(tl.cdiv(n, B), S) * B
    for first in range(share * length, min((share + 1) * length, n), B):
        key = first + tl.arange(0, B)
        place = (key[:, None].to(tl.int64) * H + head) * D + column[None, :]
        keys = tl.load(k + place, mask=key[:, None] < n, other=0.0)
        score = tl.dot(query, tl.trans(keys), input_precision="ieee") * scale
        score = tl.where(key[None, :] < n, score, float("-inf"))
        larger = tl.maximum(most, tl.max(score, 1))
        weight = tl.exp(score - larger[:, None])
        factor = tl.exp(most - larger)
        values = tl.load(v + place, mask=key[:, None] < n, other=0.0)
        sum_ = tl.dot(weight.to(values.dtype), values, sum_ * factor[:, None], input_precision="ieee")
        total = total * factor + tl.sum(weight, 1)
        most = larger
    place = (share * H + head) * G + row
    tl.store(sums + place[:, None] * D + column[None, :], sum_, mask=row[:, None] < G)
    tl.store(greatest + place, most, mask=row < G)
    tl.store(totals + place, total, mask=row < G)


@triton.jit
def combine(sums, greatest, totals, out, Q: tl.constexpr, D: tl.constexpr, S: tl.constexpr):
    """The shares of one query."""
    query, share, column = tl.program_id(0), tl.arange(0, S), tl.arange(0, D)
    most = tl.load(greatest + share * Q + query)
    factor = tl.exp(most - tl.max(most, 0))
    total = tl.sum(tl.load(totals + share * Q + query) * factor, 0)
    sum_ = tl.load(sums + (share[:, None] * Q + query) * D + column[None, :])
    tl.store(out + query * D + column, tl.sum(sum_ * factor[:, None], 0) / total)


def decode_attention(q, k, v):
    """(heads, group, width), and keys and values (steps, heads, width)."""
    heads, group, width = q.shape
    out = torch.empty_like(q)
    sums = torch.empty((SHARES, heads, group, width), device=q.device)
    greatest, totals = (torch.empty((SHARES, heads, group), device=q.device) for _ in range(2))
    rows, block = max(16, triton.next_power_of_2(group)), 64 if q.element_size() == 2 else 32
    share_of_keys[(SHARES, heads)](
        q, k, v, sums, greatest, totals, k.shape[0], width**-0.5, heads, group, rows, width, block, SHARES
    )  # fmt: skip
    combine[(heads * group,)](sums, greatest, totals, out, heads * group, width, SHARES)
    return out


@triton.jit
def block_of_queries(
    q, k, v, out, n, scale, H: tl.constexpr, G: tl.constexpr, D: tl.constexpr, M: tl.constexpr, B: tl.constexpr
):
    """M queries of one head over the keys that come no later."""
    block, head = tl.program_id(0), tl.program_id(1)
    row, column = block * M + tl.arange(0, M), tl.arange(0, D)
    place = (row[:, None].to(tl.int64) * H * G + head) * D + column[None, :]
    query = tl.load(q + place, mask=row[:, None] < n, other=0.0)
    most = tl.full((M,), float("-inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    sum_ = tl.zeros((M, D), tl.float32)
    for first in range(0, min((block + 1) * M, n), B):
        key = first + tl.arange(0, B)
        at = (key[:, None].to(tl.int64) * H + head // G) * D + column[None, :]
        keys = tl.load(k + at, mask=key[:, None] < n, other=0.0)
        score = tl.dot(query, tl.trans(keys), input_precision="ieee") * scale
        score = tl.where(key[None, :] <= row[:, None], score, float("-inf"))
        larger = tl.maximum(most, tl.max(score, 1))
        weight = tl.exp(score - larger[:, None])
        factor = tl.exp(most - larger)
        values = tl.load(v + at, mask=key[:, None] < n, other=0.0)
        sum_ = tl.dot(weight.to(values.dtype), values, sum_ * factor[:, None], input_precision="ieee")
        total = total * factor + tl.sum(weight, 1)
        most = larger
    tl.store(out + place, (sum_ / total[:, None]).to(out.dtype.element_ty), mask=row[:, None] < n)


def prompt_attention(q, k, v):
    """(steps, heads, group, width), and keys and values (steps, heads, width), causal."""
    steps, heads, group, width = q.shape
    out = torch.empty_like(q)
    block_of_queries[(triton.cdiv(steps, 64), heads * group)](
        q, k, v, out, steps, width**-0.5, heads, group, width, 64, 64 if q.element_size() == 2 else 32
    )
    return out


@triton.jit
def norm_and_product(
    x, scale, w, out, rows, columns, eps, K: tl.constexpr, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr
):
    """M rows, normed, times N columns; the norm is that of the rows as they are read."""
    row, column = tl.program_id(1) * M + tl.arange(0, M), tl.program_id(0) * N + tl.arange(0, N)
    squares = tl.zeros((M,), tl.float32)
    total = tl.zeros((M, N), tl.float32)
    for first in range(0, K, B):
        k = first + tl.arange(0, B)
        part = tl.load(x + row[:, None] * K + k[None, :], mask=row[:, None] < rows, other=0.0).to(tl.float32)
        squares += tl.sum(part * part, 1)
        scaled = (part * tl.load(scale + k)[None, :].to(tl.float32)).to(w.dtype.element_ty)
        weight = tl.load(w + column[:, None] * K + k[None, :], mask=column[:, None] < columns, other=0.0)
        total = tl.dot(scaled, tl.trans(weight), total, input_precision="ieee")
    total = total * tl.rsqrt(squares / K + eps)[:, None]
    inside = (row[:, None] < rows) & (column[None, :] < columns)
    tl.store(out + row[:, None] * columns + column[None, :], total.to(out.dtype.element_ty), mask=inside)


def normed_product(x, scale, w):
    """(rows, width) normed, times (columns, width)."""
    (rows, width), columns = x.shape, w.shape[0]
    out = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    norm_and_product[(triton.cdiv(columns, 64), triton.cdiv(rows, 16))](
        x, scale, w, out, rows, columns, 1e-6, width, 16, 64, 64
    )
    return out


@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def persistent_rnn(x, w, out, rows, T, R: tl.constexpr, D: tl.constexpr):
    """All steps of R rows of a network of width D."""
    row, column = tl.program_id(0) * R + tl.arange(0, R), tl.arange(0, D)
    weight = tl.load(w + column[:, None] * D + column[None, :])
    place, inside = row[:, None] * D + column[None, :], row[:, None] < rows
    h = tanh(tl.load(x + place, mask=inside, other=0.0))
    tl.store(out + place, h, mask=inside)
    for t in range(1, T):
        step = (tl.zeros((), tl.int64) + t) * rows * D
        h = tanh(tl.dot(h, weight, tl.load(x + step + place, mask=inside, other=0.0), input_precision="ieee"))
        tl.store(out + step + place, h, mask=inside)


def recurrence(x, w):
    """(steps, rows, width) through a network of that width."""
    steps, rows, width = x.shape
    out = torch.empty_like(x)
    persistent_rnn[(triton.cdiv(rows, 16),)](x, w, out, rows, steps, 16, width)
    return out


@triton.jit
def persistent_rollout(w0, b0, w1, b1, obs, action, ended, T, seed, envs, E: tl.constexpr, H: tl.constexpr):
    """All steps of E CartPoles each, with a policy of H hidden units."""
    env, unit = tl.program_id(0) * E + tl.arange(0, E), tl.arange(0, H)
    inside = env < envs
    bias, bias_0, bias_1 = tl.load(b0 + unit), tl.load(b1), tl.load(b1 + 1)
    by_x, by_speed = tl.load(w0 + unit * 4), tl.load(w0 + unit * 4 + 1)
    by_angle, by_spin = tl.load(w0 + unit * 4 + 2), tl.load(w0 + unit * 4 + 3)
    out_0, out_1 = tl.load(w1 + unit), tl.load(w1 + H + unit)
    x, speed, angle, spin = tl.rand4x(seed, env * 2)
    x, speed, angle, spin = x * 0.1 - 0.05, speed * 0.1 - 0.05, angle * 0.1 - 0.05, spin * 0.1 - 0.05
    age = tl.zeros((E,), tl.int32)
    for t in range(T):
        place = (tl.zeros((), tl.int64) + t) * envs + env
        tl.store(obs + place * 4, x, mask=inside)
        tl.store(obs + place * 4 + 1, speed, mask=inside)
        tl.store(obs + place * 4 + 2, angle, mask=inside)
        tl.store(obs + place * 4 + 3, spin, mask=inside)
        hidden = x[:, None] * by_x[None, :] + speed[:, None] * by_speed[None, :]
        hidden += angle[:, None] * by_angle[None, :] + spin[:, None] * by_spin[None, :]
        hidden = tanh(hidden + bias[None, :])
        logit_0, logit_1 = tl.sum(hidden * out_0[None, :], 1) + bias_0, tl.sum(hidden * out_1[None, :], 1) + bias_1
        draw_0, draw_1, _, _ = tl.rand4x(seed, (t * envs + env) * 2 + 1)
        right = logit_1 - tl.log(-tl.log(draw_1)) > logit_0 - tl.log(-tl.log(draw_0))
        cos, sin = tl.cos(angle), tl.sin(angle)
        push = (tl.where(right, 10.0, -10.0) + 0.05 * spin * spin * sin) / 1.1
        turn = (9.8 * sin - cos * push) / (0.5 * (4.0 / 3.0 - 0.1 * cos * cos / 1.1))
        x, angle = x + 0.02 * speed, angle + 0.02 * spin
        speed, spin = speed + 0.02 * (push - 0.05 * turn * cos / 1.1), spin + 0.02 * turn
        over = (tl.abs(x) > 2.4) | (tl.abs(angle) > 0.20943951) | (age + 1 >= 500)
        tl.store(action + place, right.to(tl.int64), mask=inside)
        tl.store(ended + place, over, mask=inside)
        x_0, speed_0, angle_0, spin_0 = tl.rand4x(seed, ((t + 1) * envs + env) * 2)
        x, speed = tl.where(over, x_0 * 0.1 - 0.05, x), tl.where(over, speed_0 * 0.1 - 0.05, speed)
        angle, spin = tl.where(over, angle_0 * 0.1 - 0.05, angle), tl.where(over, spin_0 * 0.1 - 0.05, spin)
        age = tl.where(over, 0, age + 1)


def rollout(w0, b0, w1, b1, envs=4096, steps=500):
    """Steps of many CartPoles and a policy: observations, actions and ends."""
    obs = torch.empty((steps, envs, 4), device=w0.device)
    action = torch.empty((steps, envs), dtype=torch.int64, device=w0.device)
    ended = torch.empty((steps, envs), dtype=torch.bool, device=w0.device)
    persistent_rollout[(triton.cdiv(envs, 32),)](w0, b0, w1, b1, obs, action, ended, steps, 0, envs, 32, w0.shape[0])
    return obs, action, ended
