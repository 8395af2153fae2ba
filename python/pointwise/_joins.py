"""Changes to a graph: `cat` moves behind the elementwise ops that read it, so that one kernel writes all parts of a result.

Rotary embedding, `x * cos + cat((-x2, x1)) * sin`, becomes `cat((x1 * cos1 - x2 * sin1, x2 * cos2 + x1 * sin2))`. Its gradient
slices products, and adds tensors that are zero outside a slice: slices move to the operands, and the sum becomes a `cat`.
"""

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from . import _graph
from ._fused_ops import ROW_OPS, RULES, Program, Refused, same_shape

aten = torch.ops.aten
# A longer chain stays as it is: each op is there once for each part.
_MOST_OPS, _MOST_PARTS = 12, 4


def _value(node):
    value = node.meta.get("val") if isinstance(node, Node) else None
    return value if isinstance(value, torch.Tensor) else None


def _is_elementwise(node):
    """Returns True for an op of which a part of the operands makes a part of the result, and that a kernel can hold."""
    if node.target not in RULES or node.target in ROW_OPS or _value(node) is None:
        return False
    try:
        Program().lower(node)
    except Refused:
        return False
    return True


def _size(node, dim):
    """Returns the size of a tensor along a dimension that is counted from the last (-1), 1 where it has none."""
    value = _value(node)
    return 1 if value is None or value.dim() < -dim else value.shape[dim]


def _range(node):
    """Returns the dimension, counted from the last, the start and the end of a slice, or None."""
    value = _value(node.args[0]) if node.target == aten.slice.Tensor else None
    if value is None or not isinstance(_value(node), torch.Tensor):
        return None
    dim, start, end, step = (*node.args[1:], *(0, None, None, 1)[len(node.args) - 1 :])
    dim = dim - value.dim() if dim >= 0 else dim
    size = value.shape[dim]
    if node.kwargs or not isinstance(size, int) or step != 1:
        return None
    start, end = 0 if start is None else start, size if end is None else end
    if not isinstance(start, int) or not isinstance(end, int) or start < 0 or end < 0:
        return None
    end = min(end, size)
    return (dim, start, end) if start < end else None


def _slice(graph, node, dim, start, end, before):
    """Returns a part of a tensor, which is there before a node."""
    for user in node.users:
        if user.args[0] is node and _range(user) == (dim, start, end) and user < before:
            return user
    with graph.inserting_before(before):
        return _graph.call(graph, aten.slice.Tensor, node, dim + _value(node).dim(), start, end)


def slices(graph):
    """Moves slices of an elementwise op's result to its operands, where nothing else reads the result."""
    for node in reversed(list(graph.nodes)):
        ranges = [_range(user) for user in node.users] if node.op == "call_function" else []
        if not ranges or None in ranges or len({dim for dim, _, _ in ranges}) != 1:
            continue
        dim = ranges[0][0]
        if sum(end - start for _, start, end in ranges) > _size(node, dim) or not _is_elementwise(node):
            continue
        readers = [reader for user in node.users for reader in user.users]
        if not all(x.target in (aten.cat.default, aten.slice_backward.default) or _is_elementwise(x) for x in readers):
            continue
        for user, (_, start, end) in zip(list(node.users), ranges):

            def part(x):
                return x if _size(x, dim) == 1 else _slice(graph, x, dim, start, end, user)

            args, named = map_arg((node.args, node.kwargs), part)
            with graph.inserting_before(user):
                made = _graph.call(graph, node.target, *args, **named)
            user.replace_all_uses_with(made)
            graph.erase_node(user)
        graph.erase_node(node)


