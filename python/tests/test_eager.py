"""Values, element types, shapes and strides as torch's, in eager mode."""

import math

import pointwise
import pytest
import torch
from pointwise._torch_ops import CALLS
from reference import ALL, REFERENCE, close, operands, tensor

NAMES = sorted(REFERENCE)
# Types that torch's op refuses and pointwise takes.
MORE = {("abs", torch.bool), ("hardtanh", torch.uint8)}


def op_of(name):
    return CALLS[name].op if name in CALLS else None


def test_every_op_is_there():
    for name in CALLS:
        public = {"alibi_causal": "alibi", "sinusoidal_halves": "sinusoidal"}.get(name, name)
        assert callable(getattr(pointwise, public))
        assert hasattr(torch.ops.pointwise, public)


@pytest.mark.parametrize("dtype", ALL, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_values_and_types(name, dtype, device):
    if name == "masked_fill":
        args = [tensor((4, 6), dtype, device), tensor((4, 6), torch.bool, device), 1]
    elif name == "clamp":
        args = [tensor((4, 6), dtype, device), 1, 2]
    else:
        # No division by zero, and no negative number to a fraction.
        positive = name in ("pow", "prelu", "div_trunc", "floor_divide", "remainder")
        args = operands(CALLS[name].op, dtype, device, positive=positive)
    try:
        theirs = REFERENCE[name](*args)
    except RuntimeError:
        if (name, dtype) not in MORE:
            with pytest.raises(RuntimeError):
                getattr(pointwise, name)(*args)
        return
    try:
        ours = getattr(pointwise, name)(*args)
    except NotImplementedError:
        assert not dtype.is_floating_point, f"{name} of {dtype} is not there"
        pytest.skip("torch has a kernel for this type, pointwise has none")
    assert ours.dtype == theirs.dtype
    assert ours.stride() == theirs.stride()
    close(ours, theirs, dtype)


LAYOUTS = {
    "transposed": lambda x: x.t(),
    "every other": lambda x: x[::2, ::2],
    "expanded": lambda x: x[:1].expand(5, 6),
    "no dimensions": lambda x: x[0, 0],
    "empty": lambda x: x[:0],
    "channels last": lambda x: x.reshape(2, 2, 3, 2).to(memory_format=torch.channels_last),
    "ten dimensions": lambda x: x.reshape(2, 1, 2, 1, 3, 1, 2, 1, 1, 1).transpose(0, 4).transpose(2, 6),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_layouts(name, layout, device):
    op = op_of(name)
    if name in ("masked_fill", "clamp") or not op.is_elementwise:
        pytest.skip("layouts of its own")
    dtype = torch.float32 if "float32" in op.dtypes else torch.int32
    args = [LAYOUTS[layout](x) for x in operands(op, dtype, device, positive=name == "pow")]
    ours, theirs = getattr(pointwise, name)(*args), REFERENCE[name](*args)
    assert ours.shape == theirs.shape
    if layout != "expanded":
        assert [s for s, n in zip(ours.stride(), ours.shape) if n > 1] == [
            s for s, n in zip(theirs.stride(), theirs.shape) if n > 1
        ]
    close(ours, theirs, dtype)


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "div", "maximum", "pow", "eq", "lt", "remainder", "floor_divide"]
)
@pytest.mark.parametrize("a", ALL, ids=str)
@pytest.mark.parametrize("b", [*ALL, "float", "int", "bool", "0-dim"], ids=str)
def test_promotion(name, a, b, device):
    x = tensor((3, 4), a, device, positive=True)
    if isinstance(b, str):
        y = {"float": 1.5, "int": 2, "bool": True, "0-dim": torch.tensor(2.5, device=device)}[b]
        if name == "maximum" and not isinstance(y, torch.Tensor):
            pytest.skip("torch takes tensors alone")
    else:
        y = tensor((4,), b, device, positive=True)
    try:
        theirs = getattr(torch, name)(x, y)
    except RuntimeError:
        with pytest.raises(RuntimeError):
            getattr(pointwise, name)(x, y)
        return
    try:
        ours = getattr(pointwise, name)(x, y)
    except NotImplementedError:
        assert theirs.dtype == torch.bool
        return
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    close(ours, theirs, theirs.dtype)


