"""The gradients of pointwise's ops (`gpu-kernels/src`) as their formulas stand there: every step is rounded to
f32, functions are exact. What results are compared with, ours by `accuracy` and PyTorch's by `torch_accuracy.py`."""
import math

import torch


def f32(x):
    """Rounded to f32, as float64. Of a sum, product, quotient or root of f32 that is the correctly rounded one."""
    return x.float().double()


def number(x):
    return torch.tensor(x, dtype=torch.float32).item()


class Step:
    """Values of f32, held as float64."""

    def __init__(self, value):
        self.value = value

    def __add__(self, other):
        return Step(f32(self.value + plain(other)))

    def __sub__(self, other):
        return Step(f32(self.value - plain(other)))

    def __rsub__(self, other):
        return Step(f32(plain(other) - self.value))

    def __mul__(self, other):
        return Step(f32(self.value * plain(other)))

    def __truediv__(self, other):
        return Step(f32(self.value / plain(other)))

    def __rtruediv__(self, other):
        return Step(f32(plain(other) / self.value))

    def __neg__(self):
        return Step(-self.value)

    __radd__, __rmul__ = __add__, __mul__

    def __lt__(self, other):
        return self.value < plain(other)

    def __le__(self, other):
        return self.value <= plain(other)

    def __gt__(self, other):
        return self.value > plain(other)

    def __ge__(self, other):
        return self.value >= plain(other)

    def equals(self, other):
        return self.value == plain(other)

    def abs(self):
        return Step(self.value.abs())

    def fma(self, factor, addend):
        """With one rounding, but where float64's own shows."""
        return Step(f32(self.value * plain(factor) + plain(addend)))

    def at_most(self, limit):
        return Step(torch.clamp(self.value, max=limit))

    def of(self, function):
        return Step(f32(function(self.value)))

    def exp(self):
        return self.of(torch.exp)

    def sigmoid(self):
        return self.of(lambda x: 1 / (1 + torch.exp(-x)))


def plain(x):
    return x.value if isinstance(x, Step) else number(x)


def where(condition, yes, no):
    def tensor(x):
        return x.value if isinstance(x, Step) else torch.full((), number(x), dtype=torch.float64, device=condition.device)

    return Step(torch.where(condition, tensor(yes), tensor(no)))


def exp_neg_square(x):
    a = x.abs().at_most(16.0)
    square = a * a
    lost = a.fma(a, -square)
    e = (-square).exp()
    return e.fma(-lost, e)


def sigmoids(x):
    small = (-x.abs()).sigmoid()
    large = 1.0 - small
    return where(x > 0.0, large, small), where(x > 0.0, small, large)


def silu(x):
    s, rest = sigmoids(x)
    return x * s, s * x.fma(rest, 1.0)


def gelu(x):
    cdf = x.of(lambda x: 0.5 * torch.special.erfc(-x * math.sqrt(0.5)))
    density = x.of(lambda x: torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi))
    return x * cdf, x.fma(density, cdf)


def gelu_tanh(x):
    root, cubic = 1.595769121605731, 0.044715
    square = x * x
    t = x * square.fma(Step(number(root * cubic)), root)
    slope = square.fma(Step(number(3 * root * cubic)), root)
    s, rest = sigmoids(t)
    return x * s, (x * (s * rest)).fma(slope, s)


def mish(x):
    w = x.at_most(20.0).exp()
    n = w * (w + 2.0)
    inverse = 1.0 / (n + 2.0)
    slope = where(x > 20.0, 0.0, 4.0 * w * inverse * ((w + 1.0) * inverse))
    return x.fma(slope, n * inverse)


def sign(x):
    return where(x > 0.0, 1.0, where(x < 0.0, -1.0, x.of(torch.zeros_like)))


def rsqrt(grad, x):
    y = x.of(lambda x: 1 / torch.sqrt(x))
    return grad * -0.5 * y * y * y


def reciprocal(grad, x):
    y = 1.0 / x
    return -grad * y * y


def sigmoid(grad, x):
    s = (-x.abs()).sigmoid()
    return grad * (s * (1.0 - s))


def tanh(grad, x):
    s = (x.abs() * -2.0).sigmoid()
    return grad * (4.0 * s * (1.0 - s))


def selu(grad, x):
    a, s = 1.6732632423543772, 1.0507009873554805
    return where(x <= 0.0, grad * (a * s) * x.exp(), grad * s)


def hardswish(grad, x):
    return where(x <= -3.0, 0.0, where(x < 3.0, grad * (x / 3.0 + 0.5), grad))


def zero(grad, x):
    return x.of(torch.zeros_like)


def finite(x):
    return where(torch.isfinite(x.value), 1.0, 0.0)


