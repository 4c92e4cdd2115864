"""Steps that reduce, scan, contract, move and place elements."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType, i64

from tempo_ir.dialects import sdg
from tempo_ir.dialects.sdg import Access
from tempo_ir.dialects.types import dtype, element, holds, shape_of
from tempo_ir.index.domain import Domain
from tempo_ir.index.expr import Const, Entry, Expr, Slice, Sym
from tests.fuzz.builder import Builder, NotHere, is_of_floats, scaled
from tests.fuzz.values import WILD, Numbers, Value, coarsest, length


def _with_axes(v: Value) -> bool:
    return len(v.shape) > 0


def reduced(b: Builder) -> Value:
    """A reduction over some axes of a value read through any index, mostly through a range."""
    value = b.pick(lambda v: v.dtype != "bool" or b.chance(0.3))
    access = b.read(value)
    for _ in range(4):
        if len(shape_of(access.type)) > len(value.shape):
            break
        access = b.read(value)
    shape = shape_of(access.type)
    if not shape:
        raise NotHere
    axes = sorted(b.random.sample(range(len(shape)), b.random.randint(1, len(shape))))
    domain = b.domain(access)
    static = all(isinstance(shape[axis], int) for axis in axes)
    chosen = b.random.choice(["plain", "plain", "mean", "prod", "position"])
    numbers = value.numbers
    if chosen == "mean" and value.is_float and (static or b.chance(0.5)):
        return b.add(sdg.MeanOp(access, axes, domain=domain), numbers.rounded(numbers.low, numbers.high))
    if chosen == "prod" and value.dtype != "bool" and (not value.is_float or numbers.magnitude <= 1.0):
        made = WILD if not value.is_float else numbers.rounded(-1, 1)
        return b.add(sdg.ProdOp(access, axes, domain=domain), made)
    if chosen == "position" and value.is_exact and (static or b.chance(0.5)):
        op = b.random.choice([sdg.ArgmaxOp, sdg.ArgminOp])(access, axes[0], domain=domain)
        return b.add(op, Numbers(0, length(shape[axes[0]]) - 1) if isinstance(shape[axes[0]], int) else WILD)
    return b.add(*b.reduction(access, axes, numbers, domain))


def scanned(b: Builder) -> Value:
    """Running sums or products, either way."""
    value = b.pick(lambda v: v.dtype != "bool")
    access = b.read(value)
    shape = shape_of(access.type)
    if not shape:
        raise NotHere
    axis = b.random.randrange(len(shape))
    reverse, numbers = b.chance(0.4), value.numbers
    if (not value.is_float or numbers.magnitude <= 1.0) and b.chance(0.4):
        op = sdg.CumprodOp(access, axis, reverse=reverse, domain=b.domain(access))
        return b.add(op, numbers.rounded(-1, 1) if value.is_float else WILD)
    made = scaled(numbers, length(shape[axis])) if value.is_float else WILD
    return b.add(sdg.CumsumOp(access, axis, reverse=reverse, domain=b.domain(access)), made)


def softmax(b: Builder) -> Value:
    """A softmax along an axis."""
    value = b.pick(lambda v: v.is_float)
    access = b.read(value)
    shape = shape_of(access.type)
    if not shape:
        raise NotHere
    axis = b.random.randrange(len(shape))
    return b.add(sdg.SoftmaxOp(access, axis, domain=b.domain(access)), value.numbers.rounded(0, 1))


def contracted(b: Builder) -> Value:
    """A contraction of one to three operands; axes of equal extents may share a letter. Operands after the first may be
    of a narrower type."""
    first = b.pick(lambda v: v.dtype != "bool")
    accesses, numbers = [b.read(first)], [first.numbers]
    for _ in range(b.random.choice([0, 1, 1, 1, 2])):
        other = b.pick(lambda v: v.dtype == first.dtype or (v.is_float and is_wider(first, v)))
        access = b.read(other)
        if sum(len(shape_of(a.type)) for a in (*accesses, access)) <= 6:
            accesses.append(access)
            numbers.append(other.numbers)
    letters: dict[str, int | Expr] = {}
    words: list[str] = []
    for access in accesses:
        word = ""
        for extent in shape_of(access.type):
            known = [l for l, e in letters.items() if e == extent and l not in word]
            letter = b.random.choice(known) if known and b.chance(0.8) else "abcdefgh"[len(letters)]
            letters[letter] = extent
            word += letter
        words.append(word)
    return _contraction(b, accesses, numbers, words, letters)


def of_two_letters(b: Builder) -> Value:
    """A contraction of two or three values through the same ranges, for which each value has letters of its own.

    `contract "ai,bi->ab" k[0:t + 1], k[0:t + 1]`
    """
    first = b.pick(lambda v: v.dtype != "bool" and bool(v.dims) and len(v.shape) <= 1)
    access = b.read(first)
    for _ in range(8):
        if any(isinstance(entry, Slice) for entry in access.index):
            break
        access = b.read(first)
    ranges = sum(isinstance(entry, Slice) for entry in access.index)
    if not ranges:
        raise NotHere
    alike = [v for v in b.values if v.dims == first.dims and v.type == first.type]
    values = [first, *(b.random.choice([first, *alike]) for _ in range(b.random.choice([1, 1, 2])))]
    shape = shape_of(access.type)
    axes = [*("adg"[:ranges]), *"cfi"][: len(shape)]
    letters: dict[str, int | Expr] = {}
    words: list[str] = []
    for _ in values:
        word = [b.random.choice([a, chr(ord(a) + 1), chr(ord(a) + 1)]) if a in "adg" else a for a in axes]
        letters |= dict(zip(word, shape, strict=True))
        words.append("".join(word))
    accesses = [Access(value.ssa, access.index) for value in values]
    return _contraction(b, accesses, [value.numbers for value in values], words, letters)


def _contraction(
    b: Builder, accesses: list[Access], numbers: list[Numbers], words: list[str], letters: dict[str, int | Expr]
) -> Value:
    """The contraction over all letters but up to three, which the result has in any order."""
    result = [letter for letter in letters if b.chance(0.45)]
    b.random.shuffle(result)
    if len(result) > 3:
        result = result[:3]
    spec = f"{','.join(words)}->{''.join(result)}"
    op = sdg.ContractOp(spec, *accesses, domain=b.domain(*accesses))
    factor = 1.0
    for letter, extent in letters.items():
        factor *= 1 if letter in result else length(extent)
    return b.add(op, _products(numbers, factor) if is_of_floats(op) else WILD)


def is_wider(one: Value, other: Value) -> bool:
    """Whether the type of one value holds those of the other."""
    return holds(element(one.ssa.type), element(other.ssa.type))


def _products(numbers: list[Numbers], factor: float) -> Numbers:
    most = factor
    grid: int | None = 0
    for n in numbers:
        most *= n.magnitude
        grid = None if grid is None or n.grid is None else grid + n.grid
    return Numbers(-most, most, grid, coarsest(numbers))


# ---- moves: exact, whatever the numbers ----


def reshaped(b: Builder) -> Value:
    """The same elements in another static shape."""
    value = b.pick(lambda v: v.is_static)
    count = 1
    for extent in value.shape:
        count *= length(extent)
    shapes = [[count], [1, count], [count, 1]]
    shapes += [[n, count // n] for n in (2, 3) if count % n == 0]
    if count == 1:
        shapes.append([])
    op = sdg.ReshapeOp(b.at(value), b.random.choice(shapes), domain=Domain(value.dims))
    return b.add(op, value.numbers)


def broadcast(b: Builder) -> Value:
    """A new leading axis, static or of a bound."""
    value = b.pick(lambda v: len(v.shape) < 3)
    bounds: list[int | Expr] = [b.extent(), b.extent()]
    bounds += [b.space.bound(name) for name in b.space.names[:1]]
    op = sdg.BroadcastOp(b.at(value), [b.random.choice(bounds), *value.shape], domain=Domain(value.dims))
    return b.add(op, value.numbers)


def transposed(b: Builder) -> Value:
    """The axes in another order."""
    value = b.pick(lambda v: len(v.shape) >= 1)
    access = b.read(value)
    permutation = list(range(len(shape_of(access.type))))
    b.random.shuffle(permutation)
    return b.add(sdg.TransposeOp(access, permutation, domain=b.domain(access)), value.numbers)


def sliced(b: Builder) -> Value:
    """Part of each axis, some by dims."""
    value = b.pick(lambda v: _with_axes(v) and v.is_static)
    access = b.at(value)
    take = tuple(_entry(b, length(extent)) for extent in value.shape)
    used = frozenset(name for name in b.space.names if any(name in str(entry) for entry in take))
    return b.add(sdg.SliceOp(access, take, domain=b.domain(access, also=used)), value.numbers)


def _entry(b: Builder, extent: int) -> Entry:
    if not extent:
        return Slice(Const(0), Const(0))
    start = b.random.randrange(extent)
    stop = b.random.randint(start + b.chance(0.9), extent)
    name = Sym(b.random.choice(list(b.space.names)))
    ranges: list[Entry] = [Slice(Const(start), Const(stop)), Slice(Const(0), Const(extent))]
    stepped: list[Entry] = [Slice(Const(0), Const(extent), 2), Slice(name % extent, Const(extent))]
    return b.random.choice([*ranges, *ranges, *stepped, Const(start), Const(start), name % extent])


def padded(b: Builder) -> Value:
    """A number round the elements, as often as a dim says or not."""
    value = b.pick(_with_axes)
    access = b.at(value)
    amounts: list[int | Expr] = [0, 0, 1, 2]
    if b.chance(0.3):
        amounts.append(Sym(b.random.choice(list(b.space.names))))
    low, high = ([b.random.choice(amounts) for _ in value.shape] for _ in range(2))
    used = frozenset(str(amount) for amount in (*low, *high) if not isinstance(amount, int))
    number = b.random.choice([0, 1, -1]) if value.dtype != "bool" else b.random.choice([0, 1])
    typed = float(number) if value.is_float else bool(number) if value.dtype == "bool" else number
    op = sdg.PadOp(access, low, high, typed, domain=b.domain(access, also=used))
    n = value.numbers
    return b.add(op, Numbers(min(n.low, number), max(n.high, number), n.grid, n.rounding))


def joined(b: Builder) -> Value:
    """Two values one after the other."""
    first = b.pick(_with_axes)
    axis = b.random.randrange(len(first.shape))

    def rest(v: Value) -> tuple[int | Expr, ...]:
        return (*v.shape[:axis], *v.shape[axis + 1 :])

    other = b.pick(lambda v: v.dtype == first.dtype and len(v.shape) == len(first.shape) and rest(v) == rest(first))
    accesses = [b.at(first), b.at(other)]
    op = sdg.ConcatOp(*accesses, axis=axis, domain=b.domain(*accesses))
    both = (first.numbers, other.numbers)
    grids = [n.grid for n in both if n.grid is not None]
    grid = max(grids) if len(grids) == 2 else None
    return b.add(op, Numbers(min(n.low for n in both), max(n.high for n in both), grid, coarsest(list(both))))


def turned(b: Builder) -> Value:
    """The elements from last to first."""
    value = b.pick(lambda v: True)
    access = b.read(value)
    shape = shape_of(access.type)
    if not shape:
        raise NotHere
    return b.add(sdg.ReverseOp(access, b.random.randrange(len(shape)), domain=b.domain(access)), value.numbers)


def ordered(b: Builder) -> Value:
    """Sorted, or the positions that sort; exact values only, since ties would jump."""
    value = b.pick(lambda v: v.is_exact)
    access = b.read(value)
    shape = shape_of(access.type)
    if not shape:
        raise NotHere
    axis = b.random.randrange(len(shape))
    op: Callable[..., sdg.SdgOp] = b.random.choice([sdg.SortOp, sdg.ArgsortOp])
    numbers = value.numbers
    if op is sdg.ArgsortOp:
        extent = shape[axis]
        numbers = Numbers(0, extent - 1) if isinstance(extent, int) else WILD
    return b.add(op(access, axis, descending=b.chance(0.4), domain=b.domain(access)), numbers)


def _ids(b: Builder, extent: int) -> Value:
    """Integers from 0 to below `extent`: a value's remainder, or a literal."""
    found = [v for v in b.values if v.dtype == "i64" and len(v.shape) <= 1]
    if not found or b.chance(0.3):
        count = b.extent()
        numbers = [b.random.randrange(extent) for _ in range(count)]
        literal = DenseIntOrFPElementsAttr.from_list(TensorType(i64, [count]), numbers)
        return b.place(sdg.ConstantOp(literal, TensorType(i64, [count])), Numbers(0, extent - 1))
    value = b.random.choice(found)
    if value.numbers.low >= 0 and value.numbers.high < extent:
        return value
    by = b.constant(extent, TensorType(i64, []))
    op = sdg.ModOp(b.at(value), b.at(by), domain=Domain(value.dims))
    return b.place(op, Numbers(0, extent - 1))


