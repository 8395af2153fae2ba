"""The backend of `torch.compile(model, backend="pointwise")`: regions of elementwise ops and of rows become kernels.

AOTAutograd gives graphs of aten's ops, forward and backward. Ops that a program can hold are merged into regions, along
the data, as long as no path leaves a region and comes back. A region becomes a call of `pointwise::fused`. All else stays
torch's.
"""

import functools
import logging
import operator
from collections import Counter
from dataclasses import dataclass, field

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Graph, GraphModule
from torch.fx.graph import _BoxedCodeGen
from torch.utils._pytree import tree_leaves

from . import _decompositions, _fused, _graphs, _joins, _passes, _trace, _when
from ._fused import NAMES
from ._fused_ops import Program, Refused, Value, constant, own_mask, same, same_shape

aten = torch.ops.aten
log = logging.getLogger("pointwise.compile")

_MOST_OPERANDS, _MOST_RESULTS, _MOST_STEPS = 12, 8, 64
# Views that keep the order of the elements; `expand` repeats them.
_RESHAPES = {
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten.unsqueeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.alias.default,
    aten.detach.default,
}


@dataclass
class Kernel:
    """A fused kernel: its program's number, the ops that it replaces, the tensors that it reads and writes."""

    program: int
    ops: list[str]
    operands: list[str]
    results: list[str]

    def __str__(self):
        ops, operands, results = " ".join(self.ops), ", ".join(self.operands), ", ".join(self.results)
        return f"kernel {self.program}: {ops}\n    ({operands}) -> {results}"


@dataclass
class Report:
    """The outcome for graphs: the fused kernels, and the ops left to torch with the reason and their number."""

    kernels: list[Kernel] = field(default_factory=list)
    left: Counter = field(default_factory=Counter)

    @property
    def programs(self):
        """The numbers of the programs. Equal kernels share one."""
        return sorted({kernel.program for kernel in self.kernels})

    def __str__(self):
        lines = [f"{len(self.kernels)} fused kernels, {len(self.programs)} different"]
        lines += map(str, self.kernels)
        lines += [f"{op}: {count} left to torch: {why}" for (op, why), count in sorted(self.left.items())]
        return "\n".join(lines)


def _join(a, b):
    """Returns the shape that two shapes broadcast to, or None if that is not known for all inputs."""
    a, b = (1,) * (len(b) - len(a)) + tuple(a), (1,) * (len(a) - len(b)) + tuple(b)
    joined = []
    for m, n in zip(a, b):
        if same(m, n) or same(n, 1):
            joined.append(m)
        elif same(m, 1):
            joined.append(n)
        else:
            return None
    return tuple(joined)


def _shape(node):
    return tuple(node.meta["val"].shape)


def _fits(value, order):
    """Returns True if a tensor is dense with its dimensions in an order."""
    step = 1
    for dim in reversed(order):
        if not same(value.shape[dim], 1) and not same(value.stride(dim), step):
            return False
        step = step * value.shape[dim]
    return True


def _order(value):
    """Returns the order in memory of a dense tensor's dimensions, or None."""
    order = list(range(value.dim()))
    if _fits(value, order):
        return order
    steps = [step if isinstance(step, int) else step.node.hint for step in value.stride()]
    if None in steps:
        return None
    one = [dim for dim in order[:-1] if same(value.shape[dim], 1)]
    many = sorted(set(order) - set(one), key=lambda dim: -steps[dim])
    order = one + (many if not same(value.shape[-1], 1) else [dim for dim in many if dim != order[-1]] + order[-1:])
    return order if _fits(value, order) else None


class Region:
    """Nodes that may become one kernel. Sets of nodes are bits of a number, by their places in the graph."""

    def __init__(self, nodes, bits, before, shape):
        # `before`: all that it depends on.
        self.nodes, self.bits, self.before, self.shape = nodes, bits, before, shape


