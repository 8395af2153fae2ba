"""Shapes, element types and strides of results, without computing them. What the Rust kernels allocate, exactly."""

import math

import torch
from torch import Tensor
from torch._prims_common import compute_elementwise_output_strides


def _leader(op, args):
    """The first tensor whose type is not fixed, or the first of all, one on a GPU before a number on the CPU."""
    tensors = [a for a in args[: len(op.operands)] if isinstance(a, Tensor)]
    free = [a for o, a in zip(op.operands, args) if isinstance(a, Tensor) and o.dtype is None] or tensors
    return next((t for t in free if t.device.type != "cpu" or t.dim()), free[0])


def call_type(op, args):
    """The element type of a call: that of its leader, or the op's first where all operands have fixed types."""
    return _leader(op, args).dtype if has_free(op) else getattr(torch, op.dtypes[0])


def has_free(op):
    """True if an operand's type is that of the call."""
    return any(o.dtype is None for o in op.operands)


def _check_devices(op, args):
    """Raises what the kernels raise for tensors of several devices. One on the CPU without dimensions is a number."""
    like = _leader(op, args)
    for operand, a in zip(op.operands, args):
        if isinstance(a, Tensor) and a.device != like.device:
            if a.device.type != "cpu" or a.dim() or operand.dtype:
                raise RuntimeError(
                    f"Expected all tensors to be on the same device, but {operand.name} of {op.name} is on {a.device} "
                    f"and not on {like.device}"
                )


def fixed_type(slot):
    """The element type of an operand or a result, if it is not the call's."""
    return slot.dtype and getattr(torch, slot.dtype)


def _contiguous(sizes):
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step = step * torch.sym_max(size, 1)
    return strides[::-1]


def shapes_of(args):
    """The shapes of tensors, and none of numbers."""
    return [a.shape if isinstance(a, Tensor) else None for a in args]


def shape_of_call(op, shapes):
    """The shape that operands broadcast to. An element of a group counts as all of it, halves as one of them."""

    def counted(operand, shape):
        if operand.domain == "halves":
            name = operand.name
            torch._check(
                len(shape) > 0 and shape[-1] % 2 == 0,
                lambda: f"{op.name}: the last dimension of {name} must be even, {name} is {list(shape)}",
            )
            return (*shape[:-1], shape[-1] // 2)
        if operand.domain != "row":
            return shape
        if not op.group:
            return (*shape, 1)
        return (*shape[:-1], *(n if n == 1 else n * op.group for n in shape[-1:]))

    given = [(o, s) for o, s in zip(op.operands, shapes) if s is not None and o.domain != "channel"]
    sizes = torch.broadcast_shapes(*(counted(o, s) for o, s in given))
    if op.group:
        torch._check(
            len(sizes) > 0 and sizes[-1] % op.group == 0,
            lambda: f"{op.name}: the last dimension must be a multiple of {op.group}, the sizes are {list(sizes)}",
        )
    return sizes


def shape_once(op, sizes):
    """The shape of what each row has once, in a call of `sizes`."""
    return (*sizes[:-1], sizes[-1] // op.group) if op.group else sizes[:-1]


def _is_row(shape, sizes):
    """True if a weight is one row of tensors of `sizes`."""
    last = sizes[-1] if len(sizes) else 1
    return (not len(shape) or shape[-1] == last) and math.prod(shape) == last


def is_summed(op, shapes, sizes):
    """True if the gradients of weights are sums over rows: each weight is one row, one element or a number."""
    weights = [shapes[at] for at in op.weights]
    return bool(weights) and all(
        shape is None or math.prod(shape) == 1 or _is_row(shape, sizes) for shape in weights
    )


def shape_of_sum(shape, sizes):
    """The shape of the gradient of a weight of `shape`, summed over rows."""
    return shape if shape is not None and _is_row(shape, sizes) else sizes[-1:]


def shapes_of_results(op, operands):
    """The shape that the operands broadcast to, and the shapes of the results."""
    shapes = shapes_of(operands[: len(op.operands)])
    sizes = shape_of_call(op, shapes)
    halves = next((shape for o, shape in zip(op.operands, shapes) if o.domain == "halves"), None)
    of = {"elements": sizes, "row": shape_once(op, sizes), "halves": halves}
    sums, made = is_summed(op, shapes, sizes), []
    for r in op.results:
        made.append(shape_of_sum(shapes[r.weight], sizes) if sums and r.weight is not None else of[r.domain])
    return sizes, made


def into(op):
    """The fake of an op that writes to given tensors."""

    def check(*args):
        if op.operands:
            _check_devices(op, args)
            like = _leader(op, args)
            if any(out.device != like.device for out in args[-len(op.results) :]):
                raise RuntimeError(
                    f"Expected all tensors to be on the same device, but a result of {op.name} is not on {like.device}"
                )

    return check


def of(op):
    """The fake of an op that makes new tensors."""
    # Such results lie as the operands do.
    is_like = op.is_of_elements and not op.random and not op.indices

    def fake(*args):
        _check_devices(op, args)
        sizes, shapes = shapes_of_results(op, args)
        if is_like:
            tensors = [a for o, a in zip(op.operands, args) if isinstance(a, Tensor) and o.domain != "channel"]
            strides = compute_elementwise_output_strides(*(t.expand(sizes) for t in tensors))
        call, device, made = call_type(op, args), _leader(op, args).device, []
        for r, own in zip(op.results, shapes):
            dtype = fixed_type(r) or call
            made.append(
                torch.empty_strided(own, strides if is_like else _contiguous(own), dtype=dtype, device=device)
            )
        return made[0] if len(made) == 1 else tuple(made)

    return fake


def rope_into(*args):
    """The fake of a rotary embedding that writes to given tensors."""


def rope_one(q, *args):
    """The fake of the rotary embedding of one tensor."""
    return torch.empty_strided(q.shape, compute_elementwise_output_strides(q), dtype=q.dtype, device=q.device)


def rope(q, k, *args):
    """The fake of the rotary embedding of q and k."""
    return rope_one(q), rope_one(k)