def gathered(b: Builder) -> Value:
    """Rows of a table by number."""
    value = b.pick(lambda v: any(isinstance(extent, int) and extent for extent in v.shape) and len(v.shape) < 3)
    access = b.at(value)
    axis = b.random.choice([n for n, extent in enumerate(value.shape) if isinstance(extent, int) and extent])
    ids = b.at(_ids(b, length(value.shape[axis])))
    return b.add(sdg.GatherOp(access, ids, axis, domain=b.domain(access, ids)), value.numbers)


def scattered(b: Builder) -> Value:
    """Rows added up at places by number."""
    value = b.pick(lambda v: _with_axes(v) and v.dtype != "bool")
    extent = value.shape[0]
    places = b.extent()
    candidates = [v for v in b.values if v.dtype == "i64" and v.shape == (extent,)]
    if candidates:
        found = b.random.choice(candidates)
        by = b.constant(places, TensorType(i64, []))
        ids = b.place(sdg.ModOp(b.at(found), b.at(by), domain=Domain(found.dims)), Numbers(0, places - 1))
    elif isinstance(extent, int):
        numbers = [b.random.randrange(places) for _ in range(extent)]
        literal = DenseIntOrFPElementsAttr.from_list(TensorType(i64, [extent]), numbers)
        ids = b.place(sdg.ConstantOp(literal, TensorType(i64, [extent])), Numbers(0, places - 1))
    else:
        raise NotHere
    accesses = (b.at(ids), b.at(value))
    op = sdg.ScatterAddOp(*accesses, 0, shape=[places, *value.shape[1:]], domain=b.domain(*accesses))
    return b.add(op, scaled(value.numbers, length(extent)) if value.is_float else WILD)


def one_hot(b: Builder) -> Value:
    """A 1 at the id."""
    value = b.pick(lambda v: v.dtype == "i64" and len(v.shape) < 2)
    access = b.read(value)
    element = dtype(b.random.choice(["f32", "f64", "bf16", "i64", "bool"]))
    return b.add(sdg.OneHotOp(access, b.extent(), element, domain=b.domain(access)), Numbers(0, 1))
