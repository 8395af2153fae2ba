"""Written by tools/stubs_of_functions.py from the ops' data."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from . import arrays as arrays
from ._compile import Report
from ._override import Covered
from ._patch import Patch

Number = int | float | bool

__version__: str

def override(enabled: bool = True, *, ops: Iterable[str] | None = None) -> Covered:
    """Makes torch's own ops run pointwise's kernels, or no more. Returns the names of the ops that are covered."""

def load(path: str, namespace: str) -> SimpleNamespace:
    """Loads a library of a user's own ops. Returns an object with a function of each."""

def patch(model: torch.nn.Module) -> Patch:
    """Replaces rotary embedding, activations and gated MLPs of a Hugging Face model. Returns what undoes it."""

def explain(model: Callable[..., Any], inputs: Any) -> Report:
    """Compiles and runs a model once. Returns a report of its fused kernels and of the ops left to torch: print it."""

def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`e^x`."""

def exp_(input: Tensor) -> Tensor:
    """`exp` over its first operand."""

def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Natural logarithm; `-inf` at 0, NaN below."""

def log_(input: Tensor) -> Tensor:
    """`log` over its first operand."""

def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Square root; -0 stays -0."""

def sqrt_(input: Tensor) -> Tensor:
    """`sqrt` over its first operand."""

def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 / sqrt(x)`; infinite with the sign of x at 0."""

def rsqrt_(input: Tensor) -> Tensor:
    """`rsqrt` over its first operand."""

def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Magnitude; the smallest signed integer wraps to itself."""

def abs_(input: Tensor) -> Tensor:
    """`abs` over its first operand."""

def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`-x`; integers wrap."""

def neg_(input: Tensor) -> Tensor:
    """`neg` over its first operand."""

def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 / x`."""

def reciprocal_(input: Tensor) -> Tensor:
    """`reciprocal` over its first operand."""

def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-1, 0 or 1; 0 for NaN and -0."""

def sign_(input: Tensor) -> Tensor:
    """`sign` over its first operand."""

def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Sine of x radians, the argument reduced exactly whatever its size."""

def sin_(input: Tensor) -> Tensor:
    """`sin` over its first operand."""

def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Cosine of x radians, the argument reduced exactly whatever its size."""

def cos_(input: Tensor) -> Tensor:
    """`cos` over its first operand."""

def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Towards minus infinity; integers unchanged."""

def floor_(input: Tensor) -> Tensor:
    """`floor` over its first operand."""

def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Towards plus infinity; integers unchanged."""

def ceil_(input: Tensor) -> Tensor:
    """`ceil` over its first operand."""

def round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Tensor:
    """To nearest, ties to even; integers unchanged."""

def round_(input: Tensor, *, decimals: int = 0) -> Tensor:
    """`round` over its first operand."""

def round_decimals(input: Tensor, decimals: Number = 0, *, out: Tensor | None = None) -> Tensor:
    """`torch.round(x, decimals=d)`: at `decimals` digits behind the point (before it where negative), as
`rint(x 10^decimals) / 10^decimals` in f32; integers unchanged."""

def round_decimals_(input: Tensor, decimals: Number = 0) -> Tensor:
    """`round_decimals` over its first operand."""

def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Towards zero; integers unchanged."""

def trunc_(input: Tensor) -> Tensor:
    """`trunc` over its first operand."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Error function."""

def erf_(input: Tensor) -> Tensor:
    """`erf` over its first operand."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`ln(1 + x)`, accurate near 0."""

def log1p_(input: Tensor) -> Tensor:
    """`log1p` over its first operand."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`e^x - 1`, accurate near 0."""

def expm1_(input: Tensor) -> Tensor:
    """`expm1` over its first operand."""

def relu(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """`max(x, 0)`; NaN stays NaN."""

def relu_(input: Tensor) -> Tensor:
    """`relu` over its first operand."""

def gelu(input: Tensor, *, approximate: str = 'none', out: Tensor | None = None) -> Tensor:
    """`x (1 + erf(x / sqrt 2)) / 2` (Hendrycks and Gimpel 2016), accurate in the negative tail."""

def gelu_(input: Tensor, *, approximate: str = 'none') -> Tensor:
    """`gelu` over its first operand."""

def gelu_tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2`: `gelu(approximate='tanh')`."""

def gelu_tanh_(input: Tensor) -> Tensor:
    """`gelu_tanh` over its first operand."""

def silu(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """`x / (1 + e^-x)`."""

def silu_(input: Tensor) -> Tensor:
    """`silu` over its first operand."""

def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 / (1 + e^-x)`."""

