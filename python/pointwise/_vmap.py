"""Rules for vmap of the inner ops: an elementwise op of a batch is the op, with one more dimension in front."""

import math

import torch
from torch import Tensor

from . import _fake


def _front(tensor, dim, rank):
    """The batch in front, and ones behind it up to `rank` dimensions of an entry."""
    tensor = tensor.movedim(dim, 0)
    missing = rank - (tensor.dim() - 1)
    return tensor.reshape(tensor.shape[0], *(1,) * missing, *tensor.shape[1:]) if missing else tensor


def _rank(tensor, dim):
    return tensor.dim() - (dim is not None)


def _entry(tensor, dim):
    """The shape of an entry, none of a number."""
    if not isinstance(tensor, Tensor):
        return None
    return tensor.shape if dim is None else tensor.shape[:dim] + tensor.shape[dim + 1 :]


def _channel(call, op, size, dims, args):
    operands, params = args[: len(op.operands)], args[len(op.operands) :]
    for operand, dim in zip(op.operands, dims):
        if operand.domain == "channel" and dim is not None:
            raise NotImplementedError(f"{op.name}: vmap over {operand.name}; call it for each of them")
    rank = max(_rank(a, d) for o, a, d in zip(op.operands, operands, dims) if o.domain != "channel")
    # The batch joins dimension 0. An entry of one dimension has none for channels: one element serves all.
    batched = [a.expand(size, *a.shape) if d is None else a.movedim(d, 0) for a, d in zip(operands, dims)]
    operands = [
        a if o.domain == "channel" else _front(b, 0, rank) for o, a, b in zip(op.operands, operands, batched)
    ]
    if rank < 2:
        operands = [a.reshape(1) if o.domain == "channel" else a for o, a in zip(op.operands, operands)]
        return call(*operands, *params)
    front = torch.broadcast_shapes(*(a.shape[:2] for o, a in zip(op.operands, operands) if o.domain != "channel"))
    operands = [
        a if o.domain == "channel" else a.expand(*front, *a.shape[2:]).flatten(0, 1)
        for o, a in zip(op.operands, operands)
    ]
    results = call(*operands, *params)
    many = results if isinstance(results, tuple) else (results,)
    many = tuple(r.unflatten(0, front) for r in many)
    return many if isinstance(results, tuple) else many[0]


def _batched(call, op, size, dims, args):
    # Of rows the last dimension stays the row, or its groups. What each row has once lacks it, or has one of groups.
    operands, dims = list(args[: len(op.operands)]), list(dims[: len(op.operands)])
    ranks = [_rank(a, d) if isinstance(a, Tensor) else 0 for a, d in zip(operands, dims)]
    rank = max(r + op.lacks(o) for o, r in zip(op.operands, ranks))
    if op.rows and not any(ranks):
        raise NotImplementedError(f"{op.name}: vmap over tensors of one dimension, whose entries have no rows")
    # Sums over rows are those of an entry: each has its weights. Halves are never broadcast.
    shapes = [_entry(a, d) for a, d in zip(operands, dims)]
    for at in [*op.weights, *(k for k, o in enumerate(op.operands) if o.domain == "halves")]:
        if dims[at] is None and isinstance(operands[at], Tensor):
            operands[at], dims[at] = operands[at].expand(size, *operands[at].shape), 0
    operands = [
        a if d is None else _front(a, d, rank - op.lacks(o)) for o, a, d in zip(op.operands, operands, dims)
    ]
    results = call(*operands, *args[len(op.operands) :])
    if not op.weights:
        return results
    sizes = _fake.shape_of_call(op, shapes)
    if not _fake.is_summed(op, shapes, sizes):
        return results
    many = list(results) if isinstance(results, tuple) else [results]
    for k, result in enumerate(op.results):
        if result.weight is not None:
            own, y = _fake.shape_of_sum(shapes[result.weight], sizes), many[k]
            if y.numel() != size * math.prod(own):
                y = y.sum(dim=list(range(1, y.dim() - 1)))
            many[k] = y.reshape(size, *own)
    return tuple(many) if isinstance(results, tuple) else many[0]


def _check_indices(op, dims, args):
    """Refuses a batch that would count as rows or planes: it is the first dimension of what the op gets."""
    ranks = [x.dim() - (d is not None) for x, d in zip(args, dims) if isinstance(x, Tensor)]
    if op.indices > 2 or max(ranks) < op.indices:
        raise NotImplementedError(
            f"{op.name} takes indices of its elements, which vmap would change: give it the batch as a dimension"
        )


def register(library, namespace, op, kernel):
    """Registers the rule of a kernel."""
    if not op.operands or kernel.out:
        return
    rule = _channel if op.has("channel") else _batched
    name, _, overload = kernel.name.partition(".")
    call = getattr(getattr(getattr(torch.ops, namespace), name), overload or "default")

    def batched(info, dims, *args):
        if op.random:
            if info.randomness != "different":
                raise RuntimeError(f"{op.name} draws random numbers: call vmap with randomness='different'")
            if op.shared_words:
                raise NotImplementedError(
                    f"{op.name} has a random word for each sample, channel or row, which vmap would change: give it the "
                    "batch as a dimension"
                )
            # One place serves the whole batch: its entries take different words.
            *args, seed = args
            args.append(seed if dims[-1] is None else seed.select(dims[-1], 0))
            dims = (*dims[:-1], None)
        if op.indices:
            _check_indices(op, dims, args)
        results = rule(call, op, info.batch_size, dims, args)
        return results, (0,) * len(results) if isinstance(results, tuple) else 0

    torch.library.register_vmap(f"{namespace}::{kernel.name}", batched, lib=library)


# The dimension of the batch, by layout.
_BATCH = {"bshd": 0, "bhsd": 0, "sbhd": 1}


def register_rope(library, namespace, kernel):
    """Registers the rule of a rotary embedding: the batch of vmap joins that of the tensors."""
    if kernel.out:
        return
    call = getattr(getattr(torch.ops, namespace), kernel.name).default
    count = 2 if kernel.name == "rope" else 1

    def batched(info, dims, *args):
        size, tensors = info.batch_size, args[:count]
        cos, sin, ids, offset, rotary_dim, layout, *rest = args[count:]
        if layout not in _BATCH or any(d is not None for d in dims[count : count + 2]) or cos.dim() == 3:
            raise NotImplementedError("rope: vmap needs a layout with a batch, and tables that all entries share")
        at = _BATCH[layout]
        tensors = [
            (t.unsqueeze(at).expand(*t.shape[:at], size, *t.shape[at:]) if d is None else t.movedim(d, at))
            for t, d in zip(tensors, dims)
        ]
        inner = tensors[0].shape[at + 1]
        if ids is not None:
            sequence = ids.shape[-1]
            ids = ids.unsqueeze(0) if dims[count + 2] is None else ids.movedim(dims[count + 2], 0)
            ids = ids.reshape(ids.shape[0], -1, sequence).expand(size, inner, sequence).reshape(-1, sequence)
        results = call(*(t.flatten(at, at + 1) for t in tensors), cos, sin, ids, offset, rotary_dim, layout, *rest)
        many = results if isinstance(results, tuple) else (results,)
        many = tuple(r.unflatten(at, (size, inner)) for r in many)
        return (many, (at,) * count) if isinstance(results, tuple) else (many[0], at)

    torch.library.register_vmap(f"{namespace}::{kernel.name}", batched, lib=library)
