"""Changes to a graph of inference: repeated ops run once, masks and repeated heads of keys go, mutations happen in place.

AOTAutograd makes a graph functional. `cache.index_copy_(..)` becomes a copy of the whole cache, and a copy of that into the
cache. Here both go where nothing reads the old values any more.
"""

import operator

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Node
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves

from . import _graph

aten = torch.ops.aten


def _memory(node):
    """Returns the memory of a node's tensors: views of one tensor have the same. None if it is not known."""
    tensors = [x for x in tree_leaves(node.meta.get("val")) if isinstance(x, torch.Tensor)]
    if any(x.layout != torch.strided for x in tensors):
        return None
    return {x.untyped_storage()._cdata for x in tensors}


def once(graph):
    """Lets ops of the same arguments run once. Results of the graph stay apart."""
    results, known = _graph.results(graph), {}
    for node in list(graph.nodes):
        if isinstance(node.target, torch._ops.HigherOrderOperator) or _graph.is_op(node) and node.target._schema.is_mutable:
            # It may write to what others read.
            known.clear()
            continue
        if not _graph.is_op(node) or node.target.namespace not in ("aten", "prims"):
            continue
        is_drawn = torch.Tag.nondeterministic_seeded in node.target.tags or "empty" in node.target._schema.name
        if node in results or is_drawn:
            continue
        try:
            other = known.setdefault((node.target, _graph.key(node.args), _graph.key(node.kwargs)), node)
        except TypeError:
            continue
        if other is not node:
            node.replace_all_uses_with(other)
            graph.erase_node(node)


_DRAWS = (aten.randint.default, aten.randint.low)


def seeds(graph):
    """Lets all masks of dropout take their seeds from one tensor, which is drawn first: a draw between ops ends a region."""
    readers = {}
    for node in graph.nodes:
        if str(node.target) == "pointwise.dropout_mask.default":
            readers.setdefault(node.args[2], []).append(node)
    by_device = {}
    for seed, masks in readers.items():
        if seed.target in _DRAWS and list(seed.users) == masks:
            by_device.setdefault(seed.meta["val"].device, []).append(seed)
    for own in by_device.values():
        target, given, mode = own[0].target, own[0].kwargs, own[0].meta["val"].fake_mode
        args = (*own[0].args[:-1], [len(own), 2])
        with graph.inserting_before(next(node for node in graph.nodes if node.op not in ("placeholder", "get_attr"))):
            drawn = graph.call_function(target, args, given)
            with mode:
                drawn.meta["val"] = target(*args, **given)
            for k, seed in enumerate(own):
                _graph.replace(graph, seed, _graph.call(graph, aten.select.int, drawn, 0, k))
        for seed in own:
            graph.erase_node(seed)


def uncopied(graph):
    """Lets what reads a copy read the tensor itself, where nothing writes to either. Dropout that does nothing is a copy."""
    if not _graph.is_functional(graph):
        return
    results = _graph.results(graph)
    for node in list(graph.nodes):
        if node.target == aten.clone.default and node not in results and _graph.lie_alike(node, node.args[0]):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


# Kinds of attention, and the name of the mask that each takes.
_MASKS = {
    aten._scaled_dot_product_efficient_attention.default: "attn_bias",
    aten._scaled_dot_product_cudnn_attention.default: "attn_bias",
    aten._scaled_dot_product_flash_attention.default: None,
    aten._scaled_dot_product_flash_attention_for_cpu.default: "attn_mask",
}
_EFFICIENT = aten._scaled_dot_product_efficient_attention_backward.default
_BACKWARD = {
    aten._scaled_dot_product_cudnn_attention.default: aten._scaled_dot_product_cudnn_attention_backward.default,
    aten._scaled_dot_product_efficient_attention.default: _EFFICIENT,
    aten._scaled_dot_product_flash_attention.default: aten._scaled_dot_product_flash_attention_backward.default,
    aten._scaled_dot_product_flash_attention_for_cpu.default: aten._scaled_dot_product_flash_attention_for_cpu_backward.default,
}
_CUDNN = aten._scaled_dot_product_cudnn_attention.default
_FLASH = aten._scaled_dot_product_flash_attention.default
_FLASH_BACKWARD = aten._scaled_dot_product_flash_attention_backward.default
_PLAIN = {"dropout_p": 0.0, "is_causal": False, "return_debug_mask": False}


