"""Norms, softmax and others over the last dimension as elementwise ops and reductions, in float32."""

import torch
from torch._decomp import get_decompositions
from torch.fx.experimental.symbolic_shapes import statically_known_true

from ._fused_ops import last

aten = torch.ops.aten


def _wide(x):
    return x if x is None or x.dtype == torch.float32 else x.to(torch.float32)


def _rows(x):
    """Returns a tensor in float32 with its rows one after another, as torch's own kernels have it."""
    return _wide(x.contiguous())


def _serves(x, dim):
    """Returns True if rows along these dimensions are fused."""
    kinds = (torch.float32, torch.float16, torch.bfloat16)
    return x.dtype in kinds and last(x, dim) and statically_known_true(x.shape[-1] > 0)


def _shape(x, shape):
    return _serves(x, -1) and len(shape) == 1


def _softmax(x, dim, half_to_float):
    if not _serves(x, dim):
        return NotImplemented
    wide = _rows(x)
    e = (wide - wide.amax(-1, True)).exp()
    y = e / e.sum(-1, True)
    return y if half_to_float else y.to(x.dtype)


def _safe_softmax(x, dim, dtype=None):
    if dtype is not None or not _serves(x, dim):
        return NotImplemented
    wide = _rows(x)
    top = wide.amax(-1, True)
    e = (wide - top).exp()
    return torch.where(top == -torch.inf, 0.0, e / e.sum(-1, True)).to(x.dtype)


def _log_softmax(x, dim, half_to_float):
    if not _serves(x, dim):
        return NotImplemented
    wide = _rows(x)
    shifted = wide - wide.amax(-1, True)
    y = shifted - shifted.exp().sum(-1, True).log()
    return y if half_to_float else y.to(x.dtype)


def _softmax_backward(grad, y, dim, dtype):
    if not _serves(grad, dim):
        return NotImplemented
    wide = _rows(y)
    product = _rows(grad) * wide
    return (product - wide * product.sum(-1, True)).to(dtype)


def _log_softmax_backward(grad, y, dim, dtype):
    if not _serves(grad, dim):
        return NotImplemented
    wide = _rows(grad)
    return (wide - _rows(y).exp() * wide.sum(-1, True)).to(dtype)


def _scaled(y, weight, bias, dtype):
    y = y if weight is None else y * _wide(weight)
    return (y if bias is None else y + _wide(bias)).to(dtype)


def _layer_norm(x, shape, weight, bias, eps):
    if not _shape(x, shape):
        return NotImplemented
    wide = _rows(x)
    mean = wide.mean(-1, True)
    centred = wide - mean
    rstd = ((centred * centred).mean(-1, True) + eps).rsqrt()
    return _scaled(centred * rstd, weight, bias, x.dtype), mean, rstd


def _rms_norm(x, shape, weight, eps):
    if not _shape(x, shape):
        return NotImplemented
    wide = _rows(x)
    eps = torch.finfo(torch.float32).eps if eps is None else eps
    rstd = ((wide * wide).mean(-1, True) + eps).rsqrt()
    return _scaled(wide * rstd, weight, None, x.dtype), rstd


def _over_rows(x, like):
    """Returns the sum over all dimensions but the last."""
    dims = list(range(x.dim() - 1))
    return (x.sum(dims, dtype=torch.float32) if dims else x.clone()).to(like.dtype)


def _norm_backward(given, x, normal, rstd, weight, bias, mask, is_centred):
    grad = _rows(given)
    scaled = grad if weight is None else grad * _wide(weight)
    inner = scaled - normal * (scaled * normal).mean(-1, True)
    inner = inner - scaled.mean(-1, True) if is_centred else inner
    wants = [mask[0], mask[1] and weight is not None, len(mask) > 2 and mask[2] and bias is not None]
    return (
        (rstd * inner).to(x.dtype) if wants[0] else None,
        _over_rows(grad * normal, weight) if wants[1] else None,
        _over_rows(given, bias) if wants[2] else None,
    )


def _layer_norm_backward(grad, x, shape, mean, rstd, weight, bias, mask):
    if not _shape(x, shape):
        return NotImplemented
    normal = (_rows(x) - _wide(mean)) * _wide(rstd)
    return _norm_backward(grad, x, normal, _wide(rstd), weight, bias, mask, True)


