"""Kernels under torch's ops on rows: softmax, norms and logsumexp over the last dimension, forward and backward.

They stand under the ops of aten that torch's functions come down to, at BackendSelect as those of elementwise ops
(`_override`): autograd, autocast, vmap and subclasses are torch's. A call that is not served goes on to torch's kernel by
the keys that are left. Softmax and logsumexp run the kernels of pointwise's own ops. Norms also give the means and
deviations that torch's backward reads, and gradients of softmax read its result, which no op has: these are programs, fused
at run time.
"""

import functools
import json
import math

import torch

from . import _fused

aten = torch.ops.aten
_BELOW = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
# The keys of dense tensors of one device.
CPU, _CUDA = (torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, name)).raw_repr() for name in ("CPU", "CUDA"))
# Those that are served. On the CPU torch's kernels are faster, by far; tests add it.
SERVED = {_CUDA}
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)
# What a kernel walks.
_MOST_DIMENSIONS = 8
# Bytes: on a GPU, rows of whole vectors are read by these, and rows that threads can hold are read once.
_VECTOR, _LONGEST = 16, 2**15


class _Value:
    """A value of a program, in f32. `row`: each row has it once."""

    def __init__(self, program, at, row):
        self.program, self.at, self.row = program, at, row

    def op(self, name, *others, params=()):
        """An op of pointwise over it and others."""
        values = [self, *others]
        row = all(v.row for v in values if isinstance(v, _Value))
        return self.program.step({"op": name, "params": list(params)}, values, row)

    def __add__(self, other):
        return self.op("add", other, params=[None])

    def __sub__(self, other):
        return self.op("sub", other, params=[None])

    def __mul__(self, other):
        return self.op("mul", other)

    def reduce(self, kind):
        """Its sum, mean or largest over each row."""
        return self.program.step({"reduce": kind}, [self], True)


class _Program:
    """A program while it is made, over operands of these types. It computes in f32."""

    def __init__(self, *dtypes):
        self.operands = [{"dtype": _fused.NAMES[dtype], "scalar": False} for dtype in dtypes]
        self.steps, self.dtypes = [], dtypes

    def step(self, step, args, row):
        """Adds a step. Returns its value."""
        args = [{"v": a.at} if isinstance(a, _Value) else {"n": a} for a in args]
        self.steps.append({**step, "args": args})
        return _Value(self, len(self.operands) + len(self.steps) - 1, row)

    def values(self):
        """The operands in f32."""
        values = [_Value(self, at, False) for at in range(len(self.operands))]
        return [
            v if dtype == torch.float32 else self.step({"to": "f32"}, [v], False)
            for v, dtype in zip(values, self.dtypes)
        ]

    def number(self, *results):
        """Returns its number. A result is a value and its element type."""
        stored = [
            v if dtype == torch.float32 else self.step({"to": _fused.NAMES[dtype]}, [v], v.row) for v, dtype in results
        ]
        text = {"operands": self.operands, "steps": self.steps, "results": [{"v": v.at} for v in stored]}
        return _fused.number(json.dumps(text), [(dtype, v.row, 1, 0) for v, dtype in results])


def _run(keys, program, *operands):
    """The results of a program for tensors that are there."""
    # No `__torch_function__` sees this call: it is torch's own that a user makes.
    return torch.ops.pointwise.fused.default.redispatch(keys, program, [x for x in operands if x is not None])


def _is_served(is_gpu, x, length):
    """True if a tensor has rows of this length that kernels take, and take in good time."""
    if is_gpu and (length * x.itemsize % _VECTOR or length * x.itemsize > _LONGEST):
        return False
    return x.dtype in _FLOATS and x.dim() <= _MOST_DIMENSIONS and x.numel() > 0


def _has_rows(is_gpu, x, dim):
    """True for rows along a dimension that is the last."""
    last = x.dim() - 1
    return last >= 0 and (dim == -1 or dim == last) and _is_served(is_gpu, x, x.shape[-1])


