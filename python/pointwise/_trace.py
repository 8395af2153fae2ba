"""Makes a graph of aten's ops of dynamo's graph, where there are no gradients, mutations and unknown sizes.

The layers of a model make the same calls, on tensors of the same types, sizes and strides. Such a call is traced once, and its
ops are copied for the others. AOTAutograd runs each call twice, and takes longer than all that follows.
"""

import logging
import operator

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Graph, GraphModule, Node
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves, tree_map

from . import _graph

log = logging.getLogger("pointwise.compile")

# Calls that do nothing here.
_NOTHING = {"_log_api_usage_once", "_are_functorch_transforms_active"}
# Of Python's operators, those that write.
_WRITING = set("setitem __setitem__ iadd isub imul imatmul itruediv ifloordiv imod ipow iand ior ixor".split())


class _Unknown(Exception):
    """Says why a graph is left to AOTAutograd."""


def traced(gm, decompositions):
    """Returns a module whose graph is of aten's ops, or None."""
    is_plain = not torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    if not is_plain or any(torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda")):
        return None
    try:
        _check(gm.graph)
        graph = _Trace(gm, decompositions).run(gm.graph)
        graph.eliminate_dead_code()
        return GraphModule(gm, graph)
    except Exception as error:
        # Whatever it is, AOTAutograd meets it, too, and says it as torch does.
        log.debug("left to AOTAutograd: %s", error)
        return None


def _check(graph):
    """Refuses graphs by their nodes, before any is traced."""
    for node in graph.nodes:
        name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
        is_operator = node.target is getattr(operator, name, None)
        is_writing = name in _WRITING or name.endswith("_") and not name.endswith("__") and not is_operator
        is_writing |= node.kwargs.get("inplace") is True or "out" in node.kwargs
        if node.op in ("get_attr", "call_module") or is_writing or isinstance(node.target, torch._ops.HigherOrderOperator):
            raise _Unknown(f"{node.op} {node.target}")


def _layout(value):
    """Returns what the ops of a call may depend on."""
    if type(value) is not FakeTensor or value.layout != torch.strided or value.is_conj() or value.is_neg():
        raise _Unknown(f"a tensor of {type(value)}")
    return value.dtype, value.shape, value.stride(), value.storage_offset(), value.device, value.requires_grad


def _does_nothing(node):
    """Returns True for a call without a result that is used, and without an effect where there are no gradients."""
    if node.op != "call_function" or node.users:
        return False
    name = getattr(node.target, "__name__", "")
    return getattr(torch._C, name, None) is node.target and (
        name in _NOTHING or name == "_set_grad_enabled" and node.args == (False,)
    )


class _Trace:
    """A trace of a graph. `root`: the module that constants are kept in."""

    def __init__(self, root, decompositions):
        self.root, self.decompositions, self.graph = root, decompositions, Graph()
        # By call, the graph of its ops.
        self.known = {}

    def run(self, graph):
        # By node of dynamo's, its result with a node of the new graph for each tensor.
        made, mode = {}, None
        for node in graph.nodes:
            if node.op == "placeholder":
                value = node.meta["example_value"]
                if not all(isinstance(n, int) for n in (*_layout(value)[1], *_layout(value)[2])):
                    raise _Unknown("a size that is known at run time only")
                mode = value.fake_mode
                made[node] = self.graph.placeholder(node.target)
                made[node].meta["val"] = value
            elif node.op == "output":
                self.graph.output(map_arg(node.args[0], made.__getitem__))
            elif _does_nothing(node):
                made[node] = None
            else:
                args, named = map_arg((node.args, node.kwargs), made.__getitem__)
                made[node] = self._call(node, args, named, mode)
        return self.graph

    def _call(self, node, args, named, mode):
        if node.target is operator.getitem and isinstance(args[0], (list, tuple)):
            return args[0][args[1]]
        given = list(dict.fromkeys(x for x in tree_leaves((args, named)) if isinstance(x, Node)))
        wanted = node.meta.get("example_value")
        if not given and not isinstance(wanted, torch.Tensor):
            raise _Unknown(f"{node.target} of no tensors")
        number = {x: k for k, x in enumerate(given)}
        layouts = tuple(_layout(x.meta["val"]) for x in given)
        shown = tree_map(lambda x: (Node, number[x]) if isinstance(x, Node) else x, (args, named))
        key = node.target, _graph.key(shown), layouts
        if key not in self.known:
            self.known[key] = self._traced(node, args, named, given, mode)
        template = self.known[key]
        copies = {}
        places = iter(given)
        for x in template.nodes:
            if x.op == "placeholder":
                copies[x] = next(places)
            elif x.op == "output":
                found = map_arg(x.args[0], copies.__getitem__)
            else:
                copies[x] = self.graph.node_copy(x, copies.__getitem__)
        ours = [x.meta["val"] for x in tree_leaves(found) if isinstance(x, Node)]
        theirs = [x for x in tree_leaves(wanted) if isinstance(x, torch.Tensor)]
        if [_layout(x)[:5] for x in ours] != [_layout(x)[:5] for x in theirs]:
            raise _Unknown(f"{node.target} makes other tensors")
        return found

    def _traced(self, node, args, named, given, mode):
        def run(*tensors):
            own = dict(zip(given, tensors))
            a, n = tree_map(lambda x: own[x] if isinstance(x, Node) else x, (args, named))
            return getattr(a[0], node.target)(*a[1:], **n) if node.op == "call_method" else node.target(*a, **n)

        with mode:
            # Results that were copied share a fake; the tracer knows tensors by identity.
            tensors = [x.meta["val"].detach() for x in given]
            module = make_fx(run, decomposition_table=self.decompositions)(*tensors)
        template = module.graph
        for x in template.nodes:
            if x.op == "get_attr" and isinstance(constant := getattr(module, x.target, None), torch.Tensor):
                # A tensor that the call makes of numbers.
                x.target = f"_pointwise_constant{len(self.known)}_{x.target}"
                setattr(self.root, x.target, constant)
                continue
            is_op = x.op == "call_function" and (x.target is operator.getitem or isinstance(x.target, torch._ops.OpOverload))
            if x.op not in ("placeholder", "output") and not is_op:
                raise _Unknown(f"{x.op} {x.target}")
            if is_op and x.target is not operator.getitem:
                # Ops of others may have effects that torch keeps by tokens.
                is_known = x.target.namespace in ("aten", "prims") or x.target.namespace.startswith("pointwise")
                if x.target._schema.is_mutable or not is_known:
                    raise _Unknown(f"{x.target} writes, or is of others")
        return template
