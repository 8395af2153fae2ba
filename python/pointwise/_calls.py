"""An op as torch calls it: its kernels by the operands that are numbers, and all cases but the usual one.

The usual case, tensors of one element type that the op takes, is in the functions themselves (`_functions`).
"""

import functools
import numbers
from typing import NamedTuple

import torch
from torch import Tensor, is_grad_enabled
from torch.overrides import handle_torch_function, has_torch_function

from . import _autograd, _fake, _functions, _signatures

try:
    # No `numbers.Real`, and taken by torch.
    from numpy import bool_ as NumpyBool
    from numpy import number as NumpyNumber
except ImportError:
    NumpyBool = NumpyNumber = ()

# float64 runs on the CPU, through the formulas that check the kernels.
DOUBLE = torch.float64

# They take two thirds of the time of `Tensor.to`.
_CONVERT = {
    torch.float64: Tensor.double,
    torch.float32: Tensor.float,
    torch.float16: Tensor.half,
    torch.bfloat16: Tensor.bfloat16,
    torch.int64: Tensor.long,
    torch.int32: Tensor.int,
}

_default_dtype = torch.get_default_dtype
_increment_version = torch._C._increment_version
_functorch_active = _autograd.functorch_active


def _overload(inner, kernel):
    name, _, overload = kernel.name.partition(".")
    return getattr(getattr(inner, name), overload or "default")


def is_number(value):
    """True if it is a number as torch takes them, symbolic ones too."""
    return isinstance(value, (numbers.Real, torch.SymInt, torch.SymFloat, torch.SymBool, NumpyBool))


def _fits(number):
    """True if a kernel can take it as a number: f64 holds it. A symbolic one would be fixed."""
    if number.__class__ is float:
        return True
    return not isinstance(number, (torch.SymInt, torch.SymFloat, torch.SymBool)) and float(number) == number


def result_type(values):
    """`torch.result_type` of any number of tensors and numbers."""
    if len(values) == 1:
        return values[0].dtype if isinstance(values[0], Tensor) else torch.result_type(torch.empty(0), values[0])
    if len(values) == 2:
        return torch.result_type(*values)
    full, single = None, None
    for value in values:
        if isinstance(value, Tensor) and value.dim():
            full = value.dtype if full is None else torch.promote_types(full, value.dtype)
        elif isinstance(value, Tensor):
            single = value.dtype if single is None else torch.promote_types(single, value.dtype)
    found = [torch.empty(shape, dtype=t, device="meta") for t, shape in ((full, 1), (single, ())) if t is not None]
    if len(found) == 2:
        found = [torch.empty(found[0].shape, dtype=torch.result_type(*found), device="meta")]
    # Of numbers the one of the highest category decides.
    types = [torch.result_type(found[0], value) for value in values if not isinstance(value, Tensor)]
    return functools.reduce(torch.promote_types, types, found[0].dtype)


class Plan(NamedTuple):
    """How operands of some kinds are prepared: their element type, which of them are converted, which are numbers."""

    dtype: torch.dtype
    casts: tuple[int, ...]
    numbers: tuple[int, ...]
    has_tensor: bool