def _rows(x):
    """The tensor with the elements of a row one after another. torch's own kernels copy all that is not contiguous."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _softmax(name, keys, is_gpu, x, dim, half_to_float):
    # Of f16 in and f32 out there is no kernel.
    if half_to_float or not _has_rows(is_gpu, x, dim):
        return None
    return getattr(torch.ops.pointwise_kernels, name).default.redispatch(keys, _rows(x), 1.0)


@functools.cache
def _softmax_backward_program(name, dtype):
    program = _Program(dtype, dtype)
    grad, y = program.values()
    if name == "log_softmax":
        return program.number((grad - y.op("exp") * grad.reduce("sum"), dtype))
    product = grad * y
    return program.number((product - y * product.reduce("sum"), dtype))


def _softmax_backward(name, keys, is_gpu, grad, y, dim, dtype):
    if not _has_rows(is_gpu, grad, dim) or not _are_like(grad, grad.shape, y) or dtype != grad.dtype:
        return None
    return _run(keys, _softmax_backward_program(name, dtype), _rows(grad), _rows(y))[0]


@functools.cache
def _norm_program(is_centred, eps, dtype, has_weight, has_bias, statistics):
    program = _Program(*[dtype] * (1 + has_weight + has_bias))
    x, *others = program.values()
    mean = x.reduce("mean") if is_centred else None
    d = x - mean if is_centred else x
    square = (d * d).reduce("mean")
    if is_centred and dtype == torch.float32:
        # What the mean was rounded by shows in float32, beside a mean that is far from zero.
        rest = d.reduce("mean")
        mean, d, square = mean + rest, d - rest, square - rest * rest
    rstd = (square + eps).op("rsqrt")
    y = d * rstd
    y = y * others[0] if has_weight else y
    y = y + others[-1] if has_bias else y
    return program.number((y, dtype), *([(mean, statistics)] if is_centred else []), (rstd, statistics))


def _has_shape(is_gpu, x, shape):
    """True for rows along the dimensions of a shape that are the last."""
    n = len(shape)
    return 0 < n <= x.dim() and x.shape[-n:] == shape and _is_served(is_gpu, x, math.prod(shape))


def _are_like(x, shape, *others):
    """True if others are not there, or of a shape, on the device of a tensor and of its type."""
    return all(o is None or o.dtype == x.dtype and o.shape == shape and o.device == x.device for o in others)


def _flat(x, shape):
    """The tensor whose trailing dimensions are one; None if it is no view."""
    if len(shape) == 1:
        return x
    return x.flatten(x.dim() - len(shape)) if x.is_contiguous() else None


def _norm(is_centred, keys, is_gpu, x, shape, weight, bias, eps):
    n, shape = len(shape), tuple(shape)
    if not _has_shape(is_gpu, x, shape):
        return None
    if not _are_like(x, shape, weight, bias):
        return None
    rows = _flat(x, shape)
    if rows is None:
        return None
    # As torch has them: on the CPU of the operands' type.
    statistics = torch.float32 if is_gpu else x.dtype
    eps = torch.finfo(torch.float32).eps if eps is None else eps
    program = _norm_program(is_centred, eps, x.dtype, weight is not None, bias is not None, statistics)
    others = [None if other is None else other.reshape(-1) for other in (weight, bias)]
    y, *made = _run(keys, program, _rows(rows), *others)
    if n > 1:
        y = y.view(x.shape)
        made = [m.view(*x.shape[:-n], *(1,) * n) for m in made]
    return (y, *made)


@functools.cache
def _norm_backward_program(is_centred, dtype, has_weight, statistics):
    program = _Program(dtype, dtype, *[statistics] * (1 + is_centred), *[dtype] * has_weight)
    grad, x, *others = program.values()
    scaled = grad * others[-1] if has_weight else grad
    d = x - others[0] if is_centred else x
    rstd = others[is_centred]
    normal = d * rstd
    inner = scaled - normal * (scaled * normal).reduce("mean")
    inner = inner - scaled.reduce("mean") if is_centred else inner
    return program.number((rstd * inner, dtype))


def _norm_backward(is_centred, keys, is_gpu, grad, x, shape, *others):
    """The gradient of the operand. Those of weight and bias, which are sums over the rows, are torch's."""
    *statistics, weight = others[: 2 + is_centred]
    mask = others[-1]
    shape = tuple(shape)
    if not mask[0] or not _has_shape(is_gpu, x, shape) or not _are_like(x, x.shape, grad):
        return None
    if not _are_like(x, shape, weight):
        return None
    grads, rows = _flat(grad, shape), _flat(x, shape)
    if grads is None or rows is None:
        return None
    program = _norm_backward_program(is_centred, x.dtype, weight is not None, statistics[0].dtype)
    statistics = [_flat(v, shape) for v in statistics]
    given = None if weight is None else weight.reshape(-1)
    (made,) = _run(keys, program, _rows(grads), _rows(rows), *statistics, given)
    made = made.view(x.shape)
    if not any(mask[1:]):
        return (made, *(None for _ in mask[1:]))
    op = aten.native_layer_norm_backward if is_centred else aten._fused_rms_norm_backward
    rest = op.default.redispatch(keys, grad, x, shape, *others[:-1], [False, *mask[1:]])
    return (made, *rest[1:])


