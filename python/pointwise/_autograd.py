"""Gradients: `autograd.Function`s around the inner ops. The op that their data name as `backward` gives both derivatives.

A Function stands outside of the op, which is the way that costs least. Functions with `setup_context` cost three times
as much; they are used only while torch.func is at work, which needs them. A `_SingleLevelFunction`, which does not look
for torch.func, serves otherwise.
"""

import torch
from torch import Tensor, is_grad_enabled
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import Function, forward_ad
from torch.autograd.function import _SingleLevelFunction as SingleLevelFunction

from . import _fake

functorch_active = torch._C._are_functorch_transforms_active
_tls_excludes = torch._C._dispatch_tls_is_dispatch_key_excluded
_FRONT = torch._C.DispatchKey.FuncTorchDynamicLayerFrontMode
_functorch = torch._C._functorch
# The sources of an operand of a backward op.
GRADIENT, ARGUMENT, RESULT = range(3)
_DIFFERENTIATE = (_functorch.TransformType.Grad, _functorch.TransformType.Jvp)


def is_asked(tensors):
    """Whether a call is to be differentiated.

    Within a level of forward mode, or of torch.func's, every call is: a tensor does not say which levels it has a part in.
    """
    if forward_ad._current_level >= 0:
        return True
    if functorch_active() and any(level.key() in _DIFFERENTIATE for level in _functorch.get_interpreter_stack()):
        return True
    if is_grad_enabled():
        for x in tensors:
            if isinstance(x, Tensor) and x.requires_grad:
                return True
    return False


def has_tangent(x):
    """Whether a tensor has a derivative in forward mode."""
    return isinstance(x, Tensor) and forward_ad.unpack_dual(x).tangent is not None


def choose(plain, functorch):
    """`apply` of a Function in the form that the caller needs; its `plain` is for one that torch.func has no part in."""
    for function in (plain, functorch):
        # What `grad_fn` is called: torch takes it of the class when that is made.
        words = function.__name__.removeprefix("pointwise_").partition(".")[0].split("_")
        node = function._backward_cls
        node.__name__ = node.__qualname__ = f"{''.join(map(str.capitalize, words))}Backward"
    simple = plain.apply

    def apply(*args):
        if not functorch_active():
            return simple(*args)
        if not _tls_excludes(_FRONT):
            return functorch.apply(*args)
        # A transform of torch.func runs the op on its own level already: what is left to do is plain autograd.
        with enable_single_level_autograd_function():
            return simple(*args)

    apply.plain = simple
    return apply


def _add(grad, alpha=1.0):
    return grad, grad if alpha == 1 else grad * alpha


def _sub(grad, alpha=1.0):
    return grad, grad * -alpha


# Gradients that are the result's gradient itself: no kernel.
_PLAIN = {"add": _add, "sub": _sub}


def _sum_to(grad, shape):
    """The gradient of an operand that was broadcast."""
    if grad.shape == shape:
        return grad
    # A sum over rows has no more dimensions than one.
    missing = len(shape) - grad.dim()
    return (grad.reshape((1,) * missing + grad.shape) if missing > 0 else grad).sum_to_size(shape)


def _sum_to_channels(grad, shape):
    """The gradient of what has an element for each entry of dimension 1, or one for all."""
    if shape.numel() == 1:
        return grad.sum().reshape(shape)
    return grad.sum([d for d in range(grad.dim()) if d != 1])