class Partition:
    """The regions of a graph, and the reason for each node that is in none."""

    def __init__(self, graph):
        self.nodes = list(graph.nodes)
        self.place = {node: k for k, node in enumerate(self.nodes)}
        self.why, self.fusible, self.order, self.epoch = {}, set(), {}, []
        # What is part of a `cat` alone, with that: it is written there.
        self.joins = {}
        epoch = 0
        for node in self.nodes:
            # No region spans an op that may write to a tensor.
            is_higher = isinstance(node.target, torch._ops.HigherOrderOperator)
            if is_higher or node.op == "call_function" and node.is_impure():
                epoch += 1
            self.epoch.append(epoch)
            self._classify(node)
        for node in self.nodes:
            self._classify_join(node)
        # The region of each node by its place; nodes that stay torch's are regions of their own.
        self.of = []
        for node in self.nodes:
            self._add(node)
        self._share_operands()
        for whole in dict.fromkeys(self.joins.values()):
            first, *others = whole.args[0]
            for x in others:
                self._merge(self.of[self.place[first]], self.of[self.place[x]])
        self.made = []
        for region in dict.fromkeys(self.of):
            if region.nodes[0] in self.fusible:
                self._build(region.nodes)

    def _classify(self, node):
        value = node.meta.get("val")
        if node.op != "call_function" or not isinstance(value, torch.Tensor) or node.target in _RESHAPES:
            return
        if node.target == aten.expand.default or constant(node) is not None:
            return
        try:
            Program().lower(node)
            if value.device.type not in ("cpu", "cuda") or value.dim() > 8:
                raise Refused(f"it is on {value.device}, of {value.dim()} dimensions")
            self.order[node] = _order(value)
            if self.order[node] is None:
                raise Refused("its result is not dense")
            if node.target == aten.clone.default and self.order[node] == _order(node.args[0].meta["val"]):
                raise Refused("it is a copy")
            self.fusible.add(node)
        except Refused as refused:
            self.why[node] = str(refused)

    def _classify_join(self, node):
        """Notes the parts of a `cat` that a kernel may write where they belong."""
        if node.target != aten.cat.default or node.kwargs:
            return
        parts, order = node.args[0], _order(node.meta["val"])
        is_like = all(x in self.fusible and same_shape(_shape(x), _shape(parts[0])) for x in parts)
        is_like = is_like and all(x.meta["val"].dtype == node.meta["val"].dtype for x in parts)
        if not is_like or order is None or not 2 <= len(set(parts)) == len(parts) <= _MOST_RESULTS:
            return
        if not all(user is node or user in self.fusible for x in parts for user in x.users):
            return
        # The parts of one that `joins` made lie as it does.
        if "pointwise_joins" in node.meta:
            self.order |= dict.fromkeys(parts, order)
        if all(self.order[x] == order for x in parts):
            self.joins |= dict.fromkeys(parts, node)

    def resolve(self, node):
        """Returns the fusible node whose elements a view has, each at the place where it broadcasts to; or the node."""
        at, wanted = node, None
        while True:
            if at.target == aten.expand.default and wanted is None:
                at = at.args[0]
            elif at.target in _RESHAPES:
                shape = wanted or _stripped(_shape(at))
                at = at.args[0]
                wanted = None if same_shape(_stripped(_shape(at)), shape) else shape
            else:
                return node
            if wanted is None and at in self.fusible:
                return at

    def _inputs(self, node):
        return [self.resolve(x) for x in node.all_input_nodes] if node in self.fusible else node.all_input_nodes

    def _add(self, node):
        place, before = self.place[node], 0
        inputs = self._inputs(node)
        for x in inputs:
            region = self.of[self.place[x]]
            before |= region.bits | region.before
        if node not in self.fusible:
            self.of.append(Region([node], 1 << place, before, None))
            return
        self.of.append(Region([node], 1 << place, before, _shape(node)))
        for x in sorted(inputs, key=self.place.get, reverse=True):
            if x in self.fusible:
                self._merge(self.of[self.place[x]], self.of[place])

    def _share_operands(self):
        """Merges regions of one shape that read the same tensor of that shape."""
        reader = {}
        for node in self.nodes:
            for x in node.all_input_nodes if node in self.fusible else ():
                region = self.of[self.place[node]]
                if self.resolve(x) in region.nodes or not isinstance(x.meta.get("val"), torch.Tensor):
                    continue
                if same_shape(_shape(x), region.shape):
                    if x in reader:
                        self._merge(self.of[self.place[reader[x]]], region)
                    reader[x] = node

    def _escapes(self, node, inside):
        """Returns True if something outside reads a node, through a view or not."""

        def read(at):
            for user in at.users:
                if user in inside:
                    continue
                if user.target not in _RESHAPES and user.target != aten.expand.default or read(user):
                    return True
            return False

        return read(node)

    def _merge(self, a, b):
        """Merges two regions where that is right."""
        if a is b or self.epoch[self.place[a.nodes[0]]] != self.epoch[self.place[b.nodes[0]]]:
            return
        shape = _join(a.shape, b.shape)
        if shape is None or a.nodes[0].meta["val"].device != b.nodes[0].meta["val"].device:
            return
        if len(a.nodes) + len(b.nodes) > _MOST_STEPS:
            return
        bits, before = a.bits | b.bits, (a.before | b.before) & ~(a.bits | b.bits)
        nodes = sorted({*a.nodes, *b.nodes}, key=self.place.get)
        first = self.place[nodes[0]]
        # No path may leave the region and come back.
        between = before >> first
        while between:
            low = between & -between
            other = self.of[first + low.bit_length() - 1]
            if other.before & bits:
                return
            between &= ~((other.bits >> first) | low)
        inside = set(nodes)
        escaping = [node for node in nodes if self._escapes(node, inside)]
        outer = {x for node in nodes for x in node.all_input_nodes if self.resolve(x) not in inside}
        if len(escaping) > _MOST_RESULTS or len(outer) > _MOST_OPERANDS:
            return
        row = (*shape[:-1], 1)
        if not all(same_shape(_shape(node), shape) or same_shape(_shape(node), row) for node in escaping):
            return
        full = [node for node in escaping if same_shape(_shape(node), shape)]
        if len(full) < len(escaping) and self._program(nodes) is None:
            return
        if any(self.order[node] != self.order[full[0]] for node in full):
            return
        merged = Region(nodes, bits, before, shape)
        for node in nodes:
            self.of[self.place[node]] = merged
        while first is not None:
            behind = [r for r in dict.fromkeys(self.of[first:]) if r.before & bits and r is not merged]
            for region in behind:
                region.before |= bits | before
            # What depends on a region may lie before this one, behind the region's first node.
            earliest = min((self.place[r.nodes[0]] for r in behind), default=first)
            first = earliest if earliest < first else None

    def _program(self, nodes):
        """Returns program and results of nodes that can become one kernel; else None, and the reason is noted."""
        inside = set(nodes)
        program = Program(lambda x: at if (at := self.resolve(x)) in inside else x)
        try:
            for node in nodes:
                program.lower(node)
            return program, self._check(program, nodes, [node for node in nodes if self._escapes(node, inside)], inside)
        except Refused as refused:
            for node in nodes:
                self.why[node] = str(refused)
            return None

    def _check(self, program, nodes, results, inside):
        """Returns the results and the order of their dimensions in memory; refuses what the program would compute otherwise."""
        shape = ()
        for node in nodes:
            shape = _join(shape, _shape(node))
            if shape is None:
                raise Refused("its shape is not known to be that of the ops around it")
        seen = ()
        for node in program.operands:
            if node.meta["val"].device != nodes[0].meta["val"].device:
                raise Refused("an operand is on another device")
            seen = _join(seen, _shape(node))
            if seen is None:
                raise Refused("its operands' shapes are not known to broadcast")
        if not same_shape(seen, shape):
            raise Refused("its shape is not its operands'")
        if not results:
            raise Refused("nothing reads it")
        leader = next((node for node in results if same_shape(_shape(node), shape)), results[0])
        order = self.order[leader] if len(_shape(leader)) == len(shape) else None
        for node in results:
            wanted = (*shape[:-1], 1) if program.values[node].row else shape
            if program.values[node] in program.operands.values():
                raise Refused("its result is an operand")
            if not same_shape(_shape(node), wanted) or order is None:
                raise Refused("its result has another shape than the ops around it")
            if self.order[node] != order or not self._is_part(node, inside) and not _fits(node.meta["val"], order):
                raise Refused("its result lies in memory otherwise than those around it")
        if not all(same_shape(_shape(x), shape) for x in program.masks):
            raise Refused("it draws for another shape than the ops around it")
        whole = all(same(_shape(x)[-1], shape[-1]) for x in program.reduced)
        if program.reduced and (order[-1] != len(shape) - 1 or not whole):
            raise Refused("it reduces other rows than those around it")
        if len(program.operands) > _MOST_OPERANDS or len(results) > _MOST_RESULTS or len(program.steps) > _MOST_STEPS:
            raise Refused("its region is too large")
        return self._joined(results, inside), order

    def _build(self, nodes):
        """Makes a kernel of nodes, or of parts of them."""
        if len(nodes) < 2:
            self.why.setdefault(nodes[0], "alone, it is as fast")
            return
        if (found := self._program(nodes)) is not None:
            program, (results, order) = found
            order = order if order != sorted(order) else None
            wholes = [node for node in results if node not in program.values]
            values = program.values | {node: ([program.values[x] for x in node.args[0]], _dim(node)) for node in wholes}
            try:
                number = _number(program, [values[node] for node in results], order)
                self.made.append((number, program, sorted([*nodes, *wholes], key=self.place.get), results))
                return
            except ValueError as error:
                self.why |= dict.fromkeys(nodes, str(error))
        # Often the last node alone does not fit.
        is_last = len(nodes) > 2 and self._program(nodes[:-1]) is not None
        cut = len(nodes) - 1 if is_last else len(nodes) // 2
        self._build(nodes[:cut])
        self._build(nodes[cut:])

    def _is_part(self, node, inside):
        """Returns True if nothing but a `cat` reads a node outside."""
        return node in self.joins and [user for user in node.users if user not in inside] == [self.joins[node]]

    def _joined(self, results, inside):
        """Returns the results with each `cat` in place of its parts, where all are there."""
        parts = {node for node in results if self._is_part(node, inside)}
        whole = {x: self.joins[x] for x in parts if parts.issuperset(self.joins[x].args[0])}
        return list(dict.fromkeys(whole.get(node, node) for node in results))