def test_alpha(device):
    x, y = tensor((3, 4), torch.int32, device), tensor((4,), torch.int32, device)
    assert torch.equal(pointwise.add(x, y, alpha=3), torch.add(x, y, alpha=3))
    assert torch.equal(pointwise.sub(x, 2, alpha=3), torch.sub(x, 2, alpha=3))
    with pytest.raises(RuntimeError):
        pointwise.add(x, y, alpha=0.5)
    z = x.float()
    close(pointwise.add(z, y, alpha=0.5), torch.add(z, y, alpha=0.5), torch.float32)


def test_numbers(device):
    x, y = (tensor((3, 4), torch.bfloat16, device) for _ in "ab")
    # The weight is no element: it is not rounded to 16 bits.
    assert torch.equal(pointwise.lerp(x, y, 0.4), torch.lerp(x.float(), y.float(), 0.4).bfloat16())
    mask = x > 0
    close(pointwise.where(mask, 1, 2.5), torch.where(mask, 1, 2.5), torch.float32)
    close(pointwise.where(mask, x, 2), torch.where(mask, x, 2), torch.bfloat16)
    assert pointwise.where(mask, True, False).dtype == torch.bool
    for a, b in ((2, 3), (2.5, 3), (True, 2)):
        ours, theirs = pointwise.add(a, b), torch.add(a, b)
        assert ours == theirs and ours.dtype == theirs.dtype
    u = tensor((3, 4), torch.uint8, device)
    assert torch.equal(pointwise.add(u, u, alpha=-3), torch.add(u, u, alpha=-3))
    i = tensor((3, 4), torch.int32, device)
    assert torch.equal(pointwise.hardtanh(i, -0.5, 2.5), torch.nn.functional.hardtanh(i, -0.5, 2.5))


def test_large_integers(device):
    x = torch.tensor([2**62, 5], device=device)
    assert torch.equal(pointwise.add(x, 2**61 + 1), torch.add(x, 2**61 + 1))
    assert torch.equal(pointwise.eq(x, 2**62), torch.eq(x, 2**62))


def test_out_and_in_place(device):
    x, y = tensor((3, 4), torch.float32, device), tensor((4,), torch.float32, device)
    out = torch.empty(0, device=device)
    assert pointwise.add(x, y, out=out) is out
    close(out, x + y, torch.float32)
    wide = torch.empty(3, 4, dtype=torch.float64, device=device)
    close(pointwise.exp(x, out=wide), torch.exp(x, out=wide.clone()), torch.float32)
    with pytest.raises(RuntimeError):
        pointwise.exp(x, out=torch.empty(3, 4, dtype=torch.int32, device=device))
    z = x.clone()
    version = z._version
    assert pointwise.mul_(z, y) is z and z._version > version
    close(z, x * y, torch.float32)
    with pytest.raises(RuntimeError):
        pointwise.add_(y.clone(), x)
    z = x.clone().t()
    pointwise.silu(z, inplace=True)
    close(z, torch.nn.functional.silu(x).t(), torch.float32)
    close(pointwise.clamp_(x.clone(), max=1), x.clamp(max=1), torch.float32)
    mask = x > 0
    close(pointwise.masked_fill_(x.clone(), mask, 2.5), x.masked_fill(mask, 2.5), torch.float32)
    close(pointwise.div_(x.clone(), 2, rounding_mode="floor"), x.div(2, rounding_mode="floor"), torch.float32)


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64, torch.bfloat16), ids=str)
@pytest.mark.parametrize("shape", ((), (1,), (4,), (1, 4), (3, 1), (2, 3, 4), (12,)), ids=str)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_results_of_another_shape(shape, dtype, device):
    if device != "cpu" and dtype == torch.float64:
        pytest.skip("float64 is there on the CPU alone")
    x, y = tensor((3, 4), dtype, device), tensor((4,), dtype, device)
    for run in (pointwise.mul, lambda x, y, out: pointwise.mul(x, 2.5, out=out), lambda x, y, out: pointwise.exp(x, out=out)):
        out = torch.zeros(shape, dtype=dtype, device=device)
        assert run(x, y, out=out) is out
        close(out, run(x, y, out=None), dtype)
    z = tensor(shape, dtype, device)
    before, version = z.clone(), z._version
    if shape == (2, 3, 4):
        close(pointwise.mul_(z, x), before * x, dtype)
    else:
        with pytest.raises(RuntimeError, match="broadcast"):
            pointwise.mul_(z, x)
        assert torch.equal(z, before) and z._version == version


