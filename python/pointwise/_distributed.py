"""How DTensor shards ops. Registered when torch.distributed.tensor is imported.

DTensor acts below autograd, so the rules are those of the inner ops, gradients among them. Where an op needs no
communication, it has none: elementwise ops by any dimension, gated ops and ops on rows by all but the last, rotary
embedding by batch, heads and sequence. A rule is a list of choices: the placements of the results, and of the arguments (None for what is
no tensor).
"""

import functools
import math

import torch
from torch.distributed.tensor import Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor.experimental import register_sharding

from . import _fake

try:
    # torch's own rule for elementwise ops is not public. It takes a third of the host time of a public one.
    from torch.distributed.tensor._op_schema import RuntimeSchemaInfo
    from torch.distributed.tensor._ops._pointwise_ops import pointwise_strategy
    from torch.distributed.tensor._ops.utils import register_op_strategy
except ImportError:
    pointwise_strategy = None

# Where batch, sequence and heads lie, by layout.
_AXES = {
    "bshd": {"batch": 0, "sequence": 1, "heads": 2},
    "bhsd": {"batch": 0, "heads": 1, "sequence": 2},
    "sbhd": {"sequence": 0, "batch": 1, "heads": 2},
    "thd": {"sequence": 0, "heads": 1},
    "sd": {"sequence": 0},
}


def _choice(results, args, placements):
    """A choice: all results by one placement or by a list of them, the tensors among the arguments by `placements`."""
    given = iter(placements)
    return results, [next(given) if isinstance(a, DTensorSpec) else None for a in args]


def _tensors(args):
    return [a for a in args if isinstance(a, DTensorSpec)]


def _elementwise(results, linear, *args):
    """By any dimension; a broadcast operand is whole on each rank. Sums stay sums if the op is linear."""
    tensors = _tensors(args)
    rank = max(t.ndim for t in tensors)
    choices = [_choice([Replicate()] * results, args, [Replicate()] * len(tensors))]
    for dim in range(rank):
        own = [dim - (rank - t.ndim) for t in tensors]
        places = [Shard(d) if d >= 0 and t.shape[d] > 1 else Replicate() for d, t in zip(own, tensors)]
        if any(isinstance(place, Shard) for place in places):
            choices.append(_choice([Shard(dim)] * results, args, places))
    if linear:
        choices.append(_choice([Partial()] * results, args, [Partial()] * len(tensors)))
    return choices


def _channel(op, *args):
    """By any dimension; with dimension 1, what has an entry for each channel."""
    tensors, results = _tensors(args), len(op.results)
    rank = max(t.ndim for o, t in zip(op.operands, tensors) if not o.is_channel)
    choices = [_choice([Replicate()] * results, args, [Replicate()] * len(tensors))]

    def place(operand, tensor, dim):
        own = dim - (rank - tensor.ndim)
        if operand.is_channel:
            own = 0 if dim == 1 and tensor.ndim else -1
        return Shard(own) if own >= 0 and tensor.shape[own] > 1 else Replicate()

    for dim in range(rank):
        places = [place(o, t, dim) for o, t in zip(op.operands, tensors)]
        choices.append(_choice([Shard(dim)] * results, args, places))
    return choices


def _halves(results, *args):
    """By any dimension but the last, which has gate and value."""
    tensors = _tensors(args)
    places = [Replicate(), *map(Shard, range(tensors[0].ndim - 1))]
    return [_choice([place] * results, args, [place] * len(tensors)) for place in places]