def _dim(node):
    """Returns the dimension of a `cat`, counted from the last (0)."""
    dim, rank = node.args[1] if len(node.args) > 1 else 0, node.meta["val"].dim()
    return (-1 - dim if dim < 0 else rank - 1 - dim)


def _stripped(shape):
    """Returns a shape without the ones that lead it."""
    first = next((k for k, size in enumerate(shape) if not same(size, 1)), len(shape))
    return shape[first:]


def _number(program, results, order):
    """Returns the number of a program. Raises ValueError if it has no kernel."""
    parts = [([result], 0) if isinstance(result, Value) else result for result in results]
    made = [(values[0].dtype, values[0].row, len(values), dim) for values, dim in parts]
    return _fused.number(program.text(results, order), made, order, len(program.seeds))


def _spliced(graph, partition):
    """Returns a graph in which calls of kernels stand for regions."""
    region_of = {node: entry for entry in partition.made for node in entry[2]}

    def needs(node):
        return operands_of(region_of[node][1]) if node in region_of else node.all_input_nodes

    def operands_of(program):
        return [*program.operands, *program.seeds]

    alive, stack = set(), [node for node in graph.nodes if node.op in ("placeholder", "output") or node.is_impure()]
    while stack:
        node = stack.pop()
        if node not in alive:
            alive.add(node)
            stack += needs(node)
    made, copies, done = Graph(), {}, set()

    def call(number, program, nodes, results):
        operands = [copies[x] for x in operands_of(program)]
        fused = made.call_function(torch.ops.pointwise.fused.default, (number, operands))
        fused.meta["val"] = [x.meta["val"] for x in results]
        for k, x in enumerate(results):
            copies[x] = made.call_function(operator.getitem, (fused, k))
            copies[x].meta = dict(x.meta)
        done.update(nodes)

    last = {entry[2][-1] for entry in partition.made}
    for node in graph.nodes:
        # A kernel comes where its last op was, or before the first that reads it, and what it reads before it.
        stack = [node] if node in last or node in alive and node not in region_of else []
        while stack:
            at = stack[-1]
            if missing := [x for x in needs(at) if x not in copies]:
                stack += missing
                continue
            stack.pop()
            if at in region_of and at not in done:
                call(*region_of[at])
            elif at not in region_of and at not in copies:
                copies[at] = made.node_copy(at, copies.__getitem__)
                if "pointwise_joins" in at.meta:
                    copies[at] = _laid(made, copies[at])
    return made


