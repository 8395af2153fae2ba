"""The peers that may be missing: CuPy, Liger, FlashInfer. Each `NAME(row, tensors)` gives a call and its result tensor
(None where the call returns it), and a note or None; or None where the peer has no such op."""
import functools
import importlib

import torch

CUPY = {
    "exp": "exp", "log": "log", "sqrt": "sqrt", "abs": "absolute", "neg": "negative", "reciprocal": "reciprocal",
    "sign": "sign", "sin": "sin", "cos": "cos", "floor": "floor", "ceil": "ceil", "round": "rint", "trunc": "trunc",
    "log1p": "log1p", "expm1": "expm1", "tanh": "tanh", "isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite",
    "logical_not": "logical_not", "bitwise_not": "invert", "add": "add", "sub": "subtract", "mul": "multiply",
    "div": "true_divide", "floor_divide": "floor_divide", "remainder": "remainder", "pow": "power",
    "maximum": "maximum", "minimum": "minimum", "eq": "equal", "ne": "not_equal", "gt": "greater", "lt": "less",
    "ge": "greater_equal", "le": "less_equal", "logical_and": "logical_and", "logical_or": "logical_or",
    "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or", "bitwise_xor": "bitwise_xor",
}
# Written in C++ for cupy.ElementwiseKernel; arithmetic in f32, as a user would for halves.
CUPY_KERNELS = {
    "relu": "y = (T)fmaxf((float)x, 0.0f)",
    "sigmoid": "y = (T)(1.0f / (1.0f + expf(-(float)x)))",
    "silu": "y = (T)((float)x / (1.0f + expf(-(float)x)))",
    "gelu": "y = (T)(0.5f * (float)x * (1.0f + erff((float)x * 0.70710678f)))",
    "erf": "y = (T)erff((float)x)",
    "rsqrt": "y = (T)rsqrtf((float)x)",
}
BOOL_RESULT = set("isnan isinf isfinite logical_not eq ne gt lt ge le logical_and logical_or".split())


@functools.cache
def module(name):
    """A module, or the reason why it is missing as text."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # a peer that is there in part may fail in any way
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:300]


def missing():
    """The peers that cannot be imported, with the reason."""
    names = {"triton": "triton", "cupy": "cupy", "liger": "liger_kernel.ops.swiglu", "flashinfer": "flashinfer"}
    found = {peer: module(name) for peer, name in names.items()}
    reasons = {peer: reason for peer, reason in found.items() if isinstance(reason, str)}
    if "triton" in reasons:
        reasons["inductor"] = "it makes kernels for GPUs with Triton, which is missing"
    return reasons


def cupy(row, tensors):
    cupy = module("cupy")
    if isinstance(cupy, str) or row.dtype == "bf16":
        return None
    operands = [cupy.from_dlpack(x) for x in tensors]
    if row.op in CUPY_KERNELS:
        # One kernel object a name: CuPy caches what it compiles on disk.
        call = cupy.ElementwiseKernel("T x", "T y", CUPY_KERNELS[row.op], f"peer_{row.op}")
    elif row.op in CUPY:
        call = getattr(cupy, CUPY[row.op])
    else:
        return None
    x, shape = tensors[0], torch.broadcast_shapes(*(x.shape for x in tensors))
    result = torch.empty(shape, dtype=torch.bool if row.op in BOOL_RESULT else x.dtype, device=x.device)
    out = cupy.from_dlpack(result)
    if row.op in CUPY_KERNELS:
        return lambda: call(operands[0], out), result, None
    return lambda: call(*operands, out=out), result, None


def liger(row, tensors):
    if row.op == "silu_and_mul" and not isinstance(swiglu := module("liger_kernel.ops.swiglu"), str):
        return lambda: swiglu.swiglu_fused_gate_up_forward(tensors[0])[1], None, None
    if row.op == "gelu_tanh_and_mul" and not isinstance(geglu := module("liger_kernel.ops.geglu"), str):
        gate, value = (half.contiguous() for half in tensors[0].chunk(2, dim=-1))
        return lambda: geglu.geglu_forward(gate, value)[2], None, "gate and value in tensors of their own"
    ropes = ("rope_neox", "rope_llama31", "rope_yarn", "rope_longrope")
    if row.op in ropes and len(row.shapes[0]) == 4 and row.shapes[0][2] % 2 == 0:
        rope = module("liger_kernel.ops.rope")
        if isinstance(rope, str):
            return None
        x, cos, sin = tensors
        # Liger rotates q and k in one launch: half of the heads each, seen as (batch, heads, length, dim).
        q, k = (half.contiguous().transpose(1, 2) for half in x.chunk(2, dim=2))
        return lambda: rope.rope_forward(q, k, cos, sin)[:2], None, "in place, q and k of half the heads each"
    return None


def flashinfer(row, tensors):
    flashinfer = module("flashinfer")
    if isinstance(flashinfer, str) or row.dtype == "f32" or not row.op.endswith("_and_mul"):
        return None
    x = tensors[0]
    result = torch.empty((*x.shape[:-1], x.shape[-1] // 2), dtype=x.dtype, device=x.device)
    call = getattr(flashinfer, row.op)
    return lambda: call(x, out=result), result, None