def _rms_norm_backward(grad, x, shape, rstd, weight, mask):
    if not _shape(x, shape):
        return NotImplemented
    normal = _rows(x) * _wide(rstd)
    return _norm_backward(grad, x, normal, _wide(rstd), weight, None, mask, False)[:2]


def _var_mean(x, dim=None, *, correction=None, keepdim=False):
    correction = 1 if correction is None else correction
    if not _serves(x, dim) or not isinstance(x.shape[-1], int) or x.shape[-1] <= correction:
        return NotImplemented
    wide = _rows(x)
    mean = wide.mean(-1, True)
    centred = wide - mean
    var = (centred * centred).sum(-1, True) / (x.shape[-1] - correction)
    var, mean = var.to(x.dtype), mean.to(x.dtype)
    return (var, mean) if keepdim else (var.squeeze(-1), mean.squeeze(-1))


def _var(x, dim=None, *, correction=None, keepdim=False):
    both = _var_mean(x, dim, correction=correction, keepdim=keepdim)
    return both if both is NotImplemented else both[0]


def _std(x, dim=None, *, correction=None, keepdim=False):
    both = _var_mean(x, dim, correction=correction, keepdim=keepdim)
    return both if both is NotImplemented else both[0].sqrt()


def _logsumexp(x, dim, keepdim=False):
    if not _serves(x, dim):
        return NotImplemented
    wide = _rows(x)
    top = wide.amax(-1, True)
    top = torch.where(top.abs() == torch.inf, 0.0, top)
    y = ((wide - top).exp().sum(-1, True).log() + top).to(x.dtype)
    return y if keepdim else y.squeeze(-1)


def _kept(op):
    """Returns a decomposition of a reduction over the last dimension: that dimension stays, until a view removes it."""

    def reduce(x, dim=None, keepdim=False, **given):
        if keepdim or not last(x, dim):
            return NotImplemented
        return op(x, dim, True, **given).squeeze(-1)

    return reduce


_REDUCTIONS = (aten.sum.dim_IntList, aten.mean.dim, aten.amax.default, aten.amin.default)


def _native_dropout(x, p, train):
    if train is False or p == 0 or x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        return NotImplemented
    seed = torch.randint(2**63 - 1, (2,), device=x.device)
    mask = torch.ops.pointwise.dropout_mask(x, p, seed)
    return x * mask * (0.0 if p == 1 else 1 / (1 - p)), mask


def table(fallback_random):
    """Returns the decompositions. `fallback_random`: dropout is torch's, and draws what eager draws."""
    made = get_decompositions(
        [
            aten.glu,
            aten.glu_backward,
            aten.log_sigmoid_forward,
            aten.log_sigmoid_backward,
            aten.mse_loss,
            aten.mse_loss_backward,
            aten.smooth_l1_loss,
            aten.smooth_l1_loss_backward,
            aten.huber_loss,
            aten.huber_loss_backward,
            # All forms of batch norm: torch replaces one that is not here by one that writes to its arguments.
            aten.native_batch_norm,
            aten.native_batch_norm_backward,
            aten._native_batch_norm_legit,
            aten._native_batch_norm_legit_functional,
            aten._native_batch_norm_legit_no_training,
            aten._batch_norm_with_update,
            aten._batch_norm_with_update_functional,
            aten._batch_norm_no_update,
            aten.batch_norm_backward,
            aten.cudnn_batch_norm,
            aten.cudnn_batch_norm_backward,
        ]
    )
    return made | {
        aten._softmax.default: _softmax,
        aten._safe_softmax.default: _safe_softmax,
        aten._log_softmax.default: _log_softmax,
        aten._softmax_backward_data.default: _softmax_backward,
        aten._log_softmax_backward_data.default: _log_softmax_backward,
        aten.native_layer_norm.default: _layer_norm,
        aten.native_layer_norm_backward.default: _layer_norm_backward,
        aten._fused_rms_norm.default: _rms_norm,
        aten._fused_rms_norm_backward.default: _rms_norm_backward,
        aten.var_mean.correction: _var_mean,
        aten.var.correction: _var,
        aten.std.correction: _std,
        aten.logsumexp.default: _logsumexp,
        **{op: _kept(op) for op in _REDUCTIONS},
        **({} if fallback_random else {aten.native_dropout.default: _native_dropout}),
    }