def _named(node):
    """Returns the arguments of an op by name, defaults included."""
    given = {}
    for k, argument in enumerate(node.target._schema.arguments):
        default = argument.default_value if argument.has_default_value() else None
        given[argument.name] = node.args[k] if k < len(node.args) else node.kwargs.get(argument.name, default)
    return given


def _sizes(node, rank):
    """Returns the sizes of a tensor of a rank, or None if they are not known."""
    value = node.meta.get("val") if isinstance(node, Node) else None
    known = isinstance(value, torch.Tensor) and value.dim() == rank and all(isinstance(n, int) for n in value.shape)
    return list(value.shape) if known else None


def _unrepeated(node):
    """Returns the tensor of which `node` has each head several times, one behind the other, or None."""
    sizes = _sizes(node, 4)
    while node.target in (aten._unsafe_view.default, aten.view.default, aten.clone.default):
        node = node.args[0]
    apart = _sizes(node, 5)
    if sizes is None or apart is None or node.target != aten.expand.default:
        return None
    inner = node.args[0]
    if inner.target != aten.unsqueeze.default or inner.args[1] not in (2, -3):
        return None
    heads = inner.args[0]
    few, group = _sizes(heads, 4), apart[2]
    if few is None or apart != [*few[:2], group, *few[2:]] or sizes != [few[0], few[1] * group, *few[2:]]:
        return None
    # The kernels of attention read vectors.
    *steps, last = heads.meta["val"].stride()
    is_aligned = last == 1 and not any(step % 8 for step in (*steps, heads.meta["val"].storage_offset()))
    return heads if is_aligned else None


def grouped(graph):
    """Lets attention of one query read each head of keys once, where heads of queries share them.

    The queries that share a head become queries of one head. Each still sees all keys, and no other query, so the results
    are the same. Without this, the keys are repeated in memory.
    """
    for node in list(graph.nodes):
        if node.target in _MASKS:
            _group(graph, node)


def _group(graph, node):
    given, mask_name = _named(node), _MASKS[node.target]
    key, value = _unrepeated(given["key"]), _unrepeated(given["value"])
    query = _sizes(given["query"], 4)
    if None in (key, value, query) or any(given.get(name, plain) != plain for name, plain in _PLAIN.items()):
        return
    (batch, heads, length, _), (_, count, keys, _) = query, _sizes(key, 4)
    *same, width = _sizes(value, 4)
    if length != 1 or heads % count or same != [batch, count, keys]:
        return
    # The results in the order of memory that their readers expect.
    if not _gives_one(graph, node) or not all(x.meta["val"].transpose(1, 2).is_contiguous() for x in node.users):
        return
    mask = given.get(mask_name)
    while isinstance(mask, Node) and mask.target == aten.expand.default:
        mask = mask.args[0]
    few = _sizes(mask, 4)
    if mask is not None and (few is None or few[1:] != [1, 1, keys] or few[0] not in (1, batch)):
        return
    group = heads // count
    with graph.inserting_before(node):
        try:
            given |= {"query": _graph.call(graph, aten.view.default, given["query"], [batch, count, group, query[3]])}
        except (RuntimeError, ValueError):
            # There is no such view.
            return
        given |= {"key": key, "value": value}
        if mask is not None:
            given[mask_name] = _graph.call(graph, aten.expand.default, mask, [batch, count, group, keys])
        y = _attention(graph, node.target, given)[0]
        if not y.meta["val"].is_contiguous():
            y = _graph.call(graph, aten.clone.default, y, memory_format=torch.contiguous_format)
        y = _graph.call(graph, aten.view.default, y, [batch, heads, 1, width])
    for user in list(node.users):
        user.replace_all_uses_with(y)
    _erase(graph, node)


def _gives_one(graph, node):
    """Returns True if nothing reads another result of a node than the first. Erases what takes others, unread."""
    for user in list(node.users):
        if user.target is operator.getitem and not user.users:
            graph.erase_node(user)
    return all(user.target is operator.getitem and user.args[1] == 0 for user in node.users)