@pytest.mark.parametrize("dtype", (torch.float32, torch.int32, torch.bfloat16, torch.float64), ids=str)
@pytest.mark.parametrize("size", (1, 15, 257, 1500))
def test_in_place_of_itself(size, dtype, device):
    if device != "cpu" and dtype == torch.float64:
        pytest.skip("float64 is there on the CPU alone")
    values, row = tensor((3, size), dtype, device), tensor((size,), dtype, device)
    column = tensor((3, 1), dtype, device)
    for run, want in (
        (lambda x: pointwise.mul_(x, x), values * values),
        (lambda x: pointwise.mul_(x, 3), values * 3),
        (lambda x: pointwise.mul_(x, row), values * row),
        (lambda x: pointwise.sub_(x, column), values - column),
        (lambda x: pointwise.sub(row, x, out=x), row - values),
        (lambda x: pointwise.sub(3, x, out=x), 3 - values),
        (lambda x: pointwise.relu_(x), values.relu()),
        (lambda x: pointwise.clamp_(x, 0, 2), values.clamp(0, 2)),
    ):
        x = values.clone()
        assert run(x) is x
        close(x, want, dtype)
    # The rows of a tensor, one further on.
    both = torch.cat((values, values))
    with pytest.raises(RuntimeError):
        pointwise.mul(both[:-1], 2, out=both[1:])


def lazily_negated(values):
    """A real tensor whose memory has the negated values: torch negates them when they are read."""
    x = torch.complex(torch.zeros_like(values), -values).conj().imag
    assert x.is_neg() and torch.equal(x, values)
    return x


def test_lazy_negation(device):
    x = tensor((4,), torch.float32, device)
    kernels = torch.ops.pointwise_kernels
    for exp in (pointwise.exp, torch.ops.pointwise.exp, lambda x, out: kernels.exp.out(x, out=out) or out):
        out = lazily_negated(torch.zeros_like(x))
        assert exp(x, out=out) is out and out.is_neg()
        close(out, torch.exp(x), torch.float32)
        close(exp(lazily_negated(x), out=torch.empty_like(x)), torch.exp(x), torch.float32)
    for run, want in (
        (pointwise.exp_, torch.exp(x)),
        (lambda y: pointwise.mul_(y, 2), x * 2),
        (lambda y: pointwise.mul_(y, y), x * x),
        (lambda y: pointwise.add_(y, lazily_negated(x), alpha=3), x * 4),
        (lambda y: pointwise.masked_fill_(y, x > 0, 5.0), x.masked_fill(x > 0, 5.0)),
        (torch.ops.pointwise.silu_, torch.nn.functional.silu(x)),
    ):
        y = lazily_negated(x)
        version = y._version
        assert run(y) is y and y.is_neg() and y._version > version
        close(y, want, torch.float32)
    outs = lazily_negated(x), lazily_negated(x)
    pointwise.mul_backward(x, x + 1, x + 2, out=outs)
    close(outs[0], x * (x + 2), torch.float32)
    close(outs[1], x * (x + 1), torch.float32)
    # No kernel takes complex tensors: that is an error, with the bit of a conjugation, too.
    z = torch.ones(4, dtype=torch.complex64, device=device).conj()
    for call in (lambda: kernels.exp.out(z, out=z), lambda: kernels.exp.out(x, out=z), lambda: pointwise.exp(z)):
        with pytest.raises((RuntimeError, NotImplementedError)):
            call()


def test_several_results(device):
    grad, a, b = (tensor((3, 4), torch.float32, device) for _ in range(3))
    of_a, of_b = pointwise.mul_backward(grad, a, b)
    close(of_a, grad * b, torch.float32)
    close(of_b, grad * a, torch.float32)
    outs = torch.empty(3, 4, device=device), torch.empty(3, 4, device=device)
    pointwise.mul_backward(grad, a, b, out=outs)
    close(outs[1], grad * a, torch.float32)