def _laid(graph, node):
    """Returns a `cat` that `joins` made, with its dimensions in memory as it is said to lie."""
    order, value = _order(node.meta["val"]), node.meta["val"]
    at = graph.call_function(aten.permute.default, (node, order))
    at = graph.call_function(aten.contiguous.default, (at,))
    at = graph.call_function(aten.permute.default, (at, [order.index(dim) for dim in range(len(order))]))
    at.meta["val"] = value
    return at


def _listing(partition, graph, report):
    """Adds what became of a graph to a report."""

    def text(node):
        value = node.meta["val"]
        return f"{NAMES[value.dtype]}[{', '.join(map(str, value.shape))}]"

    for number, program, nodes, results in partition.made:
        ops = [str(node.target).removeprefix("aten.").removesuffix(".default") for node in nodes]
        report.kernels.append(Kernel(number, ops, [*map(text, program.operands)], [*map(text, results)]))
    why = {node.name: reason for node, reason in partition.why.items()}
    for node in graph.nodes:
        is_op = node.op == "call_function" and isinstance(node.target, torch._ops.OperatorBase)
        if is_op and node.target.name() != "pointwise::fused" and not _is_view(node):
            report.left[str(node.target), why.get(node.name, "pointwise has no op for it")] += 1


def _is_view(node):
    """Returns True for an op that computes nothing."""
    if node.target in _RESHAPES or constant(node) is not None:
        return True
    return isinstance(node.target, torch._ops.OpOverload) and node.target.is_view