class Calls:
    """The calls of an op."""

    def __init__(self, op, inner, family, arguments):
        self.op, self.name = op, op.name
        self.arguments = arguments
        self.dtypes = frozenset(getattr(torch, name) for name in op.dtypes) | ({DOUBLE} if op.double else frozenset())
        self.floats = frozenset(t for t in self.dtypes if t.is_floating_point)
        self.kernels = {k.numbers: _overload(inner, k) for k in op.kernels if not k.out}
        # That of operands that are all tensors; a generator has none.
        self.kernel = self.kernels.get(())
        # The calls themselves, where torch.compile does not look.
        self.direct = {numbers: kernel._op for numbers, kernel in self.kernels.items()}
        self.of_tensors = self.direct.get(())
        self.maybe_numbers = [k for k, operand in enumerate(op.operands) if operand.takes_number]
        self.outs = {k.numbers: _overload(inner, k) for k in op.kernels if k.out}
        self.autocast = _signatures.AUTOCAST.get(op.name) if family else None
        self.values = [k for k, operand in enumerate(op.operands) if operand.dtype is None]
        # The element type of the result, if it is not the call's.
        self.fixed = _fake.fixed_type(op.results[0])
        self.plans = {}
        # Its public ops. `has_inplace`: its function has an argument `inplace`.
        self.packet = self.packet_inplace = None
        self.has_inplace = False
        # Set when all ops are known: what differentiates a call, and which operands its gradient reads.
        self.apply, self.has_gradient, self.saved = None, False, ()

    @functools.cached_property
    def function(self):
        """The function of the op."""
        return _functions.function(self, self.packet, self.function_inplace if self.has_inplace else None)

    @functools.cached_property
    def function_inplace(self):
        """The function of the op over its first operand."""
        return _functions.function_inplace(self, self.packet_inplace)

    @functools.cached_property
    def shown(self):
        """The function of the op, without results that only its gradient reads."""
        op = self.op
        return self.function if op.shown == len(op.results) else _functions.shown(op, self.function)

    def differentiate(self, calls):
        """Makes its gradient of the op that gives it."""
        op = self.op
        backward = calls.get(op.backward)
        if backward is not None:
            gradient = _autograd.Gradient(op, backward.op, backward.call)
            bools = [k for k, result in enumerate(op.results) if not result.has_gradient]
            run = self.run if len(self.kernels) > 1 else self.of_tensors
            self.apply = _autograd.function(op.name, run, self.of_tensors, gradient, bools)
            self.has_gradient, self.saved = True, gradient.saved
        elif self.floats and not all(result.is_bool for result in op.results):
            self.apply = _autograd.function_once(op.name, op.gradient, self.run)

    def _numbers(self, args):
        return tuple(k for k in range(len(self.op.operands)) if not isinstance(args[k], Tensor))

    def run(self, *args):
        """The kernel, without a gradient."""
        for k in self.maybe_numbers:
            if not isinstance(args[k], Tensor):
                return self.direct[self._numbers(args)](*args)
        return self.of_tensors(*args)

    def run_out(self, *args):
        """The kernel that writes to the tensors behind the op's arguments, without a gradient."""
        self.outs[self._numbers(args)](*args)

    def call(self, *args):
        """The op on prepared arguments, with a gradient if one is asked for."""
        if self.apply is not None and _autograd.is_asked(args):
            return self.apply(*args)
        # As `run`, which costs another call.
        for k in self.maybe_numbers:
            if not isinstance(args[k], Tensor):
                return self.direct[self._numbers(args)](*args)
        return self.of_tensors(*args)

    def general(self, operands, params, out=None):
        """The op for any operands: checked, converted to a common type, and with results in `out`."""
        if has_torch_function(operands):
            return self._overridden(self.function, operands, params, out)
        operands, dtype = self.prepare(operands)
        if out is None:
            return self.call(*operands, *params)
        return self.into(out, operands, params, dtype)

    def _overridden(self, function, operands, params, out=None):
        """The call as an operand's `__torch_function__` has it: torch.fx's, for one."""
        given = [(a, value) for a, value in zip(self.arguments, (*operands, *params))]
        named = {a.name: value for a, value in given if a.keyword}
        named |= {} if out is None else {"out": out}
        return handle_torch_function(function, operands, *(value for a, value in given if not a.keyword), **named)

    def prepare(self, operands):
        """Checks operands and converts them to one element type, which it returns, too."""
        operands = list(operands)
        if self.autocast and torch.is_autocast_enabled("cuda"):
            self._cast(operands)
        # Operands of the same kinds are prepared in the same way.
        default = _default_dtype()
        kinds = [default]
        for x in operands:
            if not isinstance(x, Tensor):
                kinds.append(x.__class__)
            elif x.dim() and x.dtype is not DOUBLE and default is not DOUBLE:
                kinds.append(x.dtype)
            else:
                # One without dimensions counts for less, and float64 is there on the CPU alone.
                kinds.append((x.dtype, x.dim() == 0, x.is_cuda))
        kinds = tuple(kinds)
        plan = self.plans.get(kinds)
        if plan is None:
            plan = self.plans[kinds] = self._plan(operands)
        dtype, casts, numbers, has_room = plan
        for k in casts:
            convert = _CONVERT.get(dtype)
            operands[k] = convert(operands[k]) if convert else operands[k].to(dtype)
        # A kernel takes one number at most, beside tensors.
        for k in numbers:
            x = operands[k]
            if has_room and _fits(x):
                operands[k] = float(x)
                has_room = False
            else:
                device = next((o.device for o in operands if isinstance(o, Tensor)), None)
                operands[k] = torch.scalar_tensor(x, dtype=dtype, device=device)
                has_room = True
        return operands, dtype

    def _cast(self, operands):
        """Converts operands as autocast does on a GPU."""
        to = torch.float32 if self.autocast == "float32" else torch.get_autocast_dtype("cuda")
        for k in self.values:
            x = operands[k]
            if isinstance(x, Tensor) and x.is_cuda and x.is_floating_point() and x.dtype != DOUBLE:
                operands[k] = x.to(to)

    def _plan(self, operands):
        """Checks operands. Says how such are prepared."""
        self._check(operands)
        dtype = self._dtype([operands[k] for k in self.values])
        tensors = [k for k in self.values if isinstance(operands[k], Tensor)]
        return Plan(
            dtype,
            tuple(k for k in tensors if operands[k].dtype != dtype),
            tuple(k for k in self.values if k not in tensors),
            bool(tensors),
        )

    def _check(self, operands):
        for k, (x, operand) in enumerate(zip(operands, self.op.operands)):
            name = self.arguments[k].name
            if isinstance(x, Tensor):
                fixed = _fake.fixed_type(operand)
                if fixed and x.dtype != fixed:
                    kind = "a boolean tensor" if operand.is_bool else f"a tensor of {operand.dtype}"
                    raise RuntimeError(f"{self.name} expected {name} to be {kind}, but got {x.dtype}")
                continue
            if not (operand.takes_number and is_number(x)):
                kind = "Tensor or Number" if operand.takes_number else "Tensor"
                raise TypeError(
                    f"{self.name}(): argument '{name}' (position {k + 1}) must be {kind}, not {type(x).__name__}"
                )

    def _dtype(self, values):
        """The element type that operands meet in."""
        op = self.op
        if op.refuses_bool:
            kinds = [x.dtype is torch.bool if isinstance(x, Tensor) else isinstance(x, bool) for x in values]
            if any(kinds):
                raise RuntimeError(f"{self.name} takes no bool: convert it, or use logical_not() or logical_xor()")
        if not values:
            return getattr(torch, op.dtypes[0])
        tensors = [x for x in values if isinstance(x, Tensor)]
        if op.promotes:
            dtype = result_type(values)
        else:
            dtype = tensors[0].dtype
            if other := next((t.dtype for t in tensors if t.dtype != dtype), None):
                raise RuntimeError(f"{self.name}: expected operands of one dtype, but got {dtype} and {other}")
        if op.int_to_float and not dtype.is_floating_point and not dtype.is_complex:
            dtype = torch.get_default_dtype()
        if dtype not in self.dtypes or (dtype == DOUBLE and any(t.device.type == "cuda" for t in tensors)):
            known = ", ".join(sorted(str(t).removeprefix("torch.") for t in self.dtypes - {DOUBLE}))
            device = tensors[0].device.type
            raise NotImplementedError(
                f"\"{self.name}\" is not implemented for '{dtype}' on {device}: "
                f"it takes {known}; torch's op takes the others"
            )
        return dtype

    def into(self, out, operands, params, dtype, resize=True):
        """The op with its result in a given tensor, as torch's `out=`."""
        op = self.op
        if len(op.results) != 1:
            return self._into_several(out, operands, params)
        if not isinstance(out, Tensor):
            raise TypeError(f"{self.name}(): argument 'out' must be Tensor, not {type(out).__name__}")
        if resize and _autograd.is_asked((*operands, out)):
            self._refuse_gradients((*operands, out))
        made = self.fixed or dtype
        if out.dtype is not made and not torch.can_cast(made, out.dtype):
            raise RuntimeError(f"result type {made} can't be cast to the desired output type {out.dtype}")
        shape = self.shape(operands)
        if out.shape != shape:
            if not resize:
                raise RuntimeError(
                    f"output with shape {list(out.shape)} doesn't match the broadcast shape {list(shape)}"
                )
            if any(x.device != out.device for x in operands if isinstance(x, Tensor) and (x.dim() or x.is_cuda)):
                where = f"out of {self.name} is on {out.device}"
                raise RuntimeError(f"Expected all tensors to be on the same device, but {where}")
            out.resize_(shape)
        if out.is_inference() and not torch.is_inference_mode_enabled():
            raise RuntimeError(
                f"{self.name}(): an inference tensor cannot be written to outside InferenceMode: clone() it first"
            )
        # Kernels write the elements of a row one after another.
        is_along = op.rows and op.results[0].domain != "row" and out.dim() and out.size(-1) > 1
        is_dense = not is_along or out.stride(-1) == 1
        if out.dtype is made and is_dense and not _functorch_active():
            self.run_out(*operands, *params, out)
            _increment_version((out,))
            return out
        return out.copy_(self.run(*operands, *params))

    def _refuse_gradients(self, tensors):
        for t in tensors:
            if isinstance(t, Tensor) and (is_grad_enabled() and t.requires_grad or _autograd.has_tangent(t)):
                raise RuntimeError(
                    f"{self.name}(): functions with out=... arguments don't support automatic differentiation, "
                    "but one of the arguments requires grad, or has a tangent."
                )

    def _into_several(self, outs, operands, params):
        names = [f"out_{result.name}" for result in self.op.results]
        if not isinstance(outs, (tuple, list)) or len(outs) != len(names):
            raise TypeError(f"{self.name}(): argument 'out' must be a tuple of {len(names)} Tensors")
        if _autograd.is_asked((*operands, *outs)):
            self._refuse_gradients((*operands, *outs))
        self.run_out(*operands, *params, *outs)
        _increment_version(outs)
        return tuple(outs)

    def shape(self, operands):
        """The shape of the result."""
        if not self.op.is_of_elements:
            return torch.Size(_fake.shapes_of_results(self.op, operands)[1][0])
        both = zip(self.op.operands, operands)
        shapes = [x.shape for o, x in both if isinstance(x, Tensor) and o.domain != "channel"]
        # Broadcasting takes several times as long as all the rest of a call.
        return shapes[0] if shapes.count(shapes[0]) == len(shapes) else torch.broadcast_shapes(*shapes)

    def inplace(self, operands, params, at=0):
        """The op over one of its operands."""
        if has_torch_function(operands):
            return self._overridden(self.function_inplace, operands, params)
        first = operands[at]
        if not isinstance(first, Tensor):
            raise TypeError(f"{self.name}_(): argument 'input' must be Tensor, not {type(first).__name__}")
        prepared, dtype = self.prepare(operands)
        if not _autograd.is_asked(operands):
            return self.into(first, prepared, params, dtype, resize=False)
        made = self.fixed or dtype
        if not torch.can_cast(made, first.dtype):
            raise RuntimeError(f"result type {made} can't be cast to the desired output type {first.dtype}")
        if at in self.saved and prepared[at] is first:
            prepared[at] = first.clone()
        # torch's copy checks that the tensor may be written to, before it does it.
        return first.copy_(self.call(*prepared, *params))
