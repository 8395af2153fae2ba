"""Ops of aten as steps of a program: what a fused kernel computes in place of each."""

import json
import math

import torch
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import statically_known_true

from . import _fused
from ._fused import NAMES
from ._torch_ops import CALLS

aten, prims = torch.ops.aten, torch.ops.prims

# Floats that a kernel computes in f32.
_NARROW = tuple(dtype for dtype in NAMES if dtype.is_floating_point and dtype.itemsize < 4)
_FP8 = tuple(dtype for dtype in _NARROW if dtype.itemsize == 1)
# The largest number that rounds to one of float8_e4m3fn. torch makes NaN of larger ones.
_E4M3_TOP = 464.0
_DEFAULT = ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
_TO_FLOAT = ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT


class Refused(Exception):
    """Says why an op is left to torch."""


class Value:
    """A value of a program. `row`: each row has it once. `rounded`: it is as its element type stores it."""

    def __init__(self, dtype, row=False, rounded=True):
        self.dtype, self.row, self.rounded = dtype, row, rounded
        self.stored, self.number = None, None


def same(a, b):
    """Returns True if two sizes are equal for all inputs of the graph."""
    return a == b if isinstance(a, int) and isinstance(b, int) else statically_known_true(a == b)


def same_shape(a, b):
    """Returns True if two shapes are equal for all inputs of the graph."""
    return len(a) == len(b) and all(map(same, a, b))


def constant(node):
    """Returns the number that all elements of a tensor are, or None."""
    at = {aten.full.default: 1, aten.full_like.default: 1, aten.scalar_tensor.default: 0}.get(node.target)
    fixed = {aten.zeros.default: 0, aten.zeros_like.default: 0, aten.ones.default: 1, aten.ones_like.default: 1}
    value = fixed.get(node.target) if at is None else node.args[at]
    if not isinstance(value, (bool, int, float)):
        return None
    try:
        # As the element type stores it.
        return torch.tensor(value, dtype=node.meta["val"].dtype).item()
    except (OverflowError, RuntimeError):
        return None


def _base(node):
    """Returns the tensor that a node is a view of."""
    while isinstance(node.target, torch._ops.OpOverload) and node.target.is_view and node.args:
        node = node.args[0]
    return node