class Gradient:
    """How an op's gradients come of those of its results: what is saved, and the call of its backward op.

    The arguments of the op are its operands, its parameters and, if it is random, its seed.
    """

    def __init__(self, op, backward, call):
        self.op, self.call = op, call
        names = [operand.name for operand in op.operands]
        self.plain = _PLAIN.get(op.name) if op.is_elementwise and not op.random else None
        self.grads = grads = [k for k, result in enumerate(op.results) if result.has_gradient]
        # Where each operand of the backward op comes from: a gradient, an argument, or a result.
        results = [result.name for result in op.results]
        self.sources = []
        for k, operand in enumerate(backward.operands):
            if operand.name in names:
                self.sources.append((ARGUMENT, names.index(operand.name)))
            elif k < len(grads) or operand.name not in results:
                self.sources.append((GRADIENT, grads[k]))
            else:
                self.sources.append((RESULT, results.index(operand.name)))
        if backward.constant:
            self.sources = [(GRADIENT, grads[0])] * len(backward.operands)
        if self.plain:
            self.sources = []
        # The arguments whose gradient each result of the backward op is: several share one.
        self.targets = []
        for k, operand in enumerate(op.operands):
            if operand.shares_gradient:
                self.targets[-1].append(k)
            elif operand.has_gradient:
                self.targets.append([k])
        params = [param.name for param in op.params]
        self.params = [len(names) + params.index(param.name) for param in backward.params]
        self.seed = len(names) + len(params) if op.random else None
        self.saved = sorted({at for kind, at in self.sources if kind == ARGUMENT})
        self.saved_results = sorted({at for kind, at in self.sources if kind == RESULT})
        if op.random:
            self.saved.append(self.seed)

        self.count = len(names) + len(params) + op.random
        self.broadcasts = len(names) > 1
        self.none = (None,) * len(names)
        self.is_several = len(grads) > 1
        # What is saved has its shape.
        self.keeps_shapes = self.broadcasts and any(at not in self.saved for at in range(len(names)))
        # The usual case: one tensor in, one out, and no number.
        self.single = self.sources == [(GRADIENT, 0), (ARGUMENT, 0)] and self.count == len(names) == 1
        # The operands are what is saved, where none is a number.
        self.keeps_operands = self.saved == list(range(len(names))) and not self.saved_results

    def save(self, ctx, args, results):
        """Keeps what the backward op needs."""
        tensors = self._keep(ctx, args, results)
        ctx.save_for_backward(*tensors)
        if self.is_several:
            # torch's own zeros are no DTensors.
            ctx.set_materialize_grads(False)
        if forward_ad._current_level >= 0:
            ctx.save_for_forward(*tensors)
            # A tangent that is not there is no zero: that times an infinite derivative would be NaN.
            ctx.set_materialize_grads(False)

    def _keep(self, ctx, args, results):
        """The tensors to save. Keeps beside them: the places of arguments among them, the other arguments, the shapes."""
        places = [at for at in self.saved if isinstance(args[at], Tensor)]
        rest = [None if isinstance(a, Tensor) else a for a in args]
        shapes = [a.shape if isinstance(a, Tensor) else None for a in args] if self.keeps_shapes else None
        ctx.kept = places, rest, shapes
        tensors = [args[at] for at in places]
        if self.saved_results:
            results = results if isinstance(results, tuple) else (results,)
            tensors += [results[at] for at in self.saved_results]
        return tensors

    def _arguments(self, ctx, tensors):
        """The op's arguments, of tensors those that were kept."""
        kept = getattr(ctx, "kept", None)
        if kept is None:
            return list(tensors)
        places, rest, _ = kept
        args = list(rest)
        for at, tensor in zip(places, tensors):
            args[at] = tensor
        return args

    def _type(self, args, grads):
        """The element type of the call, by an operand or by the gradient of a result that has it."""
        kept = [a for a, o in zip(args, self.op.operands) if isinstance(a, Tensor) and o.dtype is None]
        known = [g for g, r in zip(grads, self.op.results) if g is not None and r.dtype is None]
        return (kept or known or [g for g in grads if g is not None])[0].dtype

    def _shapes(self, ctx, args):
        """The shapes of the arguments, none for a number; no list if there is nothing to broadcast."""
        if not self.broadcasts:
            return None
        kept = getattr(ctx, "kept", None)
        return kept and kept[2] or [a.shape if isinstance(a, Tensor) else None for a in args]

    def _shape_of_call(self, shapes, args):
        """The shape that the operands broadcast to."""
        return _fake.shape_of_call(self.op, shapes if self.broadcasts else [args[0].shape])

    def _whole_rows(self, args, shape):
        """The arguments with one at least that has whole rows, if the backward op is to see their length by it."""
        read = [at for kind, at in self.sources if kind == ARGUMENT]
        is_known = any(kind != ARGUMENT and self.op.results[at].domain != "row" for kind, at in self.sources)
        if is_known or any(args[at].shape[-1:] == shape[-1:] for at in read):
            return args
        args = list(args)
        args[read[0]] = args[read[0]].expand(torch.broadcast_shapes(args[read[0]].shape, shape[-1:]))
        return args

    def _results(self, ctx, args, grads):
        """The results of the backward op."""
        if self.plain:
            return self.plain(grads[0], *(args[at] for at in self.params))
        if self.saved_results:
            kept = [forward_ad.unpack_dual(t).primal for t in ctx.saved_tensors[-len(self.saved_results) :]]
            of = {GRADIENT: grads, ARGUMENT: args, RESULT: dict(zip(self.saved_results, kept))}
            call = [of[kind][at] for kind, at in self.sources]
        else:
            call = [grads[at] if kind == GRADIENT else args[at] for kind, at in self.sources]
        call += [args[at] for at in self.params]
        if self.seed is not None:
            call.append(args[self.seed])
        results = self.call(*call)
        return results if isinstance(results, tuple) else (results,)

    def backward(self, ctx, grads):
        """The gradients of the arguments, of those of the results."""
        some = next((g for g in grads if g is not None), None)
        if some is None:
            return (None,) * self.count
        if self.single:
            return self.call(some, ctx.saved_tensors[0])
        args = self._arguments(ctx, ctx.saved_tensors)
        shapes = self._shapes(ctx, args)
        shape = self._shape_of_call(shapes, args) if self.op.rows else some.shape
        grads = list(grads)
        for k in self.grads:
            if grads[k] is None:
                result = self.op.results[k]
                sizes = _fake.shape_once(self.op, shape) if result.domain == "row" else shape
                grads[k] = some.new_zeros(sizes, dtype=_fake.fixed_type(result) or self._type(args, grads))
        if self.op.rows:
            args = self._whole_rows(args, shape)
        out = [None] * len(args)
        for targets, grad in zip(self.targets, self._results(ctx, args, grads)):
            for at in targets:
                if not ctx.needs_input_grad[at]:
                    continue
                if shapes is None:
                    out[at] = grad
                elif self.op.operands[at].domain == "channel":
                    out[at] = _sum_to_channels(grad, shapes[at])
                else:
                    out[at] = _sum_to(grad, shapes[at])
        return tuple(out)

    def forward(self, ctx, tangents):
        """The tangents of the results, of those of the operands.

        An element of a result depends on those of the operands in its place alone. So its derivative by one of them, times
        a tangent, is the gradient of that operand, the result's being the tangent.
        """
        # What is kept has tangents of this level, too, which would be for second derivatives.
        args = self._arguments(ctx, [forward_ad.unpack_dual(t).primal for t in ctx.saved_tensors])
        shapes = None if self.single else self._shapes(ctx, args)
        sums = [None] * len(self.op.results)
        for place, (at, *_) in enumerate(self.targets):
            if tangents[at] is None:
                continue
            halves = (0, 1) if self.op.operands[at].domain == "halves" else (None,)
            for half in halves:
                tangent = self._spread(shapes, at, tangents[at]) if half is None else tangents[at].chunk(2, -1)[half]
                for k in self.grads:
                    grads = [tangent if k == j else torch.zeros_like(tangent) for j in range(len(sums))]
                    part = self._results(ctx, args, grads)[place]
                    part = part if half is None else part.chunk(2, -1)[half]
                    sums[k] = part if sums[k] is None else sums[k] + part
        return tuple(sums) if len(sums) > 1 else sums[0]

    def _spread(self, shapes, at, tangent):
        """The tangent of an operand in the shape of the results."""
        if shapes is None:
            return tangent
        shape = _fake.shape_of_call(self.op, shapes)
        if self.op.operands[at].domain == "channel":
            size = [1] * len(shape)
            if tangent.numel() > 1:
                size[min(1, len(shape) - 1)] = -1
            tangent = tangent.reshape(size)
        return tangent.expand(shape)