def _rows(op, *args):
    """By any dimension but the last, which is the row, or has its groups; a broadcast operand is whole on each rank.

    Sums over rows are sums of the ranks' sums. A weight of several rows is sharded only where no rank has one of them alone,
    which would be the row of all there.
    """
    tensors, results = _tensors(args), len(op.results)
    shapes = [a.shape if isinstance(a, DTensorSpec) else None for a in args[: len(op.operands)]]
    sums = bool(op.weights) and _fake.is_summed(op, shapes, _fake.shape_of_rows(op, shapes))
    # What each row has once lacks the last dimension, or has one of groups.
    ranks = [t.ndim + op.lacks(o) for o, t in zip(op.operands, tensors)]
    rank = max(ranks)
    choices = [_choice([Replicate()] * results, args, [Replicate()] * len(tensors))]
    for dim in range(rank - 1):
        own = [dim - (rank - n) for n in ranks]
        places = [Shard(d) if d >= 0 and t.shape[d] > 1 else Replicate() for d, t in zip(own, tensors)]
        given = iter(places)
        of = [next(given) if shape is not None else None for shape in shapes]
        if any(isinstance(of[at], Shard) and _may_be_one_row(args[at], of[at].dim) for at in op.weights):
            continue
        if any(isinstance(place, Shard) for place in places):
            made = [Partial() if sums and r.weight is not None else Shard(dim) for r in op.results]
            choices.append(_choice(made, args, places))
    return choices


def _may_be_one_row(spec, dim):
    """True if a rank's part of a tensor that is sharded by a dimension may be one row."""
    rows, ranks = spec.shape[dim], spec.mesh.size()
    return math.prod(spec.shape[:-1]) == rows and (rows % ranks != 0 or rows == ranks)


def _rope(count, *args):
    """By batch, heads and sequence.

    By sequence with position ids, whose tables are whole; without, with tables of a row for each token.
    """
    *tensors, cos, sin, ids, offset, _, layout = args[: count + 6]
    axes = _AXES.get(layout, {})
    whole = Replicate()
    choices = []

    def add(results, tables, of_ids):
        choices.append(_choice(results, args, [*results, tables, tables, *([] if ids is None else [of_ids])]))

    add([whole] * count, whole, whole)
    if "batch" in axes:
        batch = Shard(axes["batch"])
        tables = Shard(0) if cos.ndim == 3 and cos.shape[0] > 1 else whole
        add([batch] * count, tables, Shard(0) if ids is not None and ids.ndim == 2 and ids.shape[0] > 1 else whole)
    if "heads" in axes:
        heads = Shard(axes["heads"])
        add([heads] * count, whole, whole)
        if count == 2:
            add([heads, whole], whole, whole)
    sequence = axes.get("sequence")
    if sequence is not None:
        if ids is not None:
            if cos.ndim == 2:
                add([Shard(sequence)] * count, whole, Shard(ids.ndim - 1))
        elif offset == 0 and cos.shape[-2] == tensors[0].shape[sequence]:
            add([Shard(sequence)] * count, Shard(cos.ndim - 2), whole)
    return choices


def _overloads(namespace, kernel):
    name, _, overload = kernel.name.partition(".")
    return getattr(getattr(getattr(torch.ops, f"{namespace}_kernels"), name), overload or "default")


def register(namespace, description, private=pointwise_strategy is not None):
    """Registers the rules of a library's ops. `private` takes torch's own rule for elementwise ops."""
    for op in description.ops.values():
        if op.form == "generator" or op.random or op.indices:
            continue
        results = len(op.results)
        for kernel in op.kernels:
            if kernel.out:
                continue
            overload = _overloads(namespace, kernel)
            count = len(op.operands) - len(kernel.numbers)
            linear = namespace == "pointwise" and (op.name == "neg" or op.name in ("add", "sub") and count == 2)
            if op.form == "channel":
                register_sharding(overload)(functools.partial(_channel, op))
            elif op.form in ("halves", "halves_gradient"):
                register_sharding(overload)(functools.partial(_halves, results))
            elif op.form == "rows":
                register_sharding(overload)(functools.partial(_rows, op))
            elif private and results == 1:
                rule = functools.partial(pointwise_strategy, linearity=count - 1) if linear else pointwise_strategy
                register_op_strategy(overload, RuntimeSchemaInfo(needs_pytree=False))(rule)
            else:
                register_sharding(overload)(functools.partial(_elementwise, results, linear))
    for kernel in description.rope_kernels:
        if not kernel.out:
            register_sharding(_overloads(namespace, kernel))(functools.partial(_rope, 2 if kernel.name == "rope" else 1))