def _compile(gm, inputs, report=None, is_inference=False, is_backward=False, graphs=None):
    """Compiles a graph of aten's ops: regions become kernels, the rest runs as it is. `graphs` records it as a CUDA graph."""
    with unset_fake_temporarily():
        _passes.once(gm.graph)
        _passes.seeds(gm.graph)
        if is_inference:
            _simplify(gm.graph)
            _passes.causal(gm.graph)
            _passes.grouped(gm.graph)
            _passes.shared(gm.graph)
        _joins.slices(gm.graph)
        if _joins.joins(gm.graph):
            _passes.once(gm.graph)
        _joins.laid(gm.graph)
        partition = Partition(gm.graph)
        graph = _spliced(gm.graph, partition)
        if is_inference:
            _passes.in_place(graph)
    report = Report() if report is None else report
    _listing(partition, graph, report)
    log.info("%s", report)
    graph.set_codegen(_BoxedCodeGen())
    made = GraphModule(gm, graph)
    forward = made.forward

    def run(args):
        return forward(args)

    run._boxed_call = True
    return run if graphs is None else graphs.recorded(run, made, is_backward, is_inference)


def _simplify(graph):
    """Takes away copies, slices and sums that change nothing."""
    _passes.uncopied(graph)
    _joins.whole(graph)


def _partitioned(joint, inputs, **options):
    """Cuts a graph into forward and backward."""
    with unset_fake_temporarily():
        _simplify(joint.graph)
        _passes.causal(joint.graph)
        _passes.shared(joint.graph)
    return min_cut_rematerialization_partition(joint, inputs, **options)


@_when.uncollected()
def backend(gm, inputs, *, mode=None, options=None, report=None):
    """Compiles a graph of dynamo's: the backend `pointwise`.

    options: `{"fallback_random": True}` leaves dropout to torch, which draws the numbers that eager draws.
    """
    options = dict(options or {})
    fallback_random = options.pop("fallback_random", False)
    if mode not in (None, "default", "reduce-overhead") or options:
        raise ValueError(
            f"the backend pointwise has the mode 'reduce-overhead' and the option 'fallback_random', but got {options or mode!r}: "
            "leave it out"
        )
    own_mask()
    graphs = _graphs.Graphs() if mode == "reduce-overhead" else None
    compiler = functools.partial(_compile, report=report, graphs=graphs)
    given = [*inputs, *gm.parameters()]
    is_training = torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in given)
    # For CUDA graphs AOTAutograd says which inputs stay where they are.
    if graphs is None and not is_training and (plain := _trace.traced(gm, _table(fallback_random))) is not None:
        run = compiler(plain, inputs, is_inference=True)
        return torch._dynamo.disable(lambda *args: run(list(args)), reason="a compiled graph")
    compile_all = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=functools.partial(compiler, is_backward=True),
        inference_compiler=functools.partial(compiler, is_inference=True),
        decompositions=_table(fallback_random),
        partition_fn=_partitioned,
        # A mutation that is in the graph may happen in place.
        keep_inference_input_mutations=not is_training,
    )
    return compile_all(gm, inputs)


# torch calls it when it forgets what was compiled.
backend.reset = _graphs.reset

_table = functools.cache(_decompositions.table)


def explain(model, inputs):
    """Compiles and runs a model once, its gradients too if it has any. Returns a report: print it.

    `inputs`: a tensor, a tuple of arguments, or a dict of named ones. The report names each fused kernel with its ops,
    operands and results, and each op left to torch with the reason.
    """
    report = Report()
    compiled = torch.compile(model, backend=functools.partial(backend, report=report))
    if isinstance(inputs, dict):
        found = compiled(**inputs)
    else:
        found = compiled(*inputs) if isinstance(inputs, (tuple, list)) else compiled(inputs)
    made = [x for x in tree_leaves(found) if isinstance(x, torch.Tensor) and x.requires_grad]
    given = tree_leaves(inputs) + (list(model.parameters()) if isinstance(model, torch.nn.Module) else [])
    wanted = [x for x in given if isinstance(x, torch.Tensor) and x.requires_grad]
    if made and wanted:
        torch.autograd.grad(made, wanted, [torch.ones_like(x) for x in made], allow_unused=True)
    return report
