"""Helpers of the passes over graphs of aten's ops: results, arguments as keys, tensors that are alike, and new calls."""

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves

from ._fused_ops import same_shape

aten = torch.ops.aten


def is_op(node):
    """Returns True for a call of an op of torch's."""
    return node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)


def is_functional(graph):
    """Returns True if no op of a graph writes to a tensor."""
    higher = any(isinstance(node.target, torch._ops.HigherOrderOperator) for node in graph.nodes)
    return not higher and not any(is_op(node) and node.target._schema.is_mutable for node in graph.nodes)


def results(graph):
    """Returns the nodes in whose memory a graph's results may lie."""
    *_, output = graph.nodes
    found, stack = set(), list(output.all_input_nodes)
    while stack:
        node = stack.pop()
        is_new = is_op(node) and node.target != aten._unsafe_view.default
        is_new = is_new and all(result.alias_info is None for result in node.target._schema.returns)
        if node not in found:
            found.add(node)
            stack += () if is_new else node.all_input_nodes
    return found


def key(x):
    """Returns an argument as a key of a dict; raises TypeError for one that has none."""
    if isinstance(x, (list, tuple)):
        return list, tuple(map(key, x))
    if isinstance(x, slice):
        return slice, key((x.start, x.stop, x.step))
    if isinstance(x, dict):
        return dict, tuple((name, key(value)) for name, value in sorted(x.items()))
    if isinstance(x, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        raise TypeError("a number is known at run time only")
    # 0.0 equals -0.0, and 1 equals 1.0 and True.
    return type(x), repr(x) if isinstance(x, float) else x


def are_alike(a, b):
    """Returns True if tensors have one element type, shape and device."""
    a, b = a.meta["val"], b.meta["val"]
    return (a.dtype, a.device) == (b.dtype, b.device) and same_shape(a.shape, b.shape)


def lie_alike(a, b):
    """Returns True if tensors are alike, and lie in memory alike."""
    return are_alike(a, b) and same_shape(a.meta["val"].stride(), b.meta["val"].stride())


def call(graph, target, *args, **named):
    """Adds a call to a graph, with what it makes."""
    fakes = map_arg((args, named), lambda x: x.meta["val"])
    with next(x.fake_mode for x in tree_leaves(fakes) if isinstance(x, FakeTensor)):
        value = target(*fakes[0], **fakes[1])
    made = graph.call_function(target, args, named)
    made.meta["val"] = value
    return made


def replace(graph, node, y):
    """Puts a tensor in place of a node, and in its order of memory."""
    steps, made = node.meta["val"].stride(), y
    if y.meta["val"].stride() != steps:
        order = sorted(range(len(steps)), key=lambda dim: -steps[dim])
        is_moved = order != sorted(order)
        made = call(graph, aten.permute.default, made, order) if is_moved else made
        made = call(graph, aten.clone.default, made, memory_format=torch.contiguous_format)
        made = call(graph, aten.permute.default, made, [order.index(dim) for dim in range(len(order))]) if is_moved else made
    node.replace_all_uses_with(made)