class _Results:
    """The results of a call, each of which is taken where it is asked for first."""

    def __init__(self, graph, node):
        self.graph, self.node, self.taken = graph, node, {}

    def __getitem__(self, k):
        if k not in self.taken:
            self.taken[k] = _graph.call(self.graph, operator.getitem, self.node, k)
        return self.taken[k]


def _attention(graph, op, given):
    """Adds a call of an op of attention, by the names of its arguments. Returns its results."""
    args, named = _arguments(op, given)
    return _Results(graph, _graph.call(graph, op, *args, **named))


def _arguments(op, given):
    """Returns the arguments of an op by their names, in the order of its schema."""
    schema = op._schema.arguments
    args = [given[argument.name] for argument in schema if not argument.kwarg_only]
    return tuple(args), {argument.name: given[argument.name] for argument in schema if argument.kwarg_only}


def _set(node, given):
    """Gives a node other arguments."""
    node.args, node.kwargs = _arguments(node.target, given)


def _put(graph, node, k, y):
    """Puts a tensor in place of result `k` of a node, and in its order of memory."""
    for user in list(node.users):
        if user.args[1] == k:
            _graph.replace(graph, user, y)


def _erase(graph, node):
    """Erases a node whose results nothing reads, and what nothing reads then."""
    unused = [*node.users, node]
    while unused:
        node = unused.pop(0)
        if not node.users and node.op == "call_function" and not node._erased:
            unused += node.all_input_nodes
            graph.erase_node(node)


# The most elements of a tensor that is computed to see if a mask is causal.
_MOST_ELEMENTS = 1 << 26


def causal(graph):
    """Lets attention be causal by itself, where its mask is that, and the same in each call.

    While torch traces a model, transformers computes the mask of a whole sequence, and repeats heads of keys since there is a
    mask. Eager attention has neither, and skips what the mask hides.
    """
    known = {}
    for node in list(graph.nodes):
        if node.target in _MASKS:
            _unmask(graph, node, known)


def _unmask(graph, node, known):
    given, mask_name = _named(node), _MASKS[node.target]
    sizes, mask = _sizes(given["query"], 4), given.get(mask_name)
    if mask is None or sizes is None or any(given.get(name, plain) != plain for name, plain in _PLAIN.items()):
        return
    more = _gradients(graph, node)
    if sizes[2] != given["key"].meta["val"].shape[2] or more is None:
        return
    if mask not in known:
        known[mask] = _is_causal(_evaluated(mask, known))
    if not known[mask]:
        return
    few = _unrepeated(given["key"]), _unrepeated(given["value"])
    own = given["key"], given["value"]
    # cuDNN's takes no mask, too; flash attention takes the place of what is slower.
    op = _FLASH if node.target == aten._scaled_dot_product_efficient_attention.default else node.target
    given |= {mask_name: None, "is_causal": True, "return_debug_mask": False}
    if not more and None not in few and _serves(op, given["query"], *few):
        _attend(graph, node, op, given | dict(zip(("key", "value"), few)))
    elif not more and op != node.target and _serves(op, given["query"], *own):
        _attend(graph, node, op, given)
    elif more and op != node.target and _serves(op, given["query"], *own):
        _train_flash(graph, node, given, few, *more)
    else:
        for at in (node, *more):
            _set(at, _named(at) | {mask_name: None, "is_causal": True})
        _erase(graph, mask)


def _serves(op, *given, mask=None, is_causal=True):
    """Returns True if a kind of attention takes queries, keys and values on a GPU, where heads may share keys."""
    check = {_FLASH: torch.backends.cuda.can_use_flash_attention, _CUDNN: torch.backends.cuda.can_use_cudnn_attention}.get(op)
    query, key, value = (x.meta["val"] for x in given)
    mask = None if mask is None else mask.meta["val"]
    return check is not None and query.is_cuda and check(torch.backends.cuda.SDPAParams(query, key, value, mask, 0.0, is_causal, True))


def _attend(graph, node, op, given):
    """Puts another kind of attention in place of a node."""
    with graph.inserting_before(node):
        _put(graph, node, 0, _attention(graph, op, given)[0])
    _erase(graph, node)


