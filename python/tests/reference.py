"""torch's op for each of pointwise's, operands for them, and a tensor of a subclass."""

import pathlib
import sys

import torch

sys.path.append(str(pathlib.Path(__file__).parents[2] / "benches" / "peers"))
import torch_functions  # noqa: E402

NAMES = """
abs add bitwise_and bitwise_not bitwise_or bitwise_xor ceil clamp cos div eq erf exp expm1 floor floor_divide ge gt
isfinite isinf isnan le lerp log log1p logical_and logical_not logical_or lt masked_fill maximum minimum mul nan_to_num
ne neg pow prelu reciprocal remainder round rsqrt sigmoid sign sin sqrt sub tanh trunc where
elu gelu hardsigmoid hardswish hardtanh leaky_relu mish relu selu silu softplus
""".split()
REFERENCE = {name: torch_functions.function(name) for name in (*NAMES, *torch_functions.OTHERS)}

ALL = [
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
]


def tensor(shape, dtype, device="cpu", positive=False):
    """Values that most ops take."""
    if dtype == torch.bool:
        return torch.rand(shape, device=device) > (-1 if positive else 0.5)
    if not dtype.is_floating_point:
        low = 1 if positive else 0 if dtype == torch.uint8 else -9
        return torch.randint(low, 10, shape, device=device).to(dtype)
    x = torch.randn(shape, device=device, dtype=torch.float64) * 3
    return (x.abs() + 0.1 if positive else x).to(dtype)


def shapes(op, shape):
    """The shape of an operand of each domain. Halves have `shape` as a whole."""
    elements = (*shape[:-1], shape[-1] // 2) if op.has("halves") else shape
    return {"elements": elements, "channel": shape[1:2], "row": shape[:-1], "halves": shape}


def operands(op, dtype, device="cpu", shape=(4, 6), positive=False):
    """Operands of an op, from its data."""
    made = []
    sizes = shapes(op, shape)
    for operand in op.operands:
        size = sizes[operand.domain]
        own = getattr(torch, operand.dtype) if operand.dtype else dtype
        x = tensor(size, own, device, positive)
        if operand.name == "labels":
            x = x.abs() % shape[-1]
        if op.rows and operand.is_bool:
            # No row is masked whole.
            x[..., 0] = False
        made.append(x)
    return made


def close(ours, theirs, dtype):
    """Compares under torch's tolerances; what one rounding of 16 bits may differ by is allowed once more."""
    rtol, atol = {torch.float16: (2e-3, 1e-4), torch.bfloat16: (1.6e-2, 1e-4)}.get(dtype, (2e-6, 2e-6))
    if dtype == torch.float64:
        rtol, atol = 1e-9, 1e-12
    torch.testing.assert_close(ours, theirs, rtol=rtol, atol=atol, equal_nan=True)


class Wrapped(torch.Tensor):
    """A tensor of a subclass, around another."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, f, types, args=(), kwargs=None):
        made = f(*(a.inner if isinstance(a, cls) else a for a in args), **(kwargs or {}))
        return tuple(map(cls, made)) if isinstance(made, tuple) else cls(made)