class Program:
    """A program while it is made. `resolve` finds the node that computes what a node is a view of."""

    def __init__(self, resolve=lambda node: node):
        self.resolve = resolve
        self.values, self.operands, self.steps, self.reduced = {}, {}, [], []
        # Masks of dropout, and the seed of each, which comes behind the operands.
        self.masks, self.seeds = [], []

    def lower(self, node):
        """Adds the steps of a node, or raises `Refused`."""
        rule = RULES.get(node.target)
        if rule is None:
            raise Refused("pointwise has no op for it")
        try:
            value = rule(self, *node.args, **node.kwargs)
        except TypeError as error:
            raise Refused(f"its arguments are unknown ({error})") from None
        if not isinstance(value, Value) or value.dtype != node.meta["val"].dtype:
            raise Refused(f"its result is {node.meta['val'].dtype}")
        self.values[node] = value

    def arg(self, x, dtype=None):
        """Returns an argument as a value or a number of an element type."""
        if isinstance(x, Node):
            if not isinstance(x.meta.get("val"), torch.Tensor):
                raise Refused("a number is known at run time only")
            inner = self.resolve(x)
            if inner in self.values:
                x = self.values[inner]
            else:
                number = constant(_base(x))
                x = self._operand(x) if number is None else number
        if isinstance(x, Value):
            return x if dtype is None else self.to(x, dtype)
        return _number(x, dtype)

    def _operand(self, node):
        if node not in self.operands:
            value = node.meta["val"]
            if value.dtype not in NAMES:
                raise Refused(f"an operand is {value.dtype}")
            if value.layout != torch.strided or value.dim() > 8:
                raise Refused("an operand has another layout")
            self.operands[node] = Value(value.dtype)
        return self.operands[node]

    def _step(self, step, args, dtype, row=False, rounded=True):
        if not any(isinstance(a, Value) for a in args):
            raise Refused("all its operands are numbers")
        value = Value(dtype, row, rounded)
        self.steps.append((step, args, value))
        return value

    def to(self, value, dtype):
        """Returns a value in another element type, rounded to its own before, as a tensor of it is."""
        if value.dtype == dtype:
            return value
        if dtype not in NAMES:
            raise Refused(f"it converts {value.dtype} to {dtype}")
        value = self.round(value)
        if dtype == torch.float8_e4m3fn and value.dtype != torch.bool:
            value = self.to(value, torch.float32)
            size = self.op("abs", [value], torch.float32)
            fits = self.op("le", [size, _E4M3_TOP], torch.float32, result=torch.bool)
            value = self.op("where", [fits, value, math.nan], torch.float32)
        return self._step({"to": NAMES[dtype]}, [value], dtype, value.row)

    def round(self, value):
        """Returns a value as its element type stores it."""
        if not isinstance(value, Value) or value.rounded:
            return value
        if value.stored is None:
            wide = self._step({"to": "f32"}, [value], torch.float32, value.row)
            value.stored = self._step({"to": NAMES[value.dtype]}, [wide], value.dtype, value.row)
        return value.stored

    def op(self, name, args, dtype, params=(), result=None):
        """Adds an op of pointwise over arguments that are of one element type."""
        if dtype not in CALLS[name].dtypes or dtype not in NAMES or dtype in _FP8:
            raise Refused(f"pointwise.{name} does not take {dtype}")
        if any(isinstance(p, Node) for p in params):
            raise Refused("a number is known at run time only")
        values = [a for a in args if isinstance(a, Value)]
        typed = [a for a, operand in zip(args, CALLS[name].op.operands) if not operand.is_bool]
        if not any(isinstance(a, Value) for a in typed):
            raise Refused("its operands are numbers")
        result = result or dtype
        step = {"op": name, "params": [_json(p) for p in params]}
        return self._step(step, args, result, all(v.row for v in values), result not in _NARROW)

    def call(self, name, operands, kind=_DEFAULT, params=(), result=None, exact=False):
        """Adds an op of pointwise over operands that meet in one element type. `exact`: they are rounded before."""
        dtype = promoted(operands, kind)
        args = [self.arg(x, dtype) for x in operands]
        return self.op(name, [self.round(a) for a in args] if exact else args, dtype, params, result)

    def reduce(self, kind, x, dtype=None):
        """Adds a reduction over the last dimension."""
        value = self.arg(x)
        if not isinstance(value, Value) or value.row or not value.dtype.is_floating_point:
            raise Refused("it reduces no floats")
        if dtype is not None:
            value = self.to(value, dtype)
        self.reduced += [x, self.resolve(x)]
        return self._step({"reduce": kind}, [value], value.dtype, True, value.dtype not in _NARROW)

    def mask(self, x, p, seed):
        """Adds a mask of dropout of a tensor's shape."""
        value = self.arg(x)
        if not isinstance(value, Value) or value.row:
            raise Refused("it draws a word for each element")
        self.masks.append(x)
        self.seeds.append(seed)
        return self._step({"dropout_mask": p}, [value], torch.bool)

    def text(self, results, order=None):
        """Returns the program as JSON.

        A result is a value, or values side by side and their dimension, counted from the last (0). `order`: the dimensions of
        the results in the order of memory.
        """
        made = [*self.operands.values(), *(value for _, _, value in self.steps)]
        for number, value in enumerate(made):
            value.number = number
        operands = [
            {"dtype": NAMES[value.dtype], "scalar": not node.meta["val"].dim()}
            for node, value in self.operands.items()
        ]
        steps = [{**step, "args": [_arg(a) for a in args]} for step, args, _ in self.steps]

        def result(r):
            return {"v": r.number} if isinstance(r, Value) else {"parts": [v.number for v in r[0]], "dim": r[1]}

        program = {"operands": operands, "steps": steps, "results": [*map(result, results)]}
        return json.dumps(program | ({"order": order} if order else {}))


def _arg(a):
    return {"v": a.number} if isinstance(a, Value) else {"n": _json(a)}


def _json(number):
    """Returns a number as JSON has it: infinities and NaN as text."""
    return str(number) if isinstance(number, float) and not math.isfinite(number) else number


def _number(x, dtype):
    """Returns a number as an op on an element type takes it."""
    if not isinstance(x, (bool, int, float)):
        raise Refused("an operand is no tensor and no number" if x is not None else "an operand is missing")
    if dtype is None or dtype not in NAMES:
        raise Refused("an operand is a number")
    if dtype.is_floating_point:
        return float(x)
    if dtype == torch.bool:
        return bool(x)
    info = torch.iinfo(dtype)
    if not info.min <= x <= info.max or x != int(x):
        raise Refused(f"{x} is no {dtype}")
    return int(x)


