"""What PyTorch users run for each row: one function of the row's tensors, a composition where there is no single op."""
import torch
import torch.nn.functional as F

from rows import DTYPES

SIMPLE = {
    "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "abs": torch.abs, "neg": torch.neg,
    "reciprocal": torch.reciprocal, "sign": torch.sign, "sin": torch.sin, "cos": torch.cos, "floor": torch.floor,
    "ceil": torch.ceil, "round": torch.round, "trunc": torch.trunc, "erf": torch.erf, "log1p": torch.log1p,
    "expm1": torch.expm1, "relu": F.relu, "silu": F.silu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "selu": F.selu,
    "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid, "mish": F.mish, "logical_not": torch.logical_not,
    "bitwise_not": torch.bitwise_not, "isnan": torch.isnan, "isinf": torch.isinf, "isfinite": torch.isfinite,
    "nan_to_num": torch.nan_to_num, "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
    "floor_divide": torch.floor_divide, "remainder": torch.remainder, "pow": torch.pow, "maximum": torch.maximum,
    "minimum": torch.minimum, "eq": torch.eq, "ne": torch.ne, "gt": torch.gt, "lt": torch.lt, "ge": torch.ge,
    "le": torch.le, "logical_and": torch.logical_and, "logical_or": torch.logical_or, "bitwise_and": torch.bitwise_and,
    "bitwise_or": torch.bitwise_or, "bitwise_xor": torch.bitwise_xor, "where": torch.where, "prelu": F.prelu,
}
# The ops of SIMPLE that write into a tensor given as `out`.
WITH_OUT = {
    name for name, op in SIMPLE.items() if name not in (
        "relu", "silu", "selu", "hardswish", "hardsigmoid", "mish", "prelu", "isnan", "isinf", "isfinite"
    )
}


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def rotate_every_two(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)


def rope(row):
    """Hugging Face's `x * cos + rotate(x) * sin`."""
    rotate = rotate_every_two if row.op == "rope_non_neox" else rotate_half
    if row.op == "rope_neox_position_ids":
        return lambda x, cos, sin, ids: x * cos[ids].unsqueeze(1) + rotate(x) * sin[ids].unsqueeze(1)
    if len(row.shapes[0]) == 2:
        return lambda x, cos, sin: x * cos + rotate(x) * sin
    return lambda x, cos, sin: x * cos[:, None] + rotate(x) * sin[:, None]


def alibi(row, device):
    length, heads, dtype = int(row.params["seq_len"]), int(row.params["num_heads"]), DTYPES[row.dtype]

    def call():
        slopes = torch.exp2(-8.0 * torch.arange(1, heads + 1, device=device, dtype=torch.float32) / heads)
        at = torch.arange(length, device=device, dtype=torch.float32)
        return (-slopes[:, None, None] * (at[:, None] - at[None, :]).abs()).to(dtype)

    return call


def sinusoidal(row, device):
    length, dim, dtype = int(row.params["seq_len"]), int(row.params["d_model"]), DTYPES[row.dtype]

    def call():
        rates = 10000.0 ** (-torch.arange(0, dim, 2, device=device, dtype=torch.float32) / dim)
        angles = torch.arange(length, device=device, dtype=torch.float32)[:, None] * rates
        return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2).to(dtype)

    return call


def gated(activation):
    def call(x):
        gate, value = x.chunk(2, dim=-1)
        return activation(gate) * value

    return call


def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


def function(row, device):
    """The row's op as a function of its tensors."""
    number, op = row.number, row.op
    if op in SIMPLE:
        return SIMPLE[op]
    if op.startswith("rope"):
        return rope(row)
    match op:
        case "gelu":
            return F.gelu
        case "gelu_tanh":
            return gelu_tanh
        case "leaky_relu":
            slope = number("negative_slope", 0.01)
            return lambda x: F.leaky_relu(x, slope)
        case "elu":
            alpha = number("alpha", 1.0)
            return lambda x: F.elu(x, alpha)
        case "hardtanh":
            low, high = number("min", -1.0), number("max", 1.0)
            return lambda x: F.hardtanh(x, low, high)
        case "softplus":
            beta, threshold = number("beta", 1.0), number("threshold", 20.0)
            return lambda x: F.softplus(x, beta, threshold)
        case "round_decimals":
            decimals = int(number("decimals", 2))
            return lambda x: torch.round(x, decimals=decimals)
        case "div_trunc":
            return lambda a, b: torch.div(a, b, rounding_mode="trunc")
        case "lerp":
            weight = number("weight", None)
            return torch.lerp if weight is None else lambda a, b: torch.lerp(a, b, weight)
        case "masked_fill":
            if "0-dim" in row.params["value"]:
                return torch.masked_fill
            value = number("value", 0.0)
            return lambda x, mask: torch.masked_fill(x, mask, value)
        case "clamp" | "clamp_tensor":
            low, high = row.params.get("min"), row.params.get("max")
            if low == high == "tensor":
                return torch.clamp
            if low == "tensor":
                return lambda x, bound: torch.clamp(x, min=bound)
            if high == "tensor":
                return lambda x, bound: torch.clamp(x, max=bound)
            low, high = number("min", None), number("max", None)
            return lambda x: torch.clamp(x, low, high)
        case "dropout":
            p = number("p", 0.5)
            return lambda x: F.dropout(x, p, training=True)
        case "silu_and_mul":
            return gated(F.silu)
        case "gelu_and_mul":
            return gated(F.gelu)
        case "gelu_tanh_and_mul":
            return gated(gelu_tanh)
        case "alibi":
            return alibi(row, device)
        case "sinusoidal":
            return sinusoidal(row, device)
    raise KeyError(f"no PyTorch function for {op}")


def eager(row, device, tensors):
    """The eager call, its result written into a tensor made before where PyTorch can."""
    call = function(row, device)
    if row.op in WITH_OUT:
        out = call(*tensors)
        return lambda: call(*tensors, out=out)
    return lambda: call(*tensors)


def compiled(row, device):
    """torch.compile's function of the row's tensors, compiled on its first call. Each row has code of its own, so that
    no row waits for the guards of others."""
    call = function(row, device)

    def whole(*tensors):
        return call(*tensors)

    name = f"row_{row.key}".replace("/", "_")
    code = whole.__code__.replace(co_name=name)
    own = type(whole)(code, whole.__globals__, name, None, whole.__closure__)
    return torch.compile(own, dynamic=False, fullgraph=True)