def test_clamp(device):
    x, low = tensor((3, 4), torch.float32, device), tensor((4,), torch.float32, device)
    for bounds in ((None, 1.0), (-1, None), (low, None), (None, low), (low, low + 1), (low, 2.0)):
        theirs = torch.clamp(
            x, *(b if b is None or torch.is_tensor(b) else torch.tensor(b, device=device) for b in bounds)
        )
        close(pointwise.clamp(x, *bounds), theirs, torch.float32)
    i = tensor((3, 4), torch.int32, device)
    assert torch.equal(pointwise.clamp(i, 0.5), torch.clamp(i, 0.5))
    assert torch.equal(pointwise.clamp(i, i.new_tensor(1)), torch.clamp(i, i.new_tensor(1)))
    with pytest.raises(RuntimeError):
        pointwise.clamp(x)


def test_fp8(device):
    x = torch.randn(4, 6, device=device).to(torch.float8_e4m3fn)
    assert pointwise.silu(x).dtype == torch.float8_e4m3fn
    close(pointwise.relu(x).float(), x.float().relu(), torch.float32)


def test_dropout(device):
    x = torch.ones(1000, 1000, device=device)
    y = pointwise.dropout(x, 0.25)
    assert abs((y == 0).float().mean().item() - 0.25) < 0.01
    assert torch.all((y == 0) | (y == 1 / 0.75))
    torch.manual_seed(7)
    a = pointwise.dropout(x)
    torch.manual_seed(7)
    assert torch.equal(a, pointwise.dropout(x))
    assert not torch.equal(a, pointwise.dropout(x))
    assert pointwise.dropout(x, training=False) is x
    assert torch.all(pointwise.dropout(x, 1.0) == 0)
    assert torch.equal(pointwise.dropout(x.t(), 0.0), x.t())
    with pytest.raises(ValueError):
        pointwise.dropout(x, 1.5)


def test_encodings(device):
    bias = pointwise.alibi(4, 5, causal=True, device=device, dtype=torch.float16)
    assert bias.shape == (4, 5, 5) and bias.dtype == torch.float16 and bias[0, 0, 1] == -torch.inf
    table = pointwise.sinusoidal(7, 6, device=device)
    angles = torch.arange(7.0)[:, None] / 10000 ** (torch.arange(0, 6, 2) / 6)
    torch.testing.assert_close(table[:, 0::2].cpu(), angles.sin())
    torch.testing.assert_close(pointwise.sinusoidal(7, 6, halves=True, device=device)[:, 3:].cpu(), angles.cos())


def test_float64(device):
    x = torch.randn(3, 4, dtype=torch.float64, device=device)
    if device != "cpu":
        with pytest.raises((NotImplementedError, RuntimeError), match="float64"):
            pointwise.silu(x)
        return
    close(pointwise.silu(x.t()), torch.nn.functional.silu(x.t()), torch.float64)
    close(pointwise.add(x, x[0], alpha=2), torch.add(x, x[0], alpha=2), torch.float64)
    assert pointwise.lt(x, 0.0).dtype == torch.bool
    # Parameters and defaults are those of float64.
    close(pointwise.leaky_relu(x, 0.1), torch.nn.functional.leaky_relu(x, 0.1), torch.float64)
    wild = torch.tensor([torch.inf, -torch.inf, torch.nan], dtype=torch.float64)
    assert torch.equal(pointwise.nan_to_num(wild), torch.nan_to_num(wild))


def square_root(x):
    """Rounded once. torch's may be MKL's, whose last bit may be another."""
    return x.clone().apply_(lambda x: math.sqrt(x) if x >= 0 else math.nan)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "neg", "abs", "reciprocal", "sqrt", "relu", "maximum", "minimum"])
def test_arithmetic_in_float64_is_torchs(name):
    """To the bit, but for zeros of a choice: in rows longer than a block, with steps, broadcast, of numbers, in place, and with zeros and NaN."""
    x = torch.randn(3, 1300, dtype=torch.float64) * 1e3
    x[0, :5] = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan])
    y = torch.randn(3, 1300, dtype=torch.float64)
    y[:, ::7] = 0
    ours, theirs = getattr(pointwise, name), getattr(torch, name)
    if name == "sqrt":
        theirs = square_root
    unary = len(CALLS[name].op.operands) == 1
    numbers = [] if name in ("maximum", "minimum") else [(2.5,), (3,)]
    others = [()] if unary else [(y,), (y[1],), (y[:, :1],), *numbers, (y.flip(1),)]
    views = [lambda t: t, lambda t: t[:, ::3], lambda t: t.t(), lambda t: t[0, 0], lambda t: t[:, 1:514]]
    for view in views:
        for other in others:
            args = [view(x), *(view(o) if isinstance(o, torch.Tensor) and o.shape == x.shape else o for o in other)]
            if any(isinstance(o, torch.Tensor) and o.shape != x.shape for o in other) and view is not views[0]:
                continue
            got, want = ours(*args), theirs(*args)
            assert torch.equal(got.nan_to_num(123.0), want.nan_to_num(123.0)) and torch.equal(got.isnan(), want.isnan())
            # Of zeros torch's choice has the first or the second; here +0 is above -0.
            if name not in ("relu", "maximum", "minimum"):
                assert torch.equal(got.signbit() & ~got.isnan(), want.signbit() & ~want.isnan())
            into = args[0].clone()
            getattr(pointwise, f"{name}_")(into, *args[1:])
            assert torch.equal(into.nan_to_num(123.0), want.nan_to_num(123.0))
    if name in ("add", "sub"):
        torch.testing.assert_close(ours(x, y, alpha=3), theirs(x, y, alpha=3), equal_nan=True)


