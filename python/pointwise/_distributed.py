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


def _by_dimensions(op, linear, *args):
    """By any dimension; a broadcast operand is whole on each rank. Dimension 1 shards what each channel has once.

    The last dimension is whole where it is the row, has its groups, or has gate and value. Sums stay sums if the op is
    linear. Sums over rows are sums of the ranks' sums. A weight of several rows is sharded only where no rank has one of
    them alone, which would be the row of all there.
    """
    given = [(o, a) for o, a in zip(op.operands, args) if isinstance(a, DTensorSpec)]
    tensors, results = [t for _, t in given], len(op.results)
    shapes = [a.shape if isinstance(a, DTensorSpec) else None for a in args[: len(op.operands)]]
    sums = bool(op.weights) and _fake.is_summed(op, shapes, _fake.shape_of_call(op, shapes))
    rank = max(t.ndim + op.lacks(o) for o, t in given if o.domain != "channel")
    choices = [_choice([Replicate()] * results, args, [Replicate()] * len(tensors))]

    def place(operand, tensor, dim):
        own = dim - (rank - tensor.ndim - op.lacks(operand))
        if operand.domain == "channel":
            own = 0 if dim == 1 and tensor.ndim else -1
        return Shard(own) if own >= 0 and tensor.shape[own] > 1 else Replicate()

    for dim in range(rank if op.is_of_elements else rank - 1):
        places = [place(o, t, dim) for o, t in given]
        of = dict(zip([k for k, shape in enumerate(shapes) if shape is not None], places))
        if any(isinstance(of.get(at), Shard) and _may_be_one_row(args[at], of[at].dim) for at in op.weights):
            continue
        if any(isinstance(one, Shard) for one in places):
            made = [Partial() if sums and r.weight is not None else Shard(dim) for r in op.results]
            choices.append(_choice(made, args, places))
    if linear:
        choices.append(_choice([Partial()] * results, args, [Partial()] * len(tensors)))
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
        if not op.operands or op.random or op.indices:
            continue
        for kernel in op.kernels:
            if kernel.out:
                continue
            overload = _overloads(namespace, kernel)
            count = len(op.operands) - len(kernel.numbers)
            linear = namespace == "pointwise" and (op.name == "neg" or op.name in ("add", "sub") and count == 2)
            if private and op.is_elementwise and len(op.results) == 1:
                rule = functools.partial(pointwise_strategy, linearity=count - 1) if linear else pointwise_strategy
                register_op_strategy(overload, RuntimeSchemaInfo(needs_pytree=False))(rule)
            else:
                register_sharding(overload)(functools.partial(_by_dimensions, op, linear))
    for kernel in description.rope_kernels:
        if not kernel.out:
            register_sharding(_overloads(namespace, kernel))(functools.partial(_rope, 2 if kernel.name == "rope" else 1))