class _Split:
    """A `cat`, and the ops behind it that become ops on its parts."""

    def __init__(self, graph, node):
        self.graph = graph
        self.shape = _value(node).shape
        self.dim, self.count = _parts(node)
        self.inner, self.sources = set(), {node}
        self._spread(node)
        # An operand that nothing else reads is computed in parts, too.
        todo = list(self.inner)
        while todo:
            for x in todo.pop().all_input_nodes:
                if x in self.inner or x in self.sources or _size(x, self.dim) != self.shape[self.dim]:
                    continue
                if not all(user in self.inner for user in x.users):
                    continue
                if _parts(x) == (self.dim, self.count):
                    self.sources.add(x)
                elif _is_elementwise(x):
                    self.inner.add(x)
                    todo.append(x)

    def _spread(self, node):
        for user in node.users:
            if user not in self.inner and len(self.inner) <= _MOST_OPS and self._is_same(user):
                self.inner.add(user)
                self._spread(user)

    def _is_same(self, node):
        return _value(node) is not None and same_shape(_value(node).shape, self.shape) and _is_elementwise(node)

    def is_worth(self):
        """Returns True if no `cat` is left to be read as it is, and zeros vanish."""
        if not 0 < len(self.inner) <= _MOST_OPS or any(user not in self.inner for x in self.sources for user in x.users):
            return False
        zeros = {}
        for node in sorted(self.inner | self.sources):
            if node in self.sources:
                zeros[node] = {k for k, x in enumerate(_parts_of(node, self.count)) if x is None}
                continue
            # A tensor that is added to itself counts twice.
            given = [zeros.get(x, set()) for x in node.args if isinstance(x, Node)]
            zeros[node] = set.intersection(*given) if len(given) == 2 else set()
            is_sum = node.target == aten.add.Tensor and len(node.args) == 2 and not node.kwargs
            is_plain = is_sum and all(isinstance(x, Node) and self._is_alike(x, node) for x in node.args)
            if any(map(zeros.get, node.all_input_nodes)) and not is_plain or zeros[node] and any(user not in self.inner for user in node.users):
                return False
        return True

    @staticmethod
    def _is_alike(a, b):
        a, b = _value(a), _value(b)
        return a is not None and a.dtype == b.dtype and same_shape(a.shape, b.shape)

    def run(self):
        parts, size = {}, self.shape[self.dim] // self.count
        nodes = sorted(self.inner | self.sources)
        for node in nodes:
            if node in self.sources:
                parts[node] = _parts_of(node, self.count)
                continue
            parts[node] = []
            for k in range(self.count):

                def part(x):
                    if x in parts:
                        return parts[x][k]
                    is_whole = _size(x, self.dim) == 1
                    return x if is_whole else _slice(self.graph, x, self.dim, k * size, (k + 1) * size, node)

                if any(x in parts and parts[x][k] is None for x in node.all_input_nodes):
                    # A sum with zero.
                    others = [x for x in node.args if x not in parts or parts[x][k] is not None]
                    parts[node].append(part(others[0]) if others else None)
                    continue
                args, named = map_arg((node.args, node.kwargs), part)
                with self.graph.inserting_before(node):
                    parts[node].append(_graph.call(self.graph, node.target, *args, **named))
        for node in reversed(nodes):
            # Those behind it are gone: who reads it now is none of them.
            if node.users:
                with self.graph.inserting_before(node):
                    whole = self.graph.call_function(aten.cat.default, (parts[node], self.dim))
                # It lies in memory as the result did.
                whole.meta = dict(node.meta) | {"pointwise_joins": True}
                node.replace_all_uses_with(whole)
            self.graph.erase_node(node)


def _parts(node):
    """Returns the dimension of a `cat` of like parts, counted from the last, and their number; or None."""
    value = _value(node)
    if value is None or value.dim() == 0:
        return None
    if node.target == aten.cat.default and not node.kwargs:
        dim = node.args[1] if len(node.args) > 1 else 0
        dim = dim - value.dim() if dim >= 0 else dim
        given = [_value(x) for x in node.args[0]]
        is_like = all(x is not None and x.dtype == value.dtype and same_shape(x.shape, given[0].shape) for x in given)
        if not is_like or len(set(node.args[0])) < len(given) or not isinstance(value.shape[dim], int):
            return None
        return (dim, len(given)) if 2 <= len(given) <= _MOST_PARTS else None
    if node.target == aten.slice_backward.default and len(node.args) == 6 and node.args[5] == 1:
        part, dim, start = _value(node.args[0]), node.args[2], node.args[3]
        dim = dim - value.dim() if dim >= 0 else dim
        size, whole = part.shape[dim], value.shape[dim]
        if not all(isinstance(n, int) for n in (size, whole, start)) or size == 0 or start < 0:
            return None
        count = whole // size
        return (dim, count) if not whole % size and not start % size and 2 <= count <= _MOST_PARTS else None
    return None