def test_errors(device):
    x = torch.ones(3, device=device)
    with pytest.raises(TypeError):
        pointwise.silu(3)
    with pytest.raises(TypeError):
        pointwise.add(x, "a")
    with pytest.raises(RuntimeError, match="must match the size"):
        pointwise.add(x, torch.ones(4, device=device))
    with pytest.raises(NotImplementedError):
        pointwise.silu(x.to(torch.complex64))
    with pytest.raises(NotImplementedError):
        pointwise.silu(x.int())
    with pytest.raises(RuntimeError):
        pointwise.sub(x > 0, x > 0)
    with pytest.raises(RuntimeError):
        pointwise.silu_and_mul(torch.ones(3, device=device))
    with pytest.raises(RuntimeError):
        pointwise.div(x, 2, rounding_mode="up")
    with pytest.raises(RuntimeError):
        pointwise.silu(x.to_sparse())
    with pytest.raises(TypeError, match="'decimals'"):
        pointwise.round(x, decimals=1.5)
    with torch.inference_mode():
        frozen = torch.ones(3, device=device)
    with pytest.raises(RuntimeError, match="InferenceMode"):
        pointwise.add_(frozen, 1)
    with pytest.raises(AttributeError):
        _ = pointwise.no_such_op
    assert pointwise.silu(torch.ones(3, device="meta")).device.type == "meta"


def test_public_overloads(device):
    ops = torch.ops.pointwise
    x, y = torch.randn(3, 4, device=device), torch.randn(4, device=device)
    close(ops.add(x, y, alpha=2), torch.add(x, y, alpha=2), torch.float32)
    close(ops.add(x, 2, alpha=3), x + 6, torch.float32)
    close(ops.pow(2, x), torch.pow(2, x), torch.float32)
    close(ops.clamp(x, -1, y), torch.clamp(x, torch.tensor(-1.0, device=device), y), torch.float32)
    close(ops.div(x, 2, rounding_mode="floor"), x.div(2, rounding_mode="floor"), torch.float32)
    close(ops.masked_fill(x, x > 0, 3), x.masked_fill(x > 0, 3), torch.float32)
    out = torch.empty(3, 4, device=device)
    assert ops.mul(x, y, out=out) is out
    close(out, x * y, torch.float32)
    z = x.clone()
    assert ops.mul_(z, 2) is z
    close(z, x * 2, torch.float32)
    assert ops.alibi(2, 3, causal=True, device=device).shape == (2, 3, 3)
    assert ops.dropout(x, 0.5, True).shape == x.shape


def test_threads(device):
    from concurrent.futures import ThreadPoolExecutor

    x = torch.randn(64, 64, device=device)
    want = pointwise.silu(x)
    with ThreadPoolExecutor(8) as pool:
        assert all(torch.equal(y, want) for y in pool.map(lambda _: pointwise.silu(x), range(200)))


def test_modules_and_subclasses(device):
    class Marked(torch.Tensor):
        pass

    x = torch.randn(3, 4, device=device)
    assert type(pointwise.silu(x.as_subclass(Marked))) is Marked
    parameter = torch.nn.Parameter(x)
    assert pointwise.silu(parameter).requires_grad
    nested = torch.nested.nested_tensor([x, x[:2]]) if device == "cpu" else None
    if nested is not None:
        with pytest.raises((RuntimeError, NotImplementedError)):
            pointwise.silu(nested)