# name: (gradient, its bound in ULP, 0 of exact ones, None where terms cancel)
ONE = {
    "exp": (lambda grad, x: grad * x.exp(), 3),
    "log": (lambda grad, x: grad / x, 0),
    "sqrt": (lambda grad, x: grad / (x.of(torch.sqrt) * 2.0), 0),
    "rsqrt": (rsqrt, 9),
    "abs": (lambda grad, x: grad * sign(x), 0),
    "neg": (lambda grad, x: -grad, 0),
    "reciprocal": (reciprocal, 0),
    "sign": (zero, 0),
    "sin": (lambda grad, x: grad * x.of(torch.cos), 4),
    "cos": (lambda grad, x: grad * -x.of(torch.sin), 4),
    "floor": (zero, 0),
    "ceil": (zero, 0),
    "round": (zero, 0),
    "round_decimals": (zero, 0),
    "trunc": (zero, 0),
    "erf": (lambda grad, x: grad * (exp_neg_square(x) * (2 / math.sqrt(math.pi))), 5),
    "log1p": (lambda grad, x: grad / (x + 1.0), 0),
    "expm1": (lambda grad, x: grad * x.exp(), 3),
    "relu": (lambda grad, x: where(x <= 0.0, 0.0, grad), 0),
    "gelu": (lambda grad, x: grad * gelu(x)[1], None),
    "gelu_tanh": (lambda grad, x: grad * gelu_tanh(x)[1], None),
    "silu": (lambda grad, x: grad * silu(x)[1], None),
    "sigmoid": (sigmoid, 5),
    "tanh": (tanh, 5),
    "leaky_relu": (lambda grad, x: where(x > 0.0, grad, grad * 0.01), 0),
    "elu": (lambda grad, x: where(x <= 0.0, grad * x.exp(), grad), 3),
    "selu": (selu, 3),
    "hardswish": (hardswish, 0),
    "hardsigmoid": (lambda grad, x: where((x > -3.0) & (x < 3.0), grad * (1 / 6), 0.0), 0),
    "hardtanh": (lambda grad, x: where((x <= -1.0) | (x >= 1.0), 0.0, grad), 0),
    "softplus": (lambda grad, x: where(x > 20.0, grad, grad * x.sigmoid()), 5),
    "mish": (lambda grad, x: grad * mish(x), None),
    "nan_to_num": (lambda grad, x: grad * finite(x), 0),
    "clamp": (lambda grad, x: where((x >= -math.inf) & (x <= math.inf), grad, 0.0), 0),
}


def power(a, b):
    return Step(f32(torch.pow(a.value, b.value)))


def pow(grad, a, b):
    base = grad * (b * power(a, b - 1.0))
    exponent = power(a, b) * a.of(torch.log)
    of_exponent = where(a.equals(0.0) & (b >= 0.0), 0.0, exponent)
    return where(b.equals(0.0), 0.0, base), grad * of_exponent


def larger(grad, a, b, c, d):
    """The gradients of two operands: all for the larger by `c < d`, half for each where both are equal."""
    share = where(a.equals(b), grad * 0.5, grad)
    return where(c < d, 0.0, share), where(c > d, 0.0, share)


def clamp_tensor(grad, x, low, high):
    below, above = (x < low) & (low < high), (x > high) | (high < low)
    return where((x >= low) & (x <= high), grad, 0.0), where(below, grad, 0.0), where(above, grad, 0.0)


def gated(activation):
    def gradient(grad, gate, value):
        activated, slope = activation(gate)
        return grad * value * slope, grad * activated

    return gradient


def several(floor_divide):
    """name: (gradients, their names, the bound as above); `floor_divide` as PyTorch's on float64."""
    floors = lambda a, b: Step(floor_divide(a.value, b.value))  # noqa: E731
    binary = ("grad_a", "grad_b")
    halves = ("grad_gate", "grad_value")
    return {
        "mul": (lambda grad, a, b: (grad * b, grad * a), binary, 0),
        "div": (lambda grad, a, b: (grad / b, -grad * (a / b / b)), binary, 0),
        "remainder": (lambda grad, a, b: (grad, -grad * floors(a, b)), binary, 0),
        "pow": (pow, binary, 6),
        "maximum": (lambda grad, a, b: larger(grad, a, b, a, b), binary, 0),
        "minimum": (lambda grad, a, b: larger(grad, a, b, -a, -b), binary, 0),
        "prelu": (
            lambda grad, x, weight: (where(x > 0.0, grad, weight * grad), where(x > 0.0, 0.0, x * grad)),
            ("grad_x", "grad_weight"), 0,
        ),
        "lerp": (
            lambda grad, a, b, weight: (grad * (1.0 - weight), grad * weight, grad * (b - a)),
            ("grad_a", "grad_b", "grad_weight"), 0,
        ),
        "clamp_tensor": (clamp_tensor, ("grad_x", "grad_min", "grad_max"), 0),
        "silu_and_mul": (gated(silu), halves, None),
        "gelu_and_mul": (gated(gelu), halves, None),
        "gelu_tanh_and_mul": (gated(gelu_tanh), halves, None),
    }


def allowed(name, result, bound, kind, inputs):
    """The error that does not count: what cancels, and what is lost where a factor is subnormal and another huge, as in
    `crates/pointwise-testkit/src/gradients.rs`."""
    if bound == 0:
        return None
    grad, x = inputs[0].abs(), inputs[1].abs()
    scale = grad
    if name.endswith("_and_mul") and result == 0:
        scale = grad * inputs[2].abs()
    elif name == "pow":
        scale = grad * inputs[2].abs().clamp(min=104.0)
    smallest = 2.0**-149
    if bound is None:
        slack = 2.0 ** (-22 if kind == "f32" else -18)
        error = torch.where(x < 4.0, slack, 0.0) + 512 * smallest
    else:
        error = bound * smallest
    error = error * scale
    return torch.where(torch.isfinite(error), error, 0.0)