def _gradients(graph, node):
    """Returns who reads another result of attention than the first: nothing, or its gradient, which gives none for the mask.

    None if anything else does.
    """
    if _gives_one(graph, node):
        return ()
    readers = {user for taken in node.users for user in taken.users if taken.args[1:] != (0,)}
    if len(readers) != 1 or (backward := readers.pop()).target != _BACKWARD.get(node.target):
        return None
    taken = {user.args[1] if user.target is operator.getitem else None for user in (*node.users, *backward.users)}
    is_known = None not in taken and (backward.target != _EFFICIENT or not _named(backward)["grad_input_mask"][3])
    return (backward,) if is_known else None


def _train_flash(graph, node, given, few, backward):
    """Puts flash attention in place of a node, and of its gradient."""
    queries = given["query"].meta["val"].shape[2]
    sums = _summed(backward, few)
    with graph.inserting_before(node):
        if sums is not None:
            given |= dict(zip(("key", "value"), few))
        elif None not in few:
            # A gradient lies in memory as the tensor does.
            given |= {name: _repeated(graph, x, given["query"]) for name, x in zip(("key", "value"), few)}
        made = _attention(graph, _FLASH, given)
        _put(graph, node, 0, made[0])
    known = _named(backward) | given | {"cum_seq_q": None, "cum_seq_k": None, "max_q": queries, "max_k": queries}
    known["grad_out"] = known["grad_out_"]
    with graph.inserting_before(backward):
        known |= {"out": made[0], "logsumexp": made[1], "philox_seed": made[6], "philox_offset": made[7]}
        grads = _attention(graph, _FLASH_BACKWARD, known)
        _give(graph, backward, grads, sums)
    _erase(graph, node)


def _give(graph, backward, grads, sums):
    """Puts gradients in place of those of a node: `sums` has what sums them over the queries that share a head, if anything does."""
    for k in range(3):
        for node in (sums or {}).get(k, ()):
            _graph.replace(graph, node, grads[k])
            _erase(graph, node)
        _put(graph, backward, k, grads[k])
    _erase(graph, backward)