def promoted(operands, kind=_DEFAULT):
    """Returns the element type that operands meet in."""
    metas = [x.meta.get("val") if isinstance(x, Node) else x for x in operands]
    if not all(isinstance(x, (torch.Tensor, bool, int, float)) for x in metas):
        raise Refused("a number is known at run time only")
    return elementwise_dtypes(*metas, type_promotion_kind=kind)[1]


RULES = {}
# Of these, ops on rows, and copies.
ROW_OPS = {aten.clone.default}


def rule(*names):
    """Gives overloads of aten's ops a rule: a function that adds the steps of a call to a program."""

    def add(function):
        for name in names:
            packet, _, overload = name.partition(".")
            if (op := getattr(getattr(aten, packet, None), overload or "default", None)) is not None:
                RULES[op] = function
        return function

    return add


def _plain(name, kind=_DEFAULT, result=None, exact=False, floats=False):
    """Gives the overloads of an op the op of the same name."""

    def run(program, *operands):
        if floats and not promoted(operands, kind).is_floating_point:
            raise Refused("torch's result for a zero divisor is another")
        return program.call(name, operands, kind, result=result, exact=exact)

    rule(*(f"{name}.{overload}" for overload in ("default", "Tensor", "Scalar", "Scalar_Tensor")))(run)


for _name in "exp log sqrt rsqrt reciprocal sin cos erf log1p expm1 sigmoid tanh div".split():
    _plain(_name, _TO_FLOAT)
for _name in (
    "abs neg sign floor ceil trunc round relu bitwise_not silu mish hardswish hardsigmoid mul maximum minimum "
    "bitwise_and bitwise_or bitwise_xor"
).split():
    _plain(_name)
RULES[aten.sgn.default] = RULES[aten.sign.default]
for _name in "remainder floor_divide".split():
    _plain(_name, floats=True)
for _name in "logical_not isnan isinf eq ne lt le gt ge logical_and logical_or".split():
    _plain(_name, result=torch.bool, exact=True)


def _scaled(program, name, a, b, alpha):
    dtype = promoted((a, b))
    return program.call(name, (a, b), params=[None if alpha == 1 else _number(alpha, dtype)])


@rule("div.Tensor_mode", "div.Scalar_mode")
def _div_mode(program, a, b, rounding_mode=None):
    kind = _TO_FLOAT if rounding_mode is None else _DEFAULT
    if not promoted((a, b), kind).is_floating_point:
        raise Refused("torch's result for a zero divisor is another")
    return program.call({None: "div", "trunc": "div_trunc", "floor": "floor_divide"}[rounding_mode], (a, b), kind)