def sigmoid_(input: Tensor) -> Tensor:
    """`sigmoid` over its first operand."""

def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Hyperbolic tangent."""

def tanh_(input: Tensor) -> Tensor:
    """`tanh` over its first operand."""

def leaky_relu(input: Tensor, negative_slope: Number = 0.01, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """`x > 0 ? x : x * negative_slope`."""

def leaky_relu_(input: Tensor, negative_slope: Number = 0.01) -> Tensor:
    """`leaky_relu` over its first operand."""

def elu(input: Tensor, alpha: Number = 1, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """`x > 0 ? x : alpha (e^x - 1)`."""

def elu_(input: Tensor, alpha: Number = 1) -> Tensor:
    """`elu` over its first operand."""

def selu(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """`s (x > 0 ? x : a (e^x - 1))` with the constants of Klambauer et al. 2017."""

def selu_(input: Tensor) -> Tensor:
    """`selu` over its first operand."""

def hardswish(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """`x min(max(x + 3, 0), 6) / 6`, multiplied in PyTorch's order: infinite above 5.7e37 in f32."""

def hardswish_(input: Tensor) -> Tensor:
    """`hardswish` over its first operand."""

def hardsigmoid(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """`min(max(x + 3, 0), 6) / 6`."""

def hardsigmoid_(input: Tensor) -> Tensor:
    """`hardsigmoid` over its first operand."""

def hardtanh(input: Tensor, min_val: Number = -1, max_val: Number = 1, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """`min(max(x, min_val), max_val)`; NaN stays NaN."""

def hardtanh_(input: Tensor, min_val: Number = -1, max_val: Number = 1) -> Tensor:
    """`hardtanh` over its first operand."""

def softplus(input: Tensor, beta: Number = 1, threshold: Number = 20, *, out: Tensor | None = None) -> Tensor:
    """`beta x > threshold ? x : ln(1 + e^(beta x)) / beta`. The bound is for a `beta` that is a power of two: with
another the rounding of `beta x` is added, as in PyTorch."""

def softplus_(input: Tensor, beta: Number = 1, threshold: Number = 20) -> Tensor:
    """`softplus` over its first operand."""

def mish(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """`x tanh(ln(1 + e^x))` (Misra 2019)."""

def mish_(input: Tensor) -> Tensor:
    """`mish` over its first operand."""

def logical_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`x == 0`; false for NaN."""

def bitwise_not(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Every bit flipped; bool: not."""

def bitwise_not_(input: Tensor) -> Tensor:
    """`bitwise_not` over its first operand."""

def isnan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True if x is NaN; false for integers and bool."""

def isinf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """True if x is infinite; false for integers, bool and f8e4m3."""

def isfinite(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Neither NaN nor infinite."""

def nan_to_num(input: Tensor, nan: Number = 0, posinf: Number | None = None, neginf: Number | None = None, *, out: Tensor | None = None) -> Tensor:
    """NaN and the infinities replaced; by default with 0 and the largest and lowest finite value of the element type."""

def nan_to_num_(input: Tensor, nan: Number = 0, posinf: Number | None = None, neginf: Number | None = None) -> Tensor:
    """`nan_to_num` over its first operand."""

def clamp(input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None, *, out: Tensor | None = None) -> Tensor:
    """`min(max(x, min), max)`: `max` where `min > max`; NaN in x or in a bound gives NaN, in a bound given alone, too, where PyTorch's CPU returns x. A side left out is open."""

def clamp_(input: Tensor, min: Tensor | Number | None = None, max: Tensor | Number | None = None) -> Tensor:
    """`clamp` over its first operand."""

def add(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """`a + alpha b`, with one rounding to f32; bool: or."""

def add_(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """`add` over its first operand."""

def sub(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1, out: Tensor | None = None) -> Tensor:
    """`a - alpha b`, with one rounding to f32."""

def sub_(input: Tensor | Number, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """`sub` over its first operand."""

def mul(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`a b`; bool: and."""

def mul_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """`mul` over its first operand."""

def div(input: Tensor | Number, other: Tensor | Number, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
    """`a / b`; infinite or NaN for a zero divisor, as in IEEE 754."""

def div_(input: Tensor | Number, other: Tensor | Number, *, rounding_mode: str | None = None) -> Tensor:
    """`div` over its first operand."""

def div_trunc(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The quotient, rounded to f32, cut towards zero; integers: that of C, 0 for a zero divisor."""

def div_trunc_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """`div_trunc` over its first operand."""

def floor_divide(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The quotient rounded down, through the exact remainder; integers: 0 for a zero divisor."""

def floor_divide_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """`floor_divide` over its first operand."""

def remainder(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The remainder of the quotient rounded down, exact but for one rounding; the sign of b. Integers: 0 for a zero
divisor."""

def remainder_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """`remainder` over its first operand."""

def pow(input: Tensor | Number, exponent: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`a` to the power `b`, with the special cases of C99; integers wrap, and a negative exponent leaves 1, -1 or 0."""

def pow_(input: Tensor | Number, exponent: Tensor | Number) -> Tensor:
    """`pow` over its first operand."""

def maximum(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The larger; NaN if either is NaN; +0 above -0; bool: or."""

def maximum_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """`maximum` over its first operand."""

def minimum(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """The smaller; NaN if either is NaN; -0 below +0; bool: and."""

def minimum_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """`minimum` over its first operand."""

def bitwise_and(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Each bit and; bool: and."""

def bitwise_and_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """`bitwise_and` over its first operand."""

def bitwise_or(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Each bit or; bool: or."""

def bitwise_or_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """`bitwise_or` over its first operand."""

def bitwise_xor(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Each bit exclusive or; bool: not equal."""

def bitwise_xor_(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """`bitwise_xor` over its first operand."""

def prelu(input: Tensor, weight: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`x > 0 ? x : weight x` (He et al. 2015); one weight for all, or one for each of dimension 1 of x."""

def prelu_(input: Tensor, weight: Tensor) -> Tensor:
    """`prelu` over its first operand."""

def eq(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`a == b`; false with NaN, and +0 equals -0."""

def ne(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`a != b`; true with NaN."""

def gt(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`a > b`; false with NaN."""

def lt(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`a < b`; false with NaN."""

def ge(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`a >= b`; false with NaN."""

def le(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`a <= b`; false with NaN."""

def logical_and(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Neither is zero; NaN counts as true."""

def logical_or(input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """Not both are zero; NaN counts as true."""

def silu_and_mul(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`silu(gate) * value`: SwiGLU (Shazeer 2020)."""

def gelu_and_mul(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`gelu(gate) * value`, by the error function: GEGLU (Shazeer 2020)."""

def gelu_tanh_and_mul(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`gelu(gate, approximate='tanh') * value`."""

def where(condition: Tensor, input: Tensor | Number, other: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`condition ? a : b`."""

def lerp(input: Tensor, end: Tensor, weight: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """From a to b: `weight < 1/2 ? a + weight (b - a) : b - (b - a) (1 - weight)` by magnitude of the weight, with
fused multiply-adds in f32."""

def lerp_(input: Tensor, end: Tensor, weight: Tensor | Number) -> Tensor:
    """`lerp` over its first operand."""

def clamp_tensor(x: Tensor, min: Tensor | Number, max: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`clamp` with a bound for each element: `min(max(x, min), max)`, so `max` where `min > max`; NaN in any gives
NaN."""

def clamp_tensor_(x: Tensor, min: Tensor | Number, max: Tensor | Number) -> Tensor:
    """`clamp_tensor` over its first operand."""

def exp_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad e^x`."""

def log_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad / x`."""

def sqrt_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad / (2 sqrt(x))`."""

def rsqrt_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`-grad / (2 x sqrt(x))`."""

def abs_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad sign(x)`: 0 at 0."""

def neg_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`-grad`."""

def reciprocal_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`-grad / x^2`."""

def sign_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0."""

def sin_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad cos(x)`."""

def cos_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`-grad sin(x)`."""

def floor_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0."""

def ceil_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0."""

def round_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0."""

def round_decimals_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0, whatever the decimals."""

def trunc_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """0."""

def erf_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad 2 / sqrt(pi) e^(-x^2)`."""

def log1p_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad / (1 + x)`."""

def expm1_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad e^x`."""

def relu_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`x <= 0 ? 0 : grad`: 0 at 0, grad for NaN."""

def gelu_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad (cdf(x) + x pdf(x))` of the normal distribution."""

def gelu_tanh_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The gradient of `gelu(approximate='tanh')`; as in PyTorch NaN where `x^2` overflows."""

def silu_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad s (1 + x (1 - s))` with `s = sigmoid(x)`."""

def sigmoid_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad s (1 - s)` with `s = sigmoid(x)`."""

def tanh_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad (1 - tanh(x)^2)`, as `grad 4 s (1 - s)` with `s = sigmoid(-2 |x|)`, which does not cancel."""

def leaky_relu_backward(grad: Tensor, x: Tensor, negative_slope: Number = 0.01, *, out: Tensor | None = None) -> Tensor:
    """`x > 0 ? grad : grad * negative_slope`: the slope at 0 and for NaN."""

def elu_backward(grad: Tensor, x: Tensor, alpha: Number = 1, *, out: Tensor | None = None) -> Tensor:
    """`x <= 0 ? grad alpha e^x : grad`; grad for NaN. `alpha` may be negative."""

def selu_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`x <= 0 ? grad s a e^x : grad s`, the constants those of `selu`."""

def hardswish_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`x <= -3 ? 0 : x < 3 ? grad (x / 3 + 1/2) : grad`."""

def hardsigmoid_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`-3 < x < 3 ? grad / 6 : 0`."""

def hardtanh_backward(grad: Tensor, x: Tensor, min_val: Number = -1, max_val: Number = 1, *, out: Tensor | None = None) -> Tensor:
    """`x <= min_val or x >= max_val ? 0 : grad`; grad for NaN."""

def softplus_backward(grad: Tensor, x: Tensor, beta: Number = 1, threshold: Number = 20, *, out: Tensor | None = None) -> Tensor:
    """`beta x > threshold ? grad : grad sigmoid(beta x)`."""

def mish_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad (t + x s (1 - t^2))` with `t = tanh(ln(1 + e^x))` and `s = sigmoid(x)`."""

def nan_to_num_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad` where x is finite, else `grad * 0`."""

def clamp_backward(grad: Tensor, x: Tensor, min: Number | None = None, max: Number | None = None, *, out: Tensor | None = None) -> Tensor:
    """`min <= x <= max ? grad : 0`: grad at the bounds, 0 for NaN."""

def add_backward(grad: Tensor, alpha: Number = 1, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """`grad` and `alpha grad`."""

def sub_backward(grad: Tensor, alpha: Number = 1, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """`grad` and `-alpha grad`."""

def mul_backward(grad: Tensor, a: Tensor | Number, b: Tensor | Number, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """`grad b` and `grad a`."""

def div_backward(grad: Tensor, a: Tensor | Number, b: Tensor | Number, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """`grad / b` and `-grad a / b / b`."""

def div_trunc_backward(grad: Tensor, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """0 and 0."""

def floor_divide_backward(grad: Tensor, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """0 and 0."""

def remainder_backward(grad: Tensor, a: Tensor | Number, b: Tensor | Number, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """`grad` and `-grad floor(a / b)`."""

def pow_backward(grad: Tensor, a: Tensor | Number, b: Tensor | Number, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """`grad b a^(b - 1)`, 0 for `b = 0`; and `grad a^b ln(a)`, `grad * 0` for `a = 0` and `b >= 0`. In 16 bits exponents of magnitude 2^16 and more count as even."""

def maximum_backward(grad: Tensor, a: Tensor | Number, b: Tensor | Number, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """`grad` to the larger and 0 to the other, halves where they are equal; `grad` to both for NaN."""

def minimum_backward(grad: Tensor, a: Tensor | Number, b: Tensor | Number, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """`grad` to the smaller and 0 to the other, halves where they are equal; `grad` to both for NaN."""

def prelu_backward(grad: Tensor, x: Tensor, weight: Tensor, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """`x > 0 ? grad : weight grad` and `x > 0 ? 0 : x grad`."""

def silu_and_mul_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad value silu'(gate)` and `grad silu(gate)`."""

def gelu_and_mul_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad value gelu'(gate)` and `grad gelu(gate)`, by the error function."""

def gelu_tanh_and_mul_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`grad value gelu'(gate)` and `grad gelu(gate)` with `approximate='tanh'`."""

def where_backward(grad: Tensor, condition: Tensor, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """`condition ? grad : 0` and `condition ? 0 : grad`."""

def lerp_backward(grad: Tensor, a: Tensor | Number, b: Tensor | Number, weight: Tensor | Number, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """`grad (1 - weight)`, `grad weight` and `grad (b - a)`."""

def clamp_tensor_backward(grad: Tensor, x: Tensor | Number, min: Tensor | Number, max: Tensor | Number, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """`grad` to x where `min <= x <= max`, to min where `x < min < max`, to max where `x > max` or `max < min`; else 0. For a bound that is left out there is `ops::clamp_backward`."""

def l2_normalize(input: Tensor, *, eps: Number = 1e-12, out: Tensor | None = None) -> Tensor:
    """`x / max(sqrt(sum(x^2)), eps)`. Source: `torch.nn.functional.normalize` with `p=2` and `dim=-1`."""

def sum(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sum of each row. Source: `torch.sum` with `dim=-1`."""

def mean(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The mean of each row. Source: `torch.mean` with `dim=-1`."""

def amax(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The largest element of each row; NaN if there is one. Source: `torch.amax` with `dim=-1`."""

def amin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smallest element of each row; NaN if there is one. Source: `torch.amin` with `dim=-1`."""

def var(input: Tensor, *, correction: Number = 1, out: Tensor | None = None) -> Tensor:
    """The variance of each row, `sum((x - mean(x))^2) / (n - correction)`. Source: `torch.var` with `dim=-1`."""

def softmax(input: Tensor, *, scale: Number = 1, out: Tensor | None = None) -> Tensor:
    """`e^(scale x - m) / sum(e^(scale x - m))`, `m` the largest `scale x`. A row of minus infinities alone gives NaN. Source:
`torch.softmax` with `dim=-1`."""

def log_softmax(input: Tensor, *, scale: Number = 1, out: Tensor | None = None) -> Tensor:
    """`scale x - m - ln(sum(e^(scale x - m)))`, `m` the largest `scale x`. Source: `torch.log_softmax` with `dim=-1`."""

def logsumexp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`ln(sum(e^x))`, one for each row: `m + ln(sum(e^(x - m)))`, `m` the largest, or `m` if that is infinite. Source:
`torch.logsumexp` with `dim=-1`."""

def rms_norm(x: Tensor, weight: Tensor, *, eps: Number = 1e-06, offset: Number = 0, rounded: bool = False, out: Tensor | None = None) -> Tensor:
    """`x / sqrt(mean(x^2) + eps) * (weight + offset)`. Gemma's norms have an offset of 1. With `rounded` the quotient is rounded to the
element type before the weight, as in Llama's. Source: `torch.nn.functional.rms_norm`."""

def masked_softmax(x: Tensor, mask: Tensor, *, scale: Number = 1, out: Tensor | None = None) -> Tensor:
    """[`softmax()`] of the elements where `mask` is false; 0 elsewhere. A row without such elements gives NaN. Source:
`torch._masked_softmax`."""

def biased_softmax(x: Tensor, bias: Tensor, *, scale: Number = 1, out: Tensor | None = None) -> Tensor:
    """[`softmax()`] of `scale x + bias`: `bias` is a mask of zeros and minus infinities, or a position bias, and broadcasts. A row of
minus infinities alone gives NaN. Source: the attention of `torch.nn.functional.scaled_dot_product_attention` with
`attn_mask`."""

def causal_softmax(x: Tensor, positions: Tensor, *, scale: Number = 1, out: Tensor | None = None) -> Tensor:
    """[`softmax()`] of a row's elements up to its position, `positions`; 0 behind it: attention to the keys that are not later than
the query, whose place among them the position is. A row with a position below 0 gives NaN. A row has up to 2^24 elements.
Source: the attention of `torch.nn.functional.scaled_dot_product_attention` with `is_causal`, where the position of row `i`
is `i`."""

def cross_entropy(x: Tensor, labels: Tensor, *, ignore_index: int = -100, label_smoothing: Number = 0) -> Tensor:
    """The cross entropy of each row of logits and its label, a class from 0 on: `logsumexp(x) - x[label]`. With a smoothing `s` the
target is `1 - s` of the label and `s` of all classes alike. The loss and the gradient are 0 where the label is
`ignore_index`; a label that names no class gives NaN. A row has up to 2^24 classes. For the gradient the row's largest logit
is kept, and the sum of `e^(x - largest)`. Source: `torch.nn.functional.cross_entropy` with `reduction="none"`."""

def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor, *, eps: Number = 1e-06, offset: Number = 0, rounded: bool = False, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """[`rms_norm()`] of `x + residual`, which is rounded to the element type first, and that sum. Source: the layers of
`transformers`."""

def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, *, eps: Number = 1e-05, out: Tensor | None = None) -> Tensor:
    """`(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`, by the biased variance. Source: `torch.nn.functional.layer_norm`."""

def add_layer_norm(x: Tensor, residual: Tensor, weight: Tensor, bias: Tensor, *, eps: Number = 1e-05, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """[`layer_norm()`] of `x + residual`, which is rounded to the element type first, and that sum."""

def l2_normalize_backward(grad: Tensor, x: Tensor, *, eps: Number = 1e-12, out: Tensor | None = None) -> Tensor:
    """The gradients of `l2_normalize`."""

def sum_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The gradients of `sum`."""

def mean_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The gradients of `mean`."""

def amax_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The gradients of `amax`."""

def amin_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The gradients of `amin`."""

def var_backward(grad: Tensor, x: Tensor, *, correction: Number = 1, out: Tensor | None = None) -> Tensor:
    """The gradients of `var`."""

def softmax_backward(grad: Tensor, x: Tensor, *, scale: Number = 1, out: Tensor | None = None) -> Tensor:
    """The gradients of `softmax`."""

def log_softmax_backward(grad: Tensor, x: Tensor, *, scale: Number = 1, out: Tensor | None = None) -> Tensor:
    """The gradients of `log_softmax`."""

def logsumexp_backward(grad: Tensor, x: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The gradients of `logsumexp`."""

def rms_norm_backward(grad: Tensor, x: Tensor, weight: Tensor, *, eps: Number = 1e-06, offset: Number = 0, rounded: bool = False, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """The gradients of `rms_norm`."""

def masked_softmax_backward(grad: Tensor, x: Tensor, mask: Tensor, *, scale: Number = 1, out: Tensor | None = None) -> Tensor:
    """The gradients of `masked_softmax`."""

def biased_softmax_backward(grad: Tensor, x: Tensor, bias: Tensor, *, scale: Number = 1, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """The gradients of `biased_softmax`."""

def causal_softmax_backward(grad: Tensor, x: Tensor, positions: Tensor, *, scale: Number = 1, out: Tensor | None = None) -> Tensor:
    """The gradients of `causal_softmax`."""

def cross_entropy_backward(grad: Tensor, x: Tensor, labels: Tensor, largest: Tensor, total: Tensor, *, ignore_index: int = -100, label_smoothing: Number = 0, out: Tensor | None = None) -> Tensor:
    """The gradients of `cross_entropy`."""

def add_rms_norm_backward(grad_y: Tensor, grad_sum: Tensor, weight: Tensor, sum: Tensor, *, eps: Number = 1e-06, offset: Number = 0, rounded: bool = False, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """The gradients of `add_rms_norm`."""

def layer_norm_backward(grad: Tensor, x: Tensor, weight: Tensor, bias: Tensor, *, eps: Number = 1e-05, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `layer_norm`."""

def add_layer_norm_backward(grad_y: Tensor, grad_sum: Tensor, weight: Tensor, bias: Tensor, sum: Tensor, *, eps: Number = 1e-05, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of `add_layer_norm`."""

def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element times `1 / (1 - p)`, or +0 with probability p (Philox4x32-10)."""

def dropout_(input: Tensor, p: float = 0.5, training: bool = True) -> Tensor:
    """`dropout` over its first operand."""

def dropout_backward(grad: Tensor, p: Number = 0.5, seed: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
    """The gradient of `dropout`, which draws the mask again."""

def alibi(num_heads: int, seq_len: int, *, causal: bool = False, dtype: torch.dtype | None = None, device: torch.device | str | None = None, out: Tensor | None = None) -> Tensor:
    """ALiBi's bias `-slope(h) |i - j|`, (num_heads, seq_len, seq_len)."""

def sinusoidal(seq_len: int, d_model: int, *, halves: bool = False, dtype: torch.dtype | None = None, device: torch.device | str | None = None, out: Tensor | None = None) -> Tensor:
    """Sine and cosine position encoding, (seq_len, d_model), interleaved."""

def silu_and_mul_pair(gate: Tensor, value: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`silu(gate) * value`: SwiGLU (Shazeer 2020)."""

def silu_and_mul_pair_(gate: Tensor, value: Tensor) -> Tensor:
    """`silu_and_mul_pair` over its first operand."""

def gelu_and_mul_pair(gate: Tensor, value: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`gelu(gate) * value`, by the error function: GEGLU (Shazeer 2020)."""

def gelu_and_mul_pair_(gate: Tensor, value: Tensor) -> Tensor:
    """`gelu_and_mul_pair` over its first operand."""

def gelu_tanh_and_mul_pair(gate: Tensor, value: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`gelu(gate, approximate='tanh') * value`."""

def gelu_tanh_and_mul_pair_(gate: Tensor, value: Tensor) -> Tensor:
    """`gelu_tanh_and_mul_pair` over its first operand."""

def silu_and_mul_pair_backward(grad: Tensor, gate: Tensor, value: Tensor, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """`grad value silu'(gate)` and `grad silu(gate)`."""

def gelu_and_mul_pair_backward(grad: Tensor, gate: Tensor, value: Tensor, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """`grad value gelu'(gate)` and `grad gelu(gate)`, by the error function."""

def gelu_tanh_and_mul_pair_backward(grad: Tensor, gate: Tensor, value: Tensor, *, out: tuple[Tensor, ...] | None = None) -> tuple[Tensor, Tensor]:
    """`grad value gelu'(gate)` and `grad gelu(gate)` with `approximate='tanh'`."""

def masked_fill(input: Tensor, mask: Tensor, value: Tensor | Number, *, out: Tensor | None = None) -> Tensor:
    """`mask ? value : input`; the value is converted to input's type, which must hold it."""

def masked_fill_(input: Tensor, mask: Tensor, value: Tensor | Number) -> Tensor:
    """`masked_fill` over its first operand."""

def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-05) -> Tensor:
    """`layer_norm` over groups of the channels, dimension 1; weight and bias have an element for each channel."""

def rope(q: Tensor, k: Tensor | None, cos: Tensor, sin: Tensor, position_ids: Tensor | None = None, *, offset: int = 0, rotary_dim: int | None = None, layout: str = 'bshd', pairs: str = 'half', rotated_lanes: str = 'lead', q_scale: float = 1.0, k_scale: float = 1.0, backward: bool = False) -> tuple[Tensor, Tensor | None]:
    """Rotary embedding by tables of cosines and sines."""

def rope_one(q: Tensor, cos: Tensor, sin: Tensor, position_ids: Tensor | None = None, *, offset: int = 0, rotary_dim: int | None = None, layout: str = 'bshd', pairs: str = 'half', rotated_lanes: str = 'lead', q_scale: float = 1.0, k_scale: float = 1.0, backward: bool = False) -> Tensor:
    """Rotary embedding by tables of cosines and sines."""

def rope_neox(q: Tensor, k: Tensor | None = None, position_ids: Tensor | None = None, *, offset: int = 0, rotary_dim: int | None = None, layout: str = 'bshd', pairs: str = 'half', rotated_lanes: str = 'lead', q_scale: float = 1.0, k_scale: float = 1.0, max_positions: int | None = None, **settings: Any) -> tuple[Tensor, Tensor | None]:
    """Rotary embedding of pairs half the rotated lanes apart (GPT-NeoX, Llama)."""

def rope_non_neox(q: Tensor, k: Tensor | None = None, position_ids: Tensor | None = None, *, offset: int = 0, rotary_dim: int | None = None, layout: str = 'bshd', pairs: str = 'interleaved', rotated_lanes: str = 'lead', q_scale: float = 1.0, k_scale: float = 1.0, max_positions: int | None = None, **settings: Any) -> tuple[Tensor, Tensor | None]:
    """Rotary embedding of neighbouring lanes (GPT-J)."""

def rope_llama31(q: Tensor, k: Tensor | None = None, position_ids: Tensor | None = None, *, offset: int = 0, rotary_dim: int | None = None, layout: str = 'bshd', pairs: str = 'half', rotated_lanes: str = 'lead', q_scale: float = 1.0, k_scale: float = 1.0, max_positions: int | None = None, **settings: Any) -> tuple[Tensor, Tensor | None]:
    """Rotary embedding with Llama 3.1's scaled frequencies."""

def rope_yarn(q: Tensor, k: Tensor | None = None, position_ids: Tensor | None = None, *, offset: int = 0, rotary_dim: int | None = None, layout: str = 'bshd', pairs: str = 'half', rotated_lanes: str = 'lead', q_scale: float = 1.0, k_scale: float = 1.0, max_positions: int | None = None, **settings: Any) -> tuple[Tensor, Tensor | None]:
    """Rotary embedding with the frequencies of YaRN (the paper's)."""

def rope_longrope(q: Tensor, k: Tensor | None = None, position_ids: Tensor | None = None, *, offset: int = 0, rotary_dim: int | None = None, layout: str = 'bshd', pairs: str = 'half', rotated_lanes: str = 'lead', q_scale: float = 1.0, k_scale: float = 1.0, max_positions: int | None = None, **settings: Any) -> tuple[Tensor, Tensor | None]:
    """Rotary embedding with LongRoPE's divisors, one list up to the original length and one beyond it."""
