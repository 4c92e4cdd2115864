# pyright: basic, reportArgumentType=false, reportOperatorIssue=false
"""What an engineer would write in Triton for the programs that are measured, to stand beside what the compiler makes.

Attention of one query over a cache in shares of the keys, attention of a prompt in blocks of queries, and a norm with
the product behind it: each for contiguous tensors of one type, heads of a power of two.
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