@rule("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def _pow(program, a, b):
    dtype = promoted((a, b))
    if not dtype.is_floating_point and not (isinstance(b, int) and b >= 0):
        raise Refused("a negative power of integers")
    if isinstance(b, Node) or isinstance(b, bool):
        return program.call("pow", (a, b))
    x = program.arg(a, dtype)
    if b in (2, 3, -2):
        square = program.op("mul", [x, x], dtype)
        if b == 2:
            return square
        return program.op("mul", [square, x], dtype) if b == 3 else program.op("reciprocal", [square], dtype)
    if dtype.is_floating_point and b in (0.5, -0.5, -1):
        return program.op({0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}[b], [x], dtype)
    return program.op("pow", [x, _number(b, dtype)], dtype)


@rule("logical_xor")
def _logical_xor(program, a, b):
    sides = [program.op("ne", [program.arg(x, torch.bool), False], torch.bool, result=torch.bool) for x in (a, b)]
    return program.op("ne", sides, torch.bool, result=torch.bool)


def _select(program, condition, a, b, dtype):
    condition = program.arg(condition)
    if not isinstance(condition, Value) or condition.dtype != torch.bool:
        raise Refused("its condition is no bool tensor")
    a, b = program.arg(a, dtype), program.arg(b, dtype)
    if not isinstance(a, Value) and not isinstance(b, Value) and dtype != torch.bool:
        # A number has no type of its own: it is added to a zero that has one.
        zero = program.op("mul", [program.to(condition, dtype), _number(0, dtype)], dtype)
        a = program.op("add", [zero, a], dtype, [None])
    return program.op("where", [condition, a, b], dtype)


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def _masked_fill(program, x, mask, value):
    dtype = x.meta["val"].dtype
    if isinstance(value, Node):
        if not torch.can_cast(value.meta["val"].dtype, dtype):
            raise Refused("its value is of another kind")
    elif dtype.is_floating_point and math.isfinite(value):
        value = torch.tensor(value, dtype=dtype).item()
        if not math.isfinite(value):
            raise Refused("its value is beyond the element type")
    return _select(program, mask, value, x, dtype)


@rule("clamp", "clamp.Tensor")
def _clamp(program, x, min=None, max=None):
    given = [bound for bound in (min, max) if bound is not None]
    dtype = promoted((x, *given))
    if not given:
        raise Refused("it has no bound")
    if any(isinstance(bound, Node) for bound in given):
        if len(given) == 2:
            return program.call("clamp_tensor", (x, min, max))
        return program.call("maximum" if max is None else "minimum", (x, *given))
    if any(math.isnan(bound) for bound in given):
        raise Refused("a bound is NaN")
    bounds = [None if bound is None else _number(bound, dtype) for bound in (min, max)]
    return program.op("clamp", [program.arg(x, dtype)], dtype, bounds)


@rule("addcmul")
def _addcmul(program, x, a, b, value=1):
    dtype = promoted((x, a, b))
    value = _number(value, dtype)
    return program.op("add", [program.arg(x, dtype), program.call("mul", (a, b))], dtype, [value])


@rule("addcdiv")
def _addcdiv(program, x, a, b, value=1):
    dtype = promoted((x, a, b), _TO_FLOAT)
    return program.op("add", [program.arg(x, dtype), program.call("div", (a, b), _TO_FLOAT)], dtype, [float(value)])


@rule("leaky_relu_backward")
def _leaky_relu_backward(program, grad, x, slope, is_result):
    if is_result:
        raise Refused("its operand is the result")
    return program.call("leaky_relu_backward", (grad, x), params=[slope])


_SELU = (1.6732632423543772, 1.0507009873554805)


@rule("elu")
def _elu(program, x, alpha=1, scale=1, input_scale=1):
    if input_scale == 1 and math.isclose(alpha, _SELU[0]) and math.isclose(scale, _SELU[1]):
        return program.call("selu", (x,))
    if scale != 1 or input_scale != 1:
        raise Refused("it is scaled")
    return program.call("elu", (x,), params=[alpha])


@rule("elu_backward")
def _elu_backward(program, grad, alpha, scale, input_scale, is_result, x):
    if is_result or input_scale != 1:
        raise Refused("its operand is the result")
    if math.isclose(alpha, _SELU[0]) and math.isclose(scale, _SELU[1]):
        return program.call("selu_backward", (grad, x))
    if scale != 1:
        raise Refused("it is scaled")
    return program.call("elu_backward", (grad, x), params=[alpha])


for _name in "silu_backward mish_backward hardswish_backward hardsigmoid_backward".split():
    _plain(_name)


@rule("threshold_backward")
def _threshold_backward(program, grad, x, threshold):
    below = program.call("le", (x, threshold), result=torch.bool, exact=True)
    dtype = promoted((grad, x))
    return program.op("where", [below, _number(0, dtype), program.arg(grad, dtype)], dtype)


@rule("sigmoid_backward")
def _sigmoid_backward(program, grad, y):
    dtype = promoted((grad, y))
    grad, y = program.arg(grad, dtype), program.arg(y, dtype)
    slope = program.op("mul", [program.op("sub", [1.0, y], dtype, [None]), y], dtype)
    return program.op("mul", [grad, slope], dtype)


@rule("tanh_backward")
def _tanh_backward(program, grad, y):
    dtype = promoted((grad, y))
    grad, y = program.arg(grad, dtype), program.arg(y, dtype)
    slope = program.op("sub", [1.0, program.op("mul", [y, y], dtype)], dtype, [None])
    return program.op("mul", [grad, slope], dtype)


@rule("native_dropout_backward")
def _native_dropout_backward(program, grad, mask, scale):
    dtype = grad.meta["val"].dtype
    kept = program.op("mul", [program.arg(mask, dtype), _number(scale, dtype)], dtype)
    return program.op("mul", [program.arg(grad, dtype), kept], dtype)


@rule("_prelu_kernel")
def _prelu(program, x, weight):
    dtype = promoted((x, weight))
    x, weight = program.arg(x, dtype), program.arg(weight, dtype)
    positive = program.op("gt", [program.round(x), _number(0, dtype)], dtype, result=torch.bool)
    return program.op("where", [positive, x, program.op("mul", [weight, x], dtype)], dtype)


@rule("_to_copy")
def _to_copy(program, x, dtype=None, layout=None, device=None, memory_format=None, **_):
    if dtype is None or device not in (None, x.meta["val"].device) or layout not in (None, torch.strided):
        raise Refused("it copies to another place")
    return _convert(program, x, dtype)


def own_mask():
    """Gives `pointwise::dropout_mask` its rule."""
    _fused.define()
    RULES[torch.ops.pointwise.dropout_mask.default] = lambda program, x, p, seed: program.mask(x, p, seed)


def _convert(program, x, dtype):
    value = program.arg(x)
    if value.dtype == dtype:
        raise Refused("it is a copy")
    return program.to(value, dtype)


RULES[prims.convert_element_type.default] = _convert


# Rules of one line, by names of overloads.
_SHORT = {
    "add.Tensor add.Scalar": lambda p, a, b, alpha=1: _scaled(p, "add", a, b, alpha),
    "sub.Tensor sub.Scalar": lambda p, a, b, alpha=1: _scaled(p, "sub", a, b, alpha),
    "rsub.Tensor rsub.Scalar": lambda p, a, b, alpha=1: _scaled(p, "sub", b, a, alpha),
    "where.self where.ScalarOther where.ScalarSelf": lambda p, c, a, b: _select(p, c, a, b, promoted((a, b))),
    "lerp.Scalar lerp.Tensor": lambda p, a, b, weight: p.call("lerp", (a, b, weight)),
    "hardtanh": lambda p, x, min=-1, max=1: _clamp(p, x, min, max),
    "clamp_min clamp_min.Tensor": lambda p, x, min: _clamp(p, x, min),
    "clamp_max clamp_max.Tensor": lambda p, x, max: _clamp(p, x, None, max),
    "gelu": lambda p, x, approximate="none": p.call(_GELU[approximate], (x,)),
    "gelu_backward": lambda p, g, x, approximate="none": p.call(f"{_GELU[approximate]}_backward", (g, x)),
    "leaky_relu": lambda p, x, slope=0.01: p.call("leaky_relu", (x,), params=[slope]),
    "softplus": lambda p, x, beta=1, threshold=20: p.call("softplus", (x,), params=[beta, threshold]),
    "softplus_backward": lambda p, g, x, beta, top: p.call("softplus_backward", (g, x), params=[beta, top]),
    "hardtanh_backward": lambda p, g, x, min, max: p.call("hardtanh_backward", (g, x), params=[min, max]),
    "nan_to_num": lambda p, x, nan=None, posinf=None, neginf=None: p.call(
        "nan_to_num", (x,), params=[0.0 if nan is None else nan, posinf, neginf]
    ),
    "round.decimals": lambda p, x, decimals=0: p.call("round_decimals", (x,), params=[decimals]),
    # A copy in another layout.
    "clone": lambda p, x, memory_format=None: p.arg(x),
}
_GELU = {"none": "gelu", "tanh": "gelu_tanh"}
for _names, _function in _SHORT.items():
    rule(*_names.split())(_function)


def last(node, dim):
    """Returns True if dimensions are the last one alone."""
    dims = [dim] if isinstance(dim, int) else list(dim or ())
    rank = (node.meta["val"] if isinstance(node, Node) else node).dim()
    return rank > 0 and len(dims) == 1 and dims[0] % rank == rank - 1


def _reduction(name, kind, overload):
    def run(program, x, dim=None, keepdim=False, dtype=None):
        if not keepdim or not last(x, dim):
            raise Refused("it reduces other dimensions than the last")
        return program.reduce(kind, x, dtype)

    rule(f"{name}.{overload}")(run)
    ROW_OPS.add(getattr(getattr(aten, name), overload))


for _name, _overload in (("sum", "dim_IntList"), ("mean", "dim"), ("amax", "default"), ("amin", "default")):
    _reduction(_name, _name, _overload)


def _own(call, kernel):
    """Gives a kernel of pointwise's own op its rule."""
    op = call.op
    count = len(op.operands)

    def run(program, *args):
        operands = args[:count]
        tensors = [x for x, o in zip(operands, op.operands) if isinstance(x, Node) and not o.is_bool]
        dtype = tensors[0].meta["val"].dtype
        given = [program.arg(x, torch.bool if o.is_bool else dtype) for x, o in zip(operands, op.operands)]
        given = [program.round(x) for x in given] if op.results[0].is_bool else given
        return program.op(op.name, given, dtype, args[count:], call.fixed)

    RULES[kernel] = run


for _call in CALLS.values():
    if _call.op.is_elementwise and not _call.op.random and len(_call.op.results) == 1:
        for _kernel in _call.kernels.values():
            _own(_call, _kernel)