def _logsumexp(keys, is_gpu, x, dim, keepdim=False):
    if len(dim) != 1 or not _has_rows(is_gpu, x, dim[0]):
        return None
    y = torch.ops.pointwise_kernels.logsumexp.default.redispatch(keys, _rows(x))
    return y.unsqueeze(-1) if keepdim else y


def _rms_norm(keys, is_gpu, x, shape, weight, eps):
    return _norm(False, keys, is_gpu, x, shape, weight, None, eps)


# By the function that users call: aten's ops that it comes down to, and what serves a call of each or returns None.
OPS = {
    "softmax": {
        "_softmax": functools.partial(_softmax, "softmax"),
        "_softmax_backward_data": functools.partial(_softmax_backward, "softmax"),
    },
    "log_softmax": {
        "_log_softmax": functools.partial(_softmax, "log_softmax"),
        "_log_softmax_backward_data": functools.partial(_softmax_backward, "log_softmax"),
    },
    "layer_norm": {
        "native_layer_norm": functools.partial(_norm, True),
        "native_layer_norm_backward": functools.partial(_norm_backward, True),
    },
    "rms_norm": {"_fused_rms_norm": _rms_norm, "_fused_rms_norm_backward": functools.partial(_norm_backward, False)},
    "logsumexp": {"logsumexp": _logsumexp},
}
# The function of each of them.
FUNCTIONS = {name: function for function, ops in OPS.items() for name in ops}


class Counter:
    """The number of calls that were served."""

    calls = 0


def _kernel(name):
    """The kernel of an op."""
    serve, next = OPS[FUNCTIONS[name]][name], getattr(aten, name).default

    def run(keys, *args, **more):
        keys = keys & _BELOW
        raw = keys.raw_repr()
        # All else is on the CPU, or sparse, quantised, nested or meta, or on several devices.
        results = serve(keys, raw == _CUDA, *args, **more) if raw in SERVED else None
        if results is None:
            return next.redispatch(keys, *args, **more)
        Counter.calls += 1
        return results

    return run


_library = None


def choose(names):
    """Lets calls of these ops run pointwise's kernels, and calls of all others torch's: for them nothing is registered."""
    global _library
    if _library is not None:
        _library._destroy()
        _library = None
    if names:
        _library = torch.library.Library("aten", "IMPL")
        for name in names:
            _library.impl(name, _kernel(name), "BackendSelect", with_keyset=True)