def function(name, kernel, of_tensors, gradient, non_differentiable=()):
    """`apply` of an op: differentiable, in eager mode and with torch.func. `of_tensors` is its kernel of no number."""

    def backward(ctx, *grads):
        return gradient.backward(ctx, grads)

    def jvp(ctx, *tangents):
        if gradient.op.rows:
            raise NotImplementedError(
                f"pointwise.{name} has no derivative in forward mode: use backward(), or torch's op where one is needed"
            )
        return gradient.forward(ctx, tangents)

    def mark(ctx, results):
        if non_differentiable:
            ctx.mark_non_differentiable(*[results[k] for k in non_differentiable])

    save = gradient.save
    # The usual case: operands are tensors, and what is saved.
    is_short = gradient.keeps_operands and not gradient.is_several and not non_differentiable
    count, has_params = len(gradient.none), gradient.count > len(gradient.none)

    class Plain(SingleLevelFunction):
        @staticmethod
        def forward(ctx, *args):
            if is_short and forward_ad._current_level < 0:
                operands = args[:count]
                for a in operands:
                    if not isinstance(a, Tensor):
                        break
                else:
                    if has_params:
                        ctx.kept = gradient.saved, (*gradient.none, *args[count:]), None
                    ctx.save_for_backward(*operands)
                    return of_tensors(*args)
            results = kernel(*args)
            save(ctx, args, results)
            if non_differentiable:
                mark(ctx, results)
            return results

    class Functorch(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*args):
            return kernel(*args)

        @staticmethod
        def setup_context(ctx, inputs, output):
            save(ctx, inputs, output)
            mark(ctx, output)

    Plain.backward = Functorch.backward = staticmethod(backward)
    Plain.jvp = Functorch.jvp = staticmethod(jvp)
    Plain.__name__ = Functorch.__name__ = Plain.__qualname__ = Functorch.__qualname__ = f"pointwise_{name}"
    return choose(Plain, Functorch)


def function_once(name, is_gradient, kernel):
    """`apply` of an op that has no gradient: a gradient itself. Asking for one is an error that says so."""

    def refuse(*_):
        why = "pointwise has no second derivatives. " if is_gradient else ""
        raise RuntimeError(f"pointwise.{name} has no gradient: {why}Use torch's op where one is needed.")

    class Plain(SingleLevelFunction):
        @staticmethod
        def forward(ctx, *args):
            return kernel(*args)

    class Functorch(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*args):
            return kernel(*args)

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    Plain.backward = Functorch.backward = staticmethod(refuse)
    Plain.jvp = Functorch.jvp = staticmethod(refuse)
    Plain.__name__ = Functorch.__name__ = f"pointwise_{name}"
    return choose(Plain, Functorch)
