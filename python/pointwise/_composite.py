"""Functions of PyTorch that run one of several ops, or prepare what they run. `ops` has the functions of the ops."""

import math

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.overrides import handle_torch_function, has_torch_function

from ._calls import NumpyBool, NumpyNumber, is_number
from ._functions import _functorch_active, increment_version, new_seed

_dynamo = torch.compiler.is_dynamo_compiling
# Bounds of `clamp` that leave a float tensor's type as it is.
_PLAIN = frozenset((float, int, type(None)))


def make(ops, calls, public):
    """The functions, by name."""
    made = {}

    def add(function):
        made[function.__name__] = function
        return function

    rounded = {None: ops["div"], "trunc": ops["div_trunc"], "floor": ops["floor_divide"]}
    rounded_ = {None: ops["div_"], "trunc": ops["div_trunc_"], "floor": ops["floor_divide_"]}

    def by_mode(functions, rounding_mode):
        try:
            return functions[rounding_mode]
        except KeyError:
            raise RuntimeError(
                f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {rounding_mode!r}"
            ) from None

    @add
    def div(input, other, *, rounding_mode=None, out=None):
        return by_mode(rounded, rounding_mode)(input, other, out=out)

    @add
    def div_(input, other, *, rounding_mode=None):
        return by_mode(rounded_, rounding_mode)(input, other)

    gelus = {"none": ops["gelu"], "tanh": ops["gelu_tanh"]}
    gelus_ = {"none": ops["gelu_"], "tanh": ops["gelu_tanh_"]}

    def by_name(functions, approximate):
        try:
            return functions[approximate]
        except KeyError:
            raise RuntimeError("approximate argument must be either none or tanh.") from None

    @add
    def gelu(input, *, approximate="none", out=None):
        return by_name(gelus, approximate)(input, out=out)

    @add
    def gelu_(input, *, approximate="none"):
        return by_name(gelus_, approximate)(input)

    whole, decimal = ops["round"], ops["round_decimals"]
    whole_, decimal_ = ops["round_"], ops["round_decimals_"]

    def whole_number(decimals):
        if not isinstance(decimals, (int, torch.SymInt)):
            raise TypeError(f"round(): argument 'decimals' must be int, not {type(decimals).__name__}")

    @add
    def round(input, *, decimals=0, out=None):
        whole_number(decimals)
        return whole(input, out=out) if decimals == 0 else decimal(input, decimals, out=out)

    @add
    def round_(input, *, decimals=0):
        whole_number(decimals)
        return whole_(input) if decimals == 0 else decimal_(input, decimals)

    clamp_numbers, clamp_tensors = ops["clamp"], ops["clamp_tensor"]
    clamped = calls["clamp"].floats
    clamp_numbers_, clamp_tensors_ = ops["clamp_"], ops["clamp_tensor_"]
    one_sided = {"min": ("maximum", ops["maximum"]), "max": ("minimum", ops["minimum"])}

    def bounds(input, min, max):
        """True if neither bound is a tensor. Refuses calls without a bound, and an input that is no tensor."""
        if min is None and max is None:
            raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
        if not isinstance(input, Tensor):
            raise TypeError(f"clamp(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        return not isinstance(min, Tensor) and not isinstance(max, Tensor)

    @add
    def clamp(input, min=None, max=None, *, out=None):
        if _dynamo():
            return public.clamp(input, min, max, **({} if out is None else {"out": out}))
        if input.__class__ is Tensor and input.dtype in clamped:
            if min.__class__ in _PLAIN and max.__class__ in _PLAIN and (min is not None or max is not None):
                return clamp_numbers(input, min, max) if out is None else clamp_numbers(input, min, max, out=out)
            if min.__class__ is Tensor and max.__class__ is Tensor:
                return clamp_tensors(input, min, max, out=out)
        if has_torch_function((input, min, max)):
            named = {} if out is None else {"out": out}
            return handle_torch_function(clamp, (input, min, max), input, min, max, **named)
        if bounds(input, min, max):
            kinds = [x for x in (min, max) if x is not None]
            if not all(is_number(x) for x in kinds):
                raise TypeError("clamp(): bounds must be Tensors or Numbers")
            for x in kinds:
                input = _raised(input, x)
            return clamp_numbers(input, min, max, out=out)
        if input.is_floating_point():
            low = -math.inf if min is None else min
            return clamp_tensors(input, low, math.inf if max is None else max, out=out)
        if max is None:
            return one_sided["min"][1](input, min, out=out)
        if min is None:
            return one_sided["max"][1](input, max, out=out)
        return clamp_tensors(input, min, max, out=out)

    @add
    def clamp_(input, min=None, max=None):
        if _dynamo():
            return public.clamp_(input, min, max)
        if min.__class__ in _PLAIN and max.__class__ in _PLAIN and input.__class__ is Tensor and input.dtype in clamped:
            if min is not None or max is not None:
                return clamp_numbers_(input, min, max)
        if has_torch_function((input, min, max)):
            return handle_torch_function(clamp_, (input, min, max), input, min, max)
        if bounds(input, min, max):
            return clamp_numbers_(input, min, max)
        low, high = (-math.inf if min is None else min), (math.inf if max is None else max)
        if input.is_floating_point():
            return clamp_tensors_(input, low, high)
        return input.copy_(clamp(input, min, max))

    where, selects = ops["where"], calls["where"]
    select_over = selects.outs[1,]._op
    largest = {dtype: torch.finfo(dtype).max for dtype in selects.floats}

    def is_usual(input, mask, value):
        """True for a float tensor, a mask and a number that the tensor's type holds."""
        return (
            (value.__class__ is float or value.__class__ is int)
            and input.__class__ is Tensor
            and mask.__class__ is Tensor
            and mask.dtype is torch.bool
            and input.dtype in largest
            # The difference of an infinity or a NaN and itself is NaN.
            and (-largest[input.dtype] <= value <= largest[input.dtype] or value - value != 0)
        )

    def fill(input, mask, value):
        for name, x in (("input", input), ("mask", mask)):
            if not isinstance(x, Tensor):
                raise TypeError(f"masked_fill(): argument '{name}' must be Tensor, not {type(x).__name__}")
        if mask.dtype != torch.bool:
            raise RuntimeError(f"masked_fill only supports boolean masks, but got mask with dtype {mask.dtype}")
        if isinstance(value, Tensor):
            if value.dim():
                raise RuntimeError(
                    "masked_fill only supports a 0-dimensional value tensor, "
                    f"but got tensor with {value.dim()} dimension(s)."
                )
            return value.to(device=input.device, dtype=input.dtype)
        if not is_number(value):
            raise TypeError(f"masked_fill(): argument 'value' must be Tensor or Number, not {type(value).__name__}")
        if isinstance(value, (NumpyBool, NumpyNumber)):
            value = value.item()
        if input.dtype == torch.bool:
            return bool(value)
        beyond = RuntimeError(f"value cannot be converted to type {input.dtype} without overflow")
        if input.is_floating_point():
            if math.isfinite(value) and abs(value) > torch.finfo(input.dtype).max:
                raise beyond
            return float(value)
        info = torch.iinfo(input.dtype)
        if not (math.isfinite(value) and (info.min <= value <= info.max or (info.min == 0 and -info.max <= value < 0))):
            raise beyond
        return int(value) % (info.max + 1) if info.min == 0 else int(value)

    @add
    def masked_fill(input, mask, value, *, out=None):
        if _dynamo():
            return public.masked_fill(input, mask, value, **({} if out is None else {"out": out}))
        if is_usual(input, mask, value):
            return where(mask, value, input, out=out)
        if has_torch_function((input, mask, value)):
            more = {} if out is None else {"out": out}
            return handle_torch_function(masked_fill, (input, mask, value), input, mask, value, **more)
        return where(mask, fill(input, mask, value), input, out=out)

    @add
    def masked_fill_(input, mask, value):
        if _dynamo():
            return public.masked_fill_(input, mask, value)
        if (
            is_usual(input, mask, value)
            and mask.shape == input.shape
            and not (input.requires_grad or input.is_inference() or _functorch_active())
            and forward_ad._current_level < 0
        ):
            select_over(mask, value, input, input)
            increment_version((input,))
            return input
        if has_torch_function((input, mask, value)):
            return handle_torch_function(masked_fill_, (input, mask, value), input, mask, value)
        return selects.inplace((mask, fill(input, mask, value), input), (), at=2)

    layer_norm = ops["layer_norm"]

    @add
    def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
        if _dynamo():
            return public.group_norm(input, num_groups, weight, bias, eps)
        if has_torch_function((input, weight, bias)):
            given = (input, num_groups, weight, bias, eps)
            return handle_torch_function(group_norm, (input, weight, bias), *given)
        if input.dim() < 2:
            raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
        samples, channels, *places = input.shape
        if num_groups < 1 or channels % num_groups:
            raise RuntimeError(
                "Expected number of channels in input to be divisible by num_groups, but got input of shape "
                f"{list(input.shape)} and num_groups={num_groups}"
            )
        each, places = channels // num_groups, math.prod(places)

        def spread(x, name, default):
            """An element for each of a row."""
            if x is None:
                return input.new_full((1,), default)
            if x.shape != (channels,):
                raise RuntimeError(
                    f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} "
                    f"of shape {list(x.shape)} and input of shape {list(input.shape)}"
                )
            return x.view(num_groups, each, 1).expand(num_groups, each, places).reshape(num_groups, each * places)

        # A group is a row.
        rows = input.reshape(samples, num_groups, each * places)
        weight, bias = spread(weight, "weight", 1.0), spread(bias, "bias", 0.0)
        return layer_norm(rows, weight, bias, eps=eps).reshape(input.shape)

    drop, drop_ = ops["dropout"], ops["dropout_"]

    def probability(p):
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")

    @add
    def dropout(input, p=0.5, training=True, inplace=False):
        if has_torch_function((input,)):
            return handle_torch_function(dropout, (input,), input, p, training, inplace)
        probability(p)
        if inplace:
            return dropout_(input, p, training)
        if not training:
            return input
        if _dynamo():
            return public.dropout(input, p, training)
        return drop(input, p, new_seed(input))

    @add
    def dropout_(input, p=0.5, training=True):
        if has_torch_function((input,)):
            return handle_torch_function(dropout_, (input,), input, p, training)
        probability(p)
        return drop_(input, p, new_seed(input)) if training else input

    def generator(name, shape, dtype, device, out):
        if out is None:
            out = torch.empty(shape, dtype=dtype or torch.get_default_dtype(), device=device)
        calls[name].outs[()](out)
        return out

    @add
    def alibi(num_heads, seq_len, *, causal=False, dtype=None, device=None, out=None):
        name = "alibi_causal" if causal else "alibi"
        return generator(name, (num_heads, seq_len, seq_len), dtype, device, out)

    @add
    def sinusoidal(seq_len, d_model, *, halves=False, dtype=None, device=None, out=None):
        name = "sinusoidal_halves" if halves else "sinusoidal"
        return generator(name, (seq_len, d_model), dtype, device, out)

    return made


def _raised(input, number):
    """The input in the element type that a bound raises it to."""
    dtype = torch.result_type(input, number)
    return input if dtype == input.dtype else input.to(dtype)
