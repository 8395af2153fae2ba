"""Kernels as one writes them by hand in Triton, for the common ops: a few block sizes each, the fastest counts."""
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from runs import kept as broadcast

ACTIVATIONS = ("exp", "silu", "gelu", "gelu_tanh", "sigmoid", "tanh", "relu", "copy")
BINARY = ("add", "mul", "div", "maximum")
# Block size and warps.
CONFIGS = ((1024, 4), (2048, 4), (4096, 8))


@triton.jit
def activation(x, OP: tl.constexpr):
    if OP == "exp":
        y = tl.exp(x)
    elif OP == "silu":
        y = x * tl.sigmoid(x)
    elif OP == "gelu":
        y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    elif OP == "gelu_tanh":
        y = 0.5 * x * (1.0 + libdevice.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
    elif OP == "sigmoid":
        y = tl.sigmoid(x)
    elif OP == "tanh":
        y = libdevice.tanh(x)
    elif OP == "relu":
        y = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)
    else:
        tl.static_assert(OP == "copy")
        y = x
    return y


@triton.jit
def unary(x, y, n, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(y + at, activation(value, OP).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def binary(a, b, y, n, INNER_A: tl.constexpr, COLS_A: tl.constexpr, INNER_B: tl.constexpr, COLS_B: tl.constexpr,
           OP: tl.constexpr, BLOCK: tl.constexpr):
    """An operand is as the result where its COLS is 0; else result i takes its element i / INNER % COLS."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < n
    from_a = at if COLS_A == 0 else at // INNER_A % COLS_A
    from_b = at if COLS_B == 0 else at // INNER_B % COLS_B
    left = tl.load(a + from_a, mask=keep).to(tl.float32)
    right = tl.load(b + from_b, mask=keep).to(tl.float32)
    if OP == "add":
        value = left + right
    elif OP == "mul":
        value = left * right
    elif OP == "div":
        value = tl.div_rn(left, right)
    else:
        tl.static_assert(OP == "maximum")
        value = tl.maximum(left, right, propagate_nan=tl.PropagateNan.ALL)
    tl.store(y + at, value.to(y.dtype.element_ty), mask=keep)


@triton.jit
def gated(x, y, n, COLS: tl.constexpr, OP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    source = x + (at // COLS).to(tl.int64) * (2 * COLS) + at % COLS
    gate = tl.load(source, mask=at < n).to(tl.float32)
    value = tl.load(source + COLS, mask=at < n).to(tl.float32)
    tl.store(y + at, (activation(gate, OP) * value).to(y.dtype.element_ty), mask=at < n)


@triton.jit
def dropout(x, y, n, p, scale, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n).to(tl.float32)
    kept = tl.where(tl.rand(seed, at) > p, value * scale, 0.0)
    tl.store(y + at, kept.to(y.dtype.element_ty), mask=at < n)


@triton.jit
def rope(x, cos, sin, ids, y, n, HALF: tl.constexpr, HEADS: tl.constexpr, LENGTH: tl.constexpr, BLOCK: tl.constexpr):
    """Pairs (i, i + HALF); token t is at position ids[t], or t % LENGTH where LENGTH is not 0."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = at < n
    lane, head = at % HALF, at // HALF
    token = head // HEADS
    position = token % LENGTH if LENGTH > 0 else tl.load(ids + token, mask=keep)
    first = head * (2 * HALF) + lane
    c = tl.load(cos + position * (2 * HALF) + lane, mask=keep).to(tl.float32)
    s = tl.load(sin + position * (2 * HALF) + lane, mask=keep).to(tl.float32)
    a = tl.load(x + first, mask=keep).to(tl.float32)
    b = tl.load(x + first + HALF, mask=keep).to(tl.float32)
    tl.store(y + first, (a * c - b * s).to(y.dtype.element_ty), mask=keep)
    tl.store(y + first + HALF, (b * c + a * s).to(y.dtype.element_ty), mask=keep)


def choices(row, tensors):
    """The calls to choose from, each writing the same result tensor, and that tensor; None where no kernel is here."""
    launch, count, result = None, 0, None
    x = tensors[0] if tensors else None
    if row.op in ACTIVATIONS:
        result = torch.empty_like(x)
        count = x.numel()
        launch = lambda grid, block, warps: unary[grid](x, result, count, OP=row.op, BLOCK=block, num_warps=warps)
    elif row.op in BINARY and row.dtype in ("f32", "f16", "bf16"):
        other = tensors[1]
        # Of both: in an outer product each operand lacks what the other has.
        result = torch.empty(torch.broadcast_shapes(x.shape, other.shape), dtype=x.dtype, device=x.device)
        count = result.numel()
        (inner_a, cols_a), (inner_b, cols_b) = (broadcast(tuple(result.shape), tuple(of.shape)) for of in (x, other))
        launch = lambda grid, block, warps: binary[grid](
            x, other, result, count, INNER_A=inner_a, COLS_A=cols_a, INNER_B=inner_b, COLS_B=cols_b, OP=row.op,
            BLOCK=block, num_warps=warps)
    elif row.op == "silu_and_mul":
        result = torch.empty((*x.shape[:-1], x.shape[-1] // 2), dtype=x.dtype, device=x.device)
        count = result.numel()
        launch = lambda grid, block, warps: gated[grid](
            x, result, count, COLS=result.shape[-1], OP="silu", BLOCK=block, num_warps=warps)
    elif row.op == "dropout":
        result = torch.empty_like(x)
        count = x.numel()
        p, seed = row.number("p", 0.5), int(row.number("seed", 42))
        launch = lambda grid, block, warps: dropout[grid](
            x, result, count, p, 1 / (1 - p), seed, BLOCK=block, num_warps=warps)
    elif row.op.startswith("rope") and row.op != "rope_non_neox":
        _, cos, sin, *ids = tensors
        result = torch.empty_like(x)
        count = x.numel() // 2
        half = x.shape[-1] // 2
        heads = 1 if x.ndim == 2 else x.shape[-2]
        length = 0 if ids else cos.shape[0]
        launch = lambda grid, block, warps: rope[grid](
            x, cos, sin, ids[0] if ids else None, result, count, HALF=half, HEADS=heads, LENGTH=length, BLOCK=block,
            num_warps=warps)
    if launch is None:
        return None

    def choice(block, warps):
        grid = (triton.cdiv(count, block),)
        return lambda: launch(grid, block, warps)

    return [choice(*config) for config in CONFIGS], result
