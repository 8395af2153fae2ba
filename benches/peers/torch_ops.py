"""The code that PyTorch users run for each row: one function of the row's tensors, or a composition if there is no single op."""
import torch
import torch.nn.functional as F

import torch_functions
from rows import DTYPES

# The ops whose function writes into a tensor given as `out`.
WITH_OUT = set(
    "exp log sqrt rsqrt abs neg reciprocal sign sin cos floor ceil round trunc erf log1p expm1 sigmoid tanh logical_not bitwise_not "
    "nan_to_num add sub mul div floor_divide remainder pow maximum minimum eq ne gt lt ge le logical_and logical_or bitwise_and "
    "bitwise_or bitwise_xor where".split()
)


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


def function(row, device):
    """The row's op as a function of its tensors."""
    number, op = row.number, row.op
    if op.startswith("rope"):
        return rope(row)
    match op:
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
        case "alibi":
            return alibi(row, device)
        case "sinusoidal":
            return sinusoidal(row, device)
    return torch_functions.function(op)


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
