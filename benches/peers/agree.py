"""Decides if a peer's result is PyTorch's, at any size. A peer that computes something else, or only a part, has no time.

What counts as the same is decided here on plain numbers (`verdict`); tensors are only counted, in pieces, so that a row
of 2^28 results fits beside its operands. Imports nothing but Python's own modules: a tensor has the methods it needs.
"""
from dataclasses import dataclass, fields

# Elements at a time, which are converted to f64.
PIECE = 1 << 24
# Share of results of float type that may lie outside of the bound: PyTorch composes some ops of several that each round
# to 16 bits, so that single results cancel to nothing.
OUTLIERS = 1e-4
# Ops with jumps: where a quotient or a product is about a whole number, its last bit decides on which side a result
# falls, and PyTorch rounds quotients of 16 bits first.
JUMPS = {"floor_divide", "div_trunc", "remainder", "round_decimals"}
JUMP_OUTLIERS = {"f32": 1e-3, "f16": 5e-2, "bf16": 5e-2}
# An angle of some ten thousands has an error of its own.
BOUNDS = {"sinusoidal": 5e-2}


@dataclass
class Counts:
    """How many of `total` results differ, and how."""

    total: int = 0
    # Of integers and bools, any difference; of floats, one beyond the bound.
    far: int = 0
    # NaN in one of the two alone; what was not written is one, too.
    nan: int = 0
    # Infinite in one of the two alone, or of the other sign.
    infinite: int = 0
    # Index of the first result that differs in any way.
    first: int | None = None

    def add(self, other, offset):
        """Takes in the counts of the piece that begins at `offset`."""
        for field in fields(self):
            if field.name != "first":
                setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
        if self.first is None and other.first is not None:
            self.first = offset + other.first


def bound(op, dtype):
    """The absolute and relative difference that is allowed in a type named as in `rows.DTYPES`."""
    return BOUNDS.get(op) or {"f32": 1e-5, "f64": 1e-12, "f16": 2e-2, "bf16": 2e-2}.get(dtype, 0.0)


def verdict(counts, op, dtype):
    """None if the results are the same, else what is wrong with them. `dtype` is None for integers and bools."""
    share = (JUMP_OUTLIERS.get(dtype, OUTLIERS) if op in JUMPS else OUTLIERS) if dtype else 0.0
    wrong = counts.nan + counts.infinite + counts.far
    if counts.nan == 0 and counts.infinite == 0 and counts.far <= share * counts.total:
        return None
    parts = [f"{counts.nan} NaN or not written" if counts.nan else "", f"{counts.infinite} infinite" if counts.infinite else ""]
    why = ", ".join(part for part in parts if part)
    return f"another result than PyTorch's: {wrong} of {counts.total} differ, the first at {counts.first}" + (
        f" ({why})" if why else "")


def count(got, want, near):
    """The counts of one piece: two flat tensors of one length."""
    found = Counts(total=want.numel())
    if want.is_floating_point():
        got, want = got.double(), want.double()
        nan = got.isnan() != want.isnan()
        infinite = (got.isinf() | want.isinf()) & (got != want) & ~nan
        far = (got - want).abs() > near + near * want.abs()
        # A difference of infinities is NaN, which is not far.
        far = far & ~nan & ~infinite
    else:
        far = got != want
        nan = infinite = far & False
    found.far, found.nan, found.infinite = (int(kind.sum()) for kind in (far, nan, infinite))
    if found.far + found.nan + found.infinite:
        found.first = int((far | nan | infinite).int().argmax())
    return found


def compare(got, want, op, dtype):
    """None if `got` is what PyTorch's `want` is, else what is wrong with it."""
    if tuple(got.shape) != tuple(want.shape):
        return f"another result than PyTorch's: its shape is {tuple(got.shape)}, not {tuple(want.shape)}"
    if got.dtype != want.dtype:
        return f"another result than PyTorch's: its type is {got.dtype}, not {want.dtype}"
    got, want = got.reshape(-1), want.reshape(-1)
    counts = Counts()
    for start in range(0, want.numel(), PIECE):
        piece = slice(start, start + PIECE)
        counts.add(count(got[piece], want[piece], bound(op, dtype)), start)
    return verdict(counts, op, dtype if want.is_floating_point() else None)


def dropped(got, x, p, dtype):
    """None if `got` is `x` with a share of `p` dropped, each peer by random numbers of its own; else what is wrong."""
    if tuple(got.shape) != tuple(x.shape) or got.dtype != x.dtype:
        return f"another result than dropout's: {tuple(got.shape)} of {got.dtype}"
    got, x = got.reshape(-1), x.reshape(-1)
    counts, zeros = Counts(), 0
    for start in range(0, x.numel(), PIECE):
        piece, scaled = got[start:start + PIECE], x[start:start + PIECE].double() / (1 - p)
        is_zero = piece == 0
        zeros += int(is_zero.sum())
        counts.add(count(piece.double(), scaled * ~is_zero, bound("dropout", dtype)), start)
    # Six standard deviations, and the zeros of x itself.
    slack = 6 * (p * (1 - p) / max(x.numel(), 1)) ** 0.5 + 1e-3
    if abs(zeros / max(x.numel(), 1) - p) > slack:
        return f"another result than dropout's: {zeros} of {x.numel()} dropped, at p = {p}"
    return verdict(counts, "dropout", dtype)


def spoil(result, want):
    """Makes each element of a result that a peer is to write differ from `want`, so that none passes unwritten."""
    # A view: the result of CuPy and Triton is contiguous.
    result, want = result.view(-1), want.reshape(-1)
    for start in range(0, want.numel(), PIECE):
        piece, right = result[start:start + PIECE], want[start:start + PIECE]
        if want.is_floating_point():
            piece.fill_(float("nan"))
            piece.masked_fill_(right.isnan(), 0)
        elif str(want.dtype).endswith("bool"):
            piece.copy_(~right)
        else:
            piece.copy_(right ^ 1)