def _summed(backward, few):
    """Returns by results of attention's gradient what sums them to that of few heads of keys and values, or None."""
    if None in few:
        return None
    found = {}
    for k, x in zip((1, 2), few):
        batch, count, *rest = x.meta["val"].shape
        found[k] = []
        for node in (user for user in backward.users if user.args[1] == k):
            apart = [batch, count, node.meta["val"].shape[1] // count, *rest]
            for op, args in ((aten.view.default, (apart,)), (aten.sum.dim_IntList, ([2], True)), (aten.squeeze.dim, (2,))):
                readers = list(node.users)
                if len(readers) != 1 or readers[0].target != op or readers[0].args[1:] != args or readers[0].kwargs:
                    return None
                (node,) = readers
            found[k].append(node)
    return found


def shared(graph):
    """Lets attention with a mask or a gradient read each head of keys once, where heads of queries share them.

    Eager attention without a mask does so, too. With one, transformers repeats the heads, and sums their gradients.
    """
    for node in list(graph.nodes):
        if node.target in (_CUDNN, _FLASH):
            _share(graph, node)


def _share(graph, node):
    given = _named(node)
    few = _unrepeated(given["key"]), _unrepeated(given["value"])
    if None in few or given["dropout_p"] or given["return_debug_mask"] or (more := _gradients(graph, node)) is None:
        return
    sums = _summed(*more, few) if more else {}
    if sums is None or not _serves(node.target, given["query"], *few, mask=given.get("attn_bias"), is_causal=given["is_causal"]):
        return
    own, given = (given["key"], given["value"]), given | dict(zip(("key", "value"), few))
    _set(node, given)
    for backward in more:
        known = _named(backward) | {name: given[name] for name in ("key", "value")}
        with graph.inserting_before(backward):
            _give(graph, backward, _attention(graph, backward.target, known), sums)
    for x in own:
        _erase(graph, x)


def _repeated(graph, x, like):
    """Returns heads of keys repeated to the number of heads of queries, in the order of memory of attention's results."""
    (batch, count, keys, width), heads = x.meta["val"].shape, like.meta["val"].shape[1]
    x = _graph.call(graph, aten.unsqueeze.default, _graph.call(graph, aten.transpose.int, x, 1, 2), 3)
    x = _graph.call(graph, aten.expand.default, x, [batch, keys, count, heads // count, width])
    x = _graph.call(graph, aten.clone.default, x, memory_format=torch.contiguous_format)
    return _graph.call(graph, aten.transpose.int, _graph.call(graph, aten.view.default, x, [batch, keys, heads, width]), 1, 2)


# Attention hides a position by minus infinity, or by at most this.
_HIDDEN = -60_000.0


def _is_causal(mask):
    """Returns True for a mask that hides the later positions, and adds nothing to the others."""
    if mask is None or mask.dim() != 4 or any(n != 1 and step for n, step in zip(mask.shape[:2], mask.stride())):
        return False
    one = mask[0, 0]
    later = torch.ones_like(one, dtype=torch.bool).triu(1)
    return one.is_floating_point() and bool(torch.where(later, one <= _HIDDEN, one == 0).all())


def _evaluated(node, known):
    """Returns a tensor that depends on no input of a graph, or None. Keeps what it computes in `known`."""
    values, stack = known.setdefault("values", {}), [node]
    while stack:
        at = stack[-1]
        if at in values:
            stack.pop()
            continue
        if not _is_constant(at):
            return None
        if missing := [x for x in at.all_input_nodes if x not in values]:
            stack += missing
            continue
        stack.pop()
        args, named = map_arg((at.args, at.kwargs), values.__getitem__)
        try:
            values[at] = at.target(*args, **named)
        except RuntimeError:
            # No memory, say, or no such device.
            return None
    return values[node]


def _is_constant(node):
    """Returns True for an op whose result is the same for the same arguments, and not too large to be computed now."""
    value = node.meta.get("val")
    if not _graph.is_op(node) or node.target.namespace not in ("aten", "prims") or not isinstance(value, torch.Tensor):
        return False
    is_drawn = torch.Tag.nondeterministic_seeded in node.target.tags or "empty" in node.target._schema.name
    is_written = any(_graph.is_op(user) and user.target._schema.is_mutable for user in (node, *node.users))
    known = all(isinstance(n, int) for n in value.shape)
    return known and not is_drawn and not is_written and value.numel() <= _MOST_ELEMENTS


def in_place(graph):
    """Lets mutations of inputs happen in place, where nothing reads the old values behind them."""
    ends = [node for node in graph.nodes if node.target == aten.copy_.default and node.args[0].op == "placeholder"]
    if ends:
        _Writes(graph).run(ends)


# Ops that replace a part of a tensor, with the views of that part.
_PARTS = {
    aten.slice_scatter.default: aten.slice.Tensor,
    aten.select_scatter.default: aten.select.int,
    aten.diagonal_scatter.default: aten.diagonal.default,
}


def _writing(node):
    """Returns the op that does in place what a node does, or None."""
    if not _graph.is_op(node) or node.target.namespace != "aten":
        return None
    packet = getattr(aten, node.target._schema.name.removeprefix("aten::") + "_", None)
    op = getattr(packet, node.target._overloadname, None)
    if op is None:
        return None
    ours, theirs = ([(a.name, str(a.type)) for a in it._schema.arguments] for it in (op, node.target))
    writes = [a.alias_info is not None and a.alias_info.is_write for a in op._schema.arguments]
    return op if ours == theirs and writes == [True] + [False] * (len(writes) - 1) else None


class _Writes:
    """The mutations of a graph."""

    def __init__(self, graph):
        self.graph = graph
        self.place = {node: k for k, node in enumerate(graph.nodes)}
        # By a memory, the nodes that read it. Views alone do not read.
        self.readers, self.is_known = {}, True
        for node in graph.nodes:
            is_view = _graph.is_op(node) and (node.target.is_view or node.target == aten._unsafe_view.default)
            for x in () if is_view else node.all_input_nodes:
                memory = _memory(x)
                self.is_known &= memory is not None
                for it in memory or ():
                    self.readers.setdefault(it, []).append(node)

    def run(self, ends):
        if not self.is_known:
            return
        *_, output = self.graph.nodes
        results = set().union(*map(_memory, output.all_input_nodes))
        for end in ends:
            base, value = end.args[:2]
            is_plain = len(end.args) == 2 and not end.kwargs and not end.users and isinstance(value, Node)
            if not is_plain or sum(other.args[0] is base for other in ends) != 1:
                continue
            # A result stays apart from the input that has the same values.
            if (_memory(value) | _memory(base)) & results:
                continue
            steps = self._steps(value, base, end)
            if steps is not None:
                self._apply(steps, end)

    def _is_free(self, node, first, *but):
        """Returns True if `node` may write to `first`, its first argument: it reads it there alone, and nothing reads it later."""
        memory = _memory(first)
        others = [x for x in tree_leaves((node.args[1:], node.kwargs)) if isinstance(x, Node)]
        if len(memory) != 1 or any(_memory(x) & memory for x in others):
            return False
        (memory,) = memory
        later = [x for x in self.readers[memory] if self.place[x] >= self.place[node]]
        return all(x in (node, *but) for x in later)

    def _steps(self, node, base, end):
        """Returns how a value comes to be in the memory of `base`, or None.

        A step is a node, the op that writes in its place, the view of its first argument that this writes to, if any, and the
        tensor that stands for the node then.
        """
        first = node.args[0] if _graph.is_op(node) and node.args else None
        if not isinstance(first, Node) or not _graph.are_alike(node, base):
            return None
        if node.target.is_view:
            # A view is changed and looked at from the other side.
            view = first
            while isinstance(view, Node) and (_writing(view) is not None or view.target in _PARTS):
                view = view.args[0]
            is_back = view is not first and isinstance(view, Node) and _is_back(node, view, base)
            before = self._steps(first, view, end) if is_back else None
            return None if before is None else [*before, (node, None, None, base)]
        before = [] if first is base else self._steps(first, base, end)
        if before is None:
            return None
        view = _PARTS.get(node.target)
        if view is None:
            op = _writing(node)
            return [*before, (node, op, None, base)] if op is not None and self._is_free(node, first, end) else None
        source = node.args[1]
        # A part that is read, changed and put back is changed where it is.
        part = source.args[0] if isinstance(source, Node) and _graph.is_op(source) and source.args else None
        if isinstance(part, Node) and part.target == view and part.args[0] is first and list(source.users) == [node]:
            op, (_, *where), (_, _, *there) = _writing(source), _named(part).values(), _named(node).values()
            if where == there and op is not None and _graph.are_alike(source, part) and self._is_free(source, part, node, end):
                return [*before, (source, op, None, part), (node, None, None, base)]
        if isinstance(source, Node) and self._is_free(node, first, end):
            return [*before, (node, aten.copy_.default, view, base)]
        return None

    def _apply(self, steps, end):
        self.graph.erase_node(end)
        for node, op, view, _ in steps:
            if op is None:
                continue
            with self.graph.inserting_before(node):
                if view is None:
                    self.graph.call_function(op, node.args, node.kwargs)
                else:
                    part = self.graph.call_function(view, (node.args[0], *node.args[2:]), node.kwargs)
                    self.graph.call_function(op, (part, node.args[1]))
        for node, _, _, base in reversed(steps):
            node.replace_all_uses_with(base)
            self.graph.erase_node(node)


def _is_back(node, view, base):
    """Returns True if a view of a view of `base` is `base`."""
    if not _graph.is_op(view) or not view.target.is_view or view.args[0] is not base or not isinstance(view.meta["val"], FakeTensor):
        return False
    sizes = [n for x in (view, base) for n in (*x.meta["val"].shape, *x.meta["val"].stride())]
    if not all(isinstance(n, int) for n in (*sizes, *tree_leaves((node.args[1:], node.kwargs)))):
        return False
    value, whole = view.meta["val"], base.meta["val"]
    try:
        with value.fake_mode:
            back = node.target(value, *node.args[1:], **node.kwargs)
    except RuntimeError:
        return False
    ours, theirs = ((x.shape, x.stride(), x.storage_offset(), x.dtype) for x in (back, whole))
    return ours == theirs and _memory(view) == _memory(base)