def _parts_of(node, count):
    """Returns the parts of a `cat`; or those of a slice's gradient, which are zero (None) but for one."""
    if node.target == aten.cat.default:
        return list(node.args[0])
    inner, _, dim, start = node.args[:4]
    return [inner if k == start // _value(inner).shape[dim] else None for k in range(count)]


def joins(graph):
    """Moves each `cat` behind the elementwise ops that read it. Returns True if there was one."""
    changed = False
    for node in graph.nodes:
        if (found := _range(node)) is not None:
            # Equal slices have equal arguments then.
            dim, start, end = found
            node.args = (node.args[0], dim + _value(node).dim(), start, end)
    for node in list(graph.nodes):
        # A node that an earlier one took along has no users any more.
        if not node.users or _parts(node) is None:
            continue
        split = _Split(graph, node)
        if split.is_worth():
            split.run()
            changed = True
    return changed


def whole(graph):
    """Takes away slices of everything and parts of a `cat` that are nothing. Sums of slices' gradients become a `cat`.

    Rotary embedding of a part of each head slices, rotates and joins; where it rotates the whole head, a part is empty.
    """
    if _graph.is_functional(graph):
        results = _graph.results(graph)
        for node in list(graph.nodes):
            if node not in results and (source := _same(node)) is not None:
                _swap(graph, node, source)
    for node in reversed(list(graph.nodes)):
        if not node._erased and (parts := _covered(node)) is not None:
            dim = parts[0].args[2]
            with graph.inserting_before(node):
                made = _graph.call(graph, aten.cat.default, [x.args[0] for x in parts], dim)
            _swap(graph, node, made)


def _swap(graph, node, made):
    """Puts a tensor in place of a node, where it is known how both lie in memory."""
    if _graph.lie_alike(made, node):
        node.replace_all_uses_with(made)
    elif all(isinstance(step, int) for x in (made, node) for step in _value(x).stride()):
        with graph.inserting_before(node):
            _graph.replace(graph, node, made)
    unused = [node]
    while unused:
        node = unused.pop()
        if not node.users and not node._erased and node.op == "call_function":
            unused += node.all_input_nodes
            graph.erase_node(node)


def _same(node):
    """Returns the tensor that a node has the elements of, all in their places, or None."""
    value = _value(node)
    if node.target == aten.slice.Tensor and (found := _range(node)) is not None:
        dim, start, end = found
        return node.args[0] if (start, end) == (0, value.shape[dim]) == (0, _size(node.args[0], dim)) else None
    if node.target == aten.slice_backward.default and _value(node.args[0]) is not None:
        return node.args[0] if same_shape(_value(node.args[0]).shape, value.shape) else None
    if node.target == aten.cat.default and not node.kwargs:
        # A `cat` takes an empty tensor of any rank.
        parts = [x for x in node.args[0] if not _is_empty(x)]
        return parts[0] if len(parts) == 1 and _Split._is_alike(parts[0], node) else None
    if node.target == aten.add.Tensor and len(node.args) == 2 and not node.kwargs:
        # The gradient of an empty slice is zero.
        others = [x for x in node.args if not _is_zero(x)]
        return others[0] if len(others) == 1 and _value(others[0]) is not None and _Split._is_alike(others[0], node) else None
    return None


def _is_empty(x):
    return _value(x) is not None and any(isinstance(n, int) and n == 0 for n in _value(x).shape)


def _is_zero(x):
    return isinstance(x, Node) and x.target == aten.slice_backward.default and _is_empty(x.args[0])


def _covered(node):
    """Returns the gradients of slices whose sum a node is, in order, where they cover it and are of different sizes; or None."""
    if node.target != aten.add.Tensor:
        return None
    parts, todo = [], [node]
    while todo:
        x = todo.pop()
        if x is not node and (not isinstance(x, Node) or len(x.users) != 1 or not _Split._is_alike(x, node)):
            return None
        if x.target == aten.add.Tensor and len(x.args) == 2 and not x.kwargs:
            todo += x.args
        elif x.target == aten.slice_backward.default and len(x.args) == 6 and x.args[5] == 1:
            parts.append(x)
        else:
            return None
    dim = parts[0].args[2]
    sizes = {x: _value(x.args[0]).shape[dim] for x in parts}
    known = [_value(node).shape[dim], *sizes.values(), *(x.args[3] for x in parts)]
    if any(x.args[2] != dim for x in parts) or not all(isinstance(n, int) for n in known) or len(set(sizes.values())) == 1:
        return None
    at, parts = 0, sorted(parts, key=lambda x: x.args[3])
    for x in parts:
        if x.args[3] != at:
            return None
        at += sizes[x]
    return parts if at == known[0] else None


def laid(graph):
    """Lets a `cat` that `joins` made lie as the copy that alone reads it does; takes away copies of copies.

    The gradient of rotary embedding is copied into another order of memory before a matrix product reads it. So is that of values.
    An op of one tensor moves behind the views that are copied, as queries that are scaled: one kernel computes and copies.
    """
    for node in list(graph.nodes):
        if node.target == aten.clone.default and node.kwargs.get("memory_format") == torch.contiguous_format:
            _lay(graph, node)
            if not node._erased:
                _sink(graph, node)


_VIEWS = {aten.transpose.int, aten.permute.default, aten.view.default, aten.unsqueeze.default}


def _sink(graph, node):
    """Moves an op that computes what alone is looked at by views, and copied, between them and the copy."""
    views, op = [], node.args[0]
    while op.target in _VIEWS and len(op.users) == 1:
        views.append(op)
        op = op.args[0]
    given = [x for x in op.all_input_nodes if _value(x) is not None and _value(x).dim()]
    if not views or len(op.users) != 1 or len(given) != 1 or op.target == aten.clone.default or not _is_elementwise(op):
        return
    (x,) = given
    source = x
    while source.target in _VIEWS or source.target == aten._unsafe_view.default:
        source = source.args[0]
    # What can be one kernel with the ops before it stays there.
    if _is_elementwise(source) or not same_shape(_value(x).shape, _value(op).shape):
        return
    if not same_shape(_value(x).stride(), _value(op).stride()):
        return
    with graph.inserting_before(node):
        made = x
        for view in reversed(views):
            made = _graph.call(graph, view.target, made, *view.args[1:])
        args, named = map_arg((op.args, op.kwargs), lambda it: made if it is x else it)
        node.args = (_graph.call(graph, op.target, *args, **named),)
    for old in (*views, op):
        graph.erase_node(old)


def _lay(graph, node):
    views, source = [], node.args[0]
    while source.target in (aten.transpose.int, aten.permute.default) and len(source.users) == 1:
        views.append(source)
        source = source.args[0]
    if len(source.users) != 1:
        return
    is_copy = source.target == aten.clone.default and source.kwargs.get("memory_format") == torch.contiguous_format
    if not (is_copy and views) and "pointwise_joins" not in source.meta:
        return
    made = source.args[0] if is_copy else source
    if not is_copy:
        value = node.meta["val"]
        with value.fake_mode:
            value = torch.empty_like(value, memory_format=torch.contiguous_format)
            for view in views:
                value = _back(view, value)
        source.meta["val"] = value
    with graph.inserting_before(node):
        for view in reversed(views):
            made = _graph.call(graph, view.target, made, *view.args[1:])
        if not made.meta["val"].is_contiguous():
            made = _graph.call(graph, aten.clone.default, made, memory_format=torch.contiguous_format)
    node.replace_all_uses_with(made)
    for old in (node, *views, *([source] if is_copy else [])):
        graph.erase_node(old)


def _back(view, value):
    """Returns the tensor of which a transposed or permuted view is `value`."""
    if view.target == aten.transpose.int:
        return value.transpose(*view.args[1:])
    dims = [dim % value.dim() for dim in view.args[1]]
    return value.permute([dims.index(dim) for dim in range(value.dim())])
