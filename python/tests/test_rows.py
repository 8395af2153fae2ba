"""Ops on rows, the last dimension: values, shapes and gradients as torch's, torch.compile, `out=`, vmap, and what is refused."""

import contextlib

import numpy
import pointwise
import pytest
import torch
import torch._dynamo.testing
import torch.nn.functional as F
from pointwise import arrays
from pointwise._torch_ops import CALLS
from reference import close, tensor
from torch._subclasses.fake_tensor import FakeTensorMode

FLOATS = [torch.float32, torch.float16, torch.bfloat16]
SHAPES = [(3, 17), (4, 64), (2, 3, 128)]
ROWS = [name for name, call in CALLS.items() if call.op.rows]
NAMES = [name for name in ROWS if not name.endswith("_backward")]


def added(x, residual):
    """The sum, rounded to the operands' type."""
    return x + residual


def cross_entropy(x, labels, **more):
    """The loss of each row."""
    return F.cross_entropy(x.flatten(0, -2), labels.flatten(), reduction="none", **more).reshape(labels.shape)


# torch's function of the same operands; of a sum it is given.
TORCH = {
    "rms_norm": lambda x, w, eps=1e-6: F.rms_norm(x, x.shape[-1:], w, eps),
    "add_rms_norm": lambda s, w, eps=1e-6: F.rms_norm(s, s.shape[-1:], w, eps),
    "layer_norm": lambda x, w, b, eps=1e-5: F.layer_norm(x, x.shape[-1:], w, b, eps),
    "add_layer_norm": lambda s, w, b, eps=1e-5: F.layer_norm(s, s.shape[-1:], w, b, eps),
    "l2_normalize": lambda x: F.normalize(x, dim=-1),
    "softmax": lambda x: torch.softmax(x, -1),
    "masked_softmax": lambda x, mask: torch.softmax(x.masked_fill(mask, -torch.inf), -1),
    "biased_softmax": lambda x, bias: torch.softmax(x + bias, -1),
    "causal_softmax": lambda x, positions: torch.softmax(
        x.masked_fill(torch.arange(x.shape[-1], device=x.device) > positions.unsqueeze(-1), -torch.inf), -1
    ),
    "cross_entropy": lambda x, labels: cross_entropy(x, labels),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(-1),
    "amax": lambda x: x.amax(-1),
    "amin": lambda x: x.amin(-1),
    "var": lambda x: x.var(-1),
}


def theirs(name, args):
    """torch's results, always a tuple."""
    if name.startswith("add_"):
        s = added(*args[:2])
        return TORCH[name](s, *args[2:]), s
    return (TORCH[name](*args),)


def ours(name, args, **more):
    results = getattr(pointwise, name)(*args, **more)
    return results if isinstance(results, tuple) else (results,)


def operands(name, shape, dtype, device, grad=False):
    """Operands of an op: weights are of the row's length, and no row is masked whole."""
    made = []
    for operand in CALLS[name].op.operands:
        if operand.is_bool:
            x = tensor(shape, torch.bool, device)
            x[..., 0] = False
        elif operand.domain == "row":
            x = torch.randint(0, shape[-1], shape[:-1], device=device)
        elif operand.name in ("weight", "bias"):
            x = tensor(shape[-1:], dtype, device)
        else:
            x = tensor(shape, dtype, device)
        made.append(x.requires_grad_() if grad and x.is_floating_point() else x)
    return made


def copies(args):
    return [x.detach().clone().requires_grad_(x.requires_grad) for x in args]


def test_every_op_is_compared():
    assert set(NAMES) == set(TORCH)
    assert all(f"{name}_backward" in ROWS and CALLS[name].has_gradient for name in NAMES)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_values(name, shape, dtype, device):
    args = operands(name, shape, dtype, device)
    if name.startswith("add_"):
        s = added(*args[:2])
        want = (TORCH[name](s.double(), *(x.double() for x in args[2:])), s)
    else:
        want = (TORCH[name](*(x.double() if x.is_floating_point() else x for x in args)),)
    got = ours(name, args)
    assert len(got) == len(want)
    for one, two in zip(got, want):
        assert (one.shape, one.dtype) == (two.shape, dtype) and one.is_contiguous()
        if dtype == torch.float32:
            torch.testing.assert_close(one, two.to(dtype), rtol=1e-5, atol=1e-5)
        else:
            close(one, two.to(dtype), dtype)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_gradients(name, shape, device):
    args = operands(name, shape, torch.float32, device, grad=True)
    a, b = copies(args), copies(args)
    got, want = ours(name, a), theirs(name, b)
    weights = [torch.randn(y.shape, device=device) for y in want]
    torch.autograd.backward(got, weights)
    torch.autograd.backward(want, weights)
    for one, two in zip(a, b):
        if two.requires_grad:
            assert one.grad.shape == one.shape
            scale = two.grad.abs().max().item()
            torch.testing.assert_close(one.grad, two.grad, rtol=1e-5, atol=1e-5 * max(scale, 1e-3))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_16_bits(name, dtype, device):
    args = operands(name, (4, 64), dtype, device, grad=True)
    a, b = copies(args), copies(args)
    got, want = ours(name, a), theirs(name, b)
    weights = [torch.randn(y.shape, device=device).to(dtype) for y in want]
    torch.autograd.backward(got, weights)
    torch.autograd.backward(want, weights)
    for one, two in zip(a, b):
        if two.requires_grad:
            assert one.grad.dtype == dtype
            tolerance = {torch.float16: 1e-2, torch.bfloat16: 8e-2}[dtype]
            torch.testing.assert_close(one.grad, two.grad, rtol=tolerance, atol=tolerance)


def test_gradient_of_one_result(device):
    """The other result's gradient is none."""
    args = operands("add_layer_norm", (3, 16), torch.float32, device, grad=True)
    for k in range(2):
        a, b = copies(args), copies(args)
        ours("add_layer_norm", a)[k].square().sum().backward()
        theirs("add_layer_norm", b)[k].square().sum().backward()
        for one, two in zip(a, b):
            torch.testing.assert_close(one.grad, torch.zeros_like(one) if two.grad is None else two.grad)


def test_gradients_of_broadcast_operands(device):
    x = torch.randn(1, 5, 16, device=device, requires_grad=True)
    residual = torch.randn(4, 1, 16, device=device, requires_grad=True)
    weight, bias = torch.randn(16, device=device, requires_grad=True), torch.randn((), device=device, requires_grad=True)
    args = [x, residual, weight, bias]
    a, b = copies(args), copies(args)
    got = ours("add_layer_norm", a)
    s = b[0] + b[1]
    want = F.layer_norm(s, (16,)) * b[2] + b[3], s
    assert got[0].shape == got[1].shape == (4, 5, 16)
    torch.testing.assert_close(got, want)
    grad = torch.randn(4, 5, 16, device=device)
    torch.autograd.backward(got, (grad, grad))
    torch.autograd.backward(want, (grad, grad))
    for one, two in zip(a, b):
        assert one.grad.shape == one.shape
        torch.testing.assert_close(one.grad, two.grad)


WEIGHTED = [name for name in NAMES if CALLS[f"{name}_backward"].op.weights]


def backward_operands(name, shape, dtype, device):
    """Operands of the gradients of an op with weights."""
    op = CALLS[f"{name}_backward"].op
    return [tensor(shape[-1:] if k in op.weights else shape, dtype, device) for k in range(len(op.operands))]


def test_which_ops_sum():
    assert WEIGHTED == ["rms_norm", "add_rms_norm", "layer_norm", "add_layer_norm"]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(5, 1000, 16), (9000, 3), (300, 512), (0, 8), (1, 8)], ids=str)
@pytest.mark.parametrize("name", WEIGHTED)
def test_gradients_of_weights(name, shape, dtype, device):
    """They are sums over rows, rounded once: of one row, of a number, of a row with other dimensions of 1."""
    op = CALLS[f"{name}_backward"].op
    args = backward_operands(name, shape, dtype, device)
    f = getattr(pointwise, f"{name}_backward")
    got = f(*args)
    # Of weights of several rows each element has its own gradient.
    wide = [x.float().expand(shape).contiguous() if k in op.weights else x.float() for k, x in enumerate(args)]
    each = f(*wide)
    for k, result in enumerate(op.results):
        assert got[k].dtype == dtype
        if result.weight is None:
            assert got[k].shape == shape
            continue
        assert got[k].shape == shape[-1:]
        rows = each[k].double().reshape(-1, shape[-1])
        want, size = rows.sum(0), rows.abs().sum(0)
        # Half a unit of the type for the sum, and some of f32 for each row.
        unit = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}[dtype]
        assert ((got[k].double() - want).abs() <= unit * want.abs() + 1e-5 * size + 1e-7).all()
    if shape[0] > 1:
        flat = f(*(x.reshape(1, *x.shape) if k in op.weights else x for k, x in enumerate(args)))
        for one, two, result in zip(flat, got, op.results):
            assert torch.equal(one.reshape(two.shape), two)
            assert result.weight is None or one.shape == (1, shape[-1])
        outs = tuple(torch.empty_like(y) for y in got)
        f(*args, out=outs)
        assert all(torch.equal(one, two) for one, two in zip(outs, got))
        numbers = [tensor((), dtype, device) if k in op.weights else x for k, x in enumerate(args)]
        assert all(y.shape == shape[-1:] for y, r in zip(f(*numbers), op.results) if r.weight is not None)
    for where in ("meta", "fake"):
        mode = FakeTensorMode() if where == "fake" else contextlib.nullcontext()
        with mode:
            fakes = [mode.from_tensor(x) if where == "fake" else x.to("meta") for x in args]
            made = f(*fakes)
        for one, two in zip(made, got):
            assert (one.shape, one.stride(), one.dtype) == (two.shape, two.stride(), two.dtype)


@pytest.mark.parametrize("name", WEIGHTED)
def test_vmap_of_gradients_of_weights(name, device):
    """An entry's sum is over the rows of the entry."""
    op = CALLS[name].op
    args = operands(name, (5, 3, 4, 16), torch.float32, device)
    weights = [k for k, operand in enumerate(op.operands) if operand.name in ("weight", "bias")]

    def loss(*args):
        return ours(name, args)[0].square().sum()

    grad = torch.func.grad(loss, tuple(weights))
    for size in (5, 1):
        for is_own in (False, True):
            of = [x[:size] if k not in weights else x.expand(size, 16) if is_own else x for k, x in enumerate(args)]
            dims = tuple(0 if k not in weights or is_own else None for k in range(len(args)))
            got = torch.vmap(grad, dims)(*of)
            for k in range(size):
                want = grad(*(x[k] if d == 0 else x for x, d in zip(of, dims)))
                for one, two in zip(got, want):
                    assert one[k].shape == two.shape == (16,)
                    torch.testing.assert_close(one[k], two)


def test_parameters(device):
    x, w = torch.randn(4, 32, device=device), torch.randn(32, device=device)
    torch.testing.assert_close(pointwise.rms_norm(x, w, eps=1e-2), F.rms_norm(x, (32,), w, 1e-2))
    torch.testing.assert_close(pointwise.rms_norm(x, w, offset=1.0), F.rms_norm(x, (32,), w + 1, 1e-6))
    torch.testing.assert_close(pointwise.softmax(x, scale=0.5), torch.softmax(0.5 * x, -1))
    torch.testing.assert_close(pointwise.var(x, correction=0), x.var(-1, correction=0))
    half = x.bfloat16()
    # As Llama's: the quotient is rounded before the weight.
    want = w.bfloat16() * F.rms_norm(half.float(), (32,), None, 1e-6).bfloat16()
    assert torch.equal(pointwise.rms_norm(half, w.bfloat16(), rounded=True), want)


LAYOUTS = {
    "transposed": lambda x: x.transpose(0, -1),
    "every other": lambda x: x[..., ::2],
    "expanded": lambda x: x[:1].expand(5, *x.shape[1:]),
    "expanded along the row": lambda x: x[..., :1].expand(*x.shape[:-1], 6),
    "ten dimensions": lambda x: x.reshape(2, 1, 2, 1, 3, 1, 2, 1, 1, 8).transpose(0, 4).transpose(2, 6),
    "one dimension": lambda x: x[0, 0],
    "one element": lambda x: x[0, 0, 0],
    "rows of one element": lambda x: x[..., :1],
    "no rows": lambda x: x[:0],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [name for name in NAMES if name != "var"])
def test_layouts(name, layout, device):
    args = []
    for operand, x in zip(CALLS[name].op.operands, operands(name, (4, 6, 8), torch.float32, device)):
        if operand.domain == "row":
            args.append(torch.zeros(args[0].shape[:-1], dtype=x.dtype, device=device))
            continue
        x = x if x.dim() == 3 else x.expand(4, 6, 8).contiguous()
        x = LAYOUTS[layout](x & False if operand.is_bool else x)
        args.append(x)
    if args[0].dim() == 0 and any(operand.domain == "row" for operand in CALLS[name].op.operands):
        # One for each row has a row.
        args[0] = args[0][None]
    flat = [x.reshape((1,) * max(x.dim(), 1)) for x in args] if layout == "one element" else args
    if name == "cross_entropy" and flat[0].dim() == 1:
        flat = [x[None] for x in flat]
    if name.endswith("norm"):
        whole = [x.contiguous() for x in flat]
        s = whole[0] if len(whole) < len(args) or not name.startswith("add_") else whole[0] + whole[1]
        rest = whole[2:] if name.startswith("add_") else whole[1:]
        norm = F.layer_norm(s, s.shape[-1:]) if "layer" in name else F.rms_norm(s, s.shape[-1:], eps=1e-6)
        want = norm * rest[0] + (rest[1] if len(rest) > 1 else 0)
        want = (want, s) if name.startswith("add_") else (want,)
    else:
        want = theirs(name, flat)
    got = ours(name, args)
    for one, two in zip(got, want):
        is_row = CALLS[name].op.results[0].domain == "row"
        assert one.shape == (args[0].shape[:-1] if is_row else args[0].shape)
        # Of equal elements a variance is what its rounding leaves, and its root divides by little.
        atol = 5e-3 if "layer" in name and "along" in layout else 1e-5
        torch.testing.assert_close(one, two.reshape(one.shape), rtol=1e-5, atol=atol)


def test_gradients_of_other_layouts(device):
    x = torch.randn(2, 3, 2, 1, 2, 1, 2, 2, 1, 8, device=device)
    for f, g in ((pointwise.sum, lambda x: x.sum(-1)), (pointwise.softmax, lambda x: x.softmax(-1))):
        for view in (x, x.transpose(0, 8), x[0, 0, 0, 0, 0, 0, 0, 0, 0], x[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]):
            a, b = (view.detach().requires_grad_() for _ in "ab")
            weight = torch.randn(g(b).shape if view.dim() else (), device=device)
            f(a).backward(weight)
            g(b).backward(weight)
            torch.testing.assert_close(a.grad, b.grad)


def apart(x):
    """A tensor of the same values, with a gap behind each element."""
    return x.new_empty(*x.shape, 2)[..., 0].copy_(x.detach()).requires_grad_(x.requires_grad)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_elements_of_a_row_that_lie_apart(name, dtype, device):
    """Such operands are copied: values and gradients have the same bits."""
    a = operands(name, (3, 4, 64), dtype, device, grad=True)
    b = [apart(x) for x in a]
    got, want = ours(name, b), ours(name, a)
    weights = [torch.randn(y.shape, device=device).to(y.dtype) for y in want]
    torch.autograd.backward(want, weights)
    torch.autograd.backward(got, [apart(weight) for weight in weights])
    for one, two in zip(got, want):
        assert one.is_contiguous() and torch.equal(one, two)
    for one, two in zip(b, a):
        assert one.grad is two.grad is None or torch.equal(one.grad, two.grad)


def test_rows_that_lie_apart_in_every_shape(device):
    # No two of ten dimensions are one: the copy is made in parts.
    x = torch.randn((2,) * 10, device=device).permute(*reversed(range(10)))
    assert torch.equal(pointwise.softmax(x), pointwise.softmax(x.contiguous()))
    # One row for all, and a row of one element.
    x = apart(torch.randn(64, device=device)).expand(3, 4, 64)
    assert torch.equal(pointwise.softmax(x), pointwise.softmax(x.contiguous()))
    assert torch.equal(pointwise.sum(apart(x[..., :1])), x[..., 0])
    # No rows, and rows of no elements.
    assert pointwise.softmax(apart(x[:0])).shape == (0, 4, 64)
    assert torch.equal(pointwise.sum(apart(x[..., :0])), x.new_zeros(3, 4))
    # A result in the memory of an operand.
    x = apart(torch.randn(3, 64, device=device))
    want = pointwise.softmax(x.contiguous())
    assert torch.equal(pointwise.softmax(x, out=x), want) and torch.equal(x, want)


def test_empty_rows(device):
    x = torch.empty(3, 0, device=device)
    assert torch.equal(pointwise.sum(x), torch.zeros(3, device=device))
    assert pointwise.mean(x).isnan().all()
    assert pointwise.softmax(x).shape == (3, 0)


@pytest.mark.parametrize("name", NAMES)
def test_out(name, device):
    args = operands(name, (4, 64), torch.float32, device)
    want = ours(name, args)
    outs = tuple(torch.empty_like(y) for y in want)
    if CALLS[name].op.shown < len(CALLS[name].op.results):
        with pytest.raises(RuntimeError, match="keeps results for its gradient"):
            ours(name, args, out=outs[0])
        return
    got = ours(name, args, out=outs if len(outs) > 1 else outs[0])
    for one, two, y in zip(got, outs, want):
        assert one is two and torch.equal(one, y)
    if len(want) > 1:
        with pytest.raises(RuntimeError):
            ours(name, args, out=tuple(y.new_empty(4, 3) for y in want))
        return
    y, op = want[0], CALLS[name].op
    # Another element type, gaps between elements, and another shape.
    assert torch.equal(ours(name, args, out=y.double())[0], y.double())
    gaps = torch.empty(*y.shape, 2, device=device)[..., 0]
    assert torch.equal(ours(name, args, out=gaps)[0], y)
    assert torch.equal(ours(name, args, out=torch.empty(0, device=device))[0], y)
    if op.results[0].domain != "row":
        x = args[0].clone()
        ours(name, [x, *args[1:]], out=x)
        assert torch.equal(x, y)
    with pytest.raises(RuntimeError, match="out="):
        ours(name, [args[0].clone().requires_grad_(), *args[1:]], out=torch.empty_like(y))


def test_wrong_operands(device):
    x = torch.randn(4, 8, device=device)
    w = torch.randn(8, device=device)
    for call in (
        lambda: pointwise.rms_norm(x, w[:7]),
        lambda: pointwise.layer_norm(x, w, torch.randn(3, 1, device=device)),
        lambda: pointwise.add_rms_norm(x, x[:3], w),
        lambda: pointwise.softmax_backward(x[:3], x),
        lambda: pointwise.sum_backward(torch.randn(4, 8, device=device), x),
        lambda: pointwise.rms_norm(x, w.half()),
        lambda: pointwise.masked_softmax(x, x),
        lambda: pointwise.amax(x, out=x[:, 0]),
        lambda: torch.ops.pointwise_kernels.sum.out(x, out=torch.empty(4, 8, device=device)),
        lambda: torch.ops.pointwise_kernels.softmax.out(x, 1.0, out=torch.empty(8, 4, device=device).t()),
    ):
        with pytest.raises(RuntimeError):
            call()
    for call in (
        # torch's functions have a dimension there.
        lambda: pointwise.softmax(x, -1),
        lambda: pointwise.var(x, -1),
        lambda: pointwise.sum(x, -1),
        lambda: pointwise.rms_norm(x),
        lambda: pointwise.rms_norm(x, 1.0),
        lambda: pointwise.layer_norm(x, (8,), w, w),
        lambda: pointwise.softmax([1.0, 2.0]),
    ):
        with pytest.raises(TypeError):
            call()
    for dtype in (torch.float64, torch.int32):
        with pytest.raises(NotImplementedError, match="is not implemented for"):
            pointwise.softmax(x.to(dtype))


def test_derivatives_that_are_not_there(device):
    x = torch.randn(4, 8, device=device, requires_grad=True)
    grad = torch.autograd.grad(pointwise.softmax(x).square().sum(), x, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="second derivatives"):
        grad.sum().backward()
    with pytest.raises(NotImplementedError, match="forward mode"):
        torch.func.jvp(pointwise.softmax, (x.detach(),), (x.detach(),))


@pytest.mark.parametrize("name", NAMES)
def test_compile(name, device):
    def run(*args):
        results = getattr(pointwise, name)(*args)
        results = results if isinstance(results, tuple) else (results,)
        return results, torch.cat([(y * y).reshape(-1) for y in results]).mean()

    torch._dynamo.reset()
    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    args = operands(name, (4, 64), torch.float32, device, grad=True)
    a, b = copies(args), copies(args)
    (got, loss), (want, expected) = compiled(*a), run(*b)
    loss.backward()
    expected.backward()
    for one, two in zip(got, want):
        torch.testing.assert_close(one, two)
        assert one.stride() == two.stride()
    for one, two in zip(a, b):
        if two.requires_grad:
            torch.testing.assert_close(one.grad, two.grad)


def test_compile_dynamic_and_out(device):
    torch._dynamo.reset()

    def run(x, w):
        out = torch.empty_like(x)
        pointwise.softmax(x, scale=0.5, out=out)
        return pointwise.rms_norm(out, w, eps=1e-3), pointwise.sum(x)

    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(run, fullgraph=True, dynamic=True, backend=counter)
    for n in (3, 5, 9):
        args = torch.randn(n, 16, device=device), torch.randn(16, device=device)
        torch.testing.assert_close(compiled(*args), run(*args))
    assert counter.frame_count == 1


@pytest.mark.parametrize("name", NAMES)
def test_meta(name):
    args = operands(name, (2, 3, 128), torch.float32, "cpu")
    got = ours(name, [x.transpose(0, 1).to("meta") if x.dim() > 1 else x.to("meta") for x in args])
    want = ours(name, [x.transpose(0, 1) if x.dim() > 1 else x for x in args])
    for one, two in zip(got, want):
        assert (one.shape, one.stride(), one.dtype) == (two.shape, two.stride(), two.dtype)
        assert one.device.type == "meta"


@pytest.mark.parametrize("name", NAMES)
def test_vmap(name, device):
    shape = (5, 3, 4, 16)
    args = operands(name, shape, torch.float32, device)
    dims = tuple(1 if x.dim() > 1 else None for x in args)
    f = getattr(pointwise, name)
    got = torch.vmap(f, dims)(*args)
    got = got if isinstance(got, tuple) else (got,)
    for k in range(3):
        want = ours(name, [x[:, k] if x.dim() > 1 else x for x in args])
        for one, two in zip(got, want):
            torch.testing.assert_close(one[k], two)

    def loss(x, *rest):
        return ours(name, (x, *rest))[0].square().sum()

    grads = torch.vmap(torch.func.grad(loss), dims)(*args)
    for k in range(3):
        x, *rest = [x[:, k] if x.dim() > 1 else x for x in args]
        torch.testing.assert_close(grads[k], torch.func.grad(loss)(x, *rest))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_cross_entropy(dtype, device):
    x = (3 * torch.randn(6, 40, device=device)).to(dtype).requires_grad_()
    labels = torch.tensor([0, 39, -100, 7, 7, 3], device=device)
    for more in ({}, {"label_smoothing": 0.1}, {"ignore_index": 7}, {"ignore_index": 7, "label_smoothing": 0.5}):
        labels[2] = more.get("ignore_index", -100)
        exact = x.detach().double().requires_grad_()
        want, got = cross_entropy(exact, labels, **more), pointwise.cross_entropy(x, labels, **more)
        assert got.shape == (6,) and got.dtype == dtype
        close(got, want.to(dtype), dtype)
        weights = torch.randn(6, device=device).to(dtype)
        x.grad = None
        got.backward(weights)
        want.backward(weights.double())
        tolerance = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]
        torch.testing.assert_close(x.grad, exact.grad.to(dtype), rtol=tolerance, atol=tolerance)
    # A class of minus infinity has no part in the loss of others.
    x = torch.tensor([[0.0, -torch.inf, 1.0]], device=device)
    torch.testing.assert_close(pointwise.cross_entropy(x, labels[:1]), cross_entropy(x, labels[:1]))
    # torch raises on the CPU, and stops the GPU.
    assert pointwise.cross_entropy(x, torch.tensor([3], device=device)).isnan().all()
    with pytest.raises(RuntimeError, match="expected labels to be a tensor of int64"):
        pointwise.cross_entropy(x, labels[:1].int())


def test_results_for_the_gradient_alone_are_not_shown(device):
    x, labels = torch.randn(4, 9, device=device), torch.tensor([0, 1, 2, 8], device=device)
    assert [result.name for result in CALLS["cross_entropy"].op.results] == ["loss", "largest", "total"]
    assert isinstance(torch.ops.pointwise.cross_entropy(x, labels), torch.Tensor)
    with pytest.raises(RuntimeError, match="keeps results for its gradient"):
        pointwise.cross_entropy(x, labels, out=torch.empty(4, device=device))
    assert isinstance(pointwise.arrays.cross_entropy(x.cpu(), labels.cpu()), pointwise.arrays.Array)
    compiled = torch.compile(lambda x: pointwise.cross_entropy(x, labels).mean(), backend="aot_eager", fullgraph=True)
    grads = []
    for f in (compiled, lambda x: F.cross_entropy(x, labels)):
        own = x.clone().requires_grad_()
        f(own).backward()
        grads.append(own.grad)
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shape", [(2, 6), (3, 6, 5), (2, 6, 4, 8), (0, 6, 4)], ids=str)
def test_group_norm(shape, dtype, device):
    x = torch.randn(shape, device=device).to(dtype)
    weight, bias = torch.randn(2, 6, device=device).to(dtype)
    for more in ((), (weight,), (weight, bias)):
        results, grads = [], []
        for of, kind in ((pointwise.group_norm, dtype), (F.group_norm, torch.float64)):
            own = [t.detach().to(kind).requires_grad_() for t in (x, *more)]
            results.append(of(own[0], 3, *own[1:], eps=1e-3))
            results[-1].square().sum().backward()
            grads.append([t.grad for t in own])
        close(results[0], results[1].to(dtype), dtype)
        tolerance = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 1e-1}[dtype]
        for ours, exact in zip(*grads):
            torch.testing.assert_close(ours, exact.to(dtype), rtol=tolerance, atol=tolerance)
    if len(shape) == 4:
        last = x.to(memory_format=torch.channels_last)
        assert torch.equal(pointwise.group_norm(last, 2, weight, bias), pointwise.group_norm(x, 2, weight, bias))
    with pytest.raises(RuntimeError, match="divisible by num_groups"):
        pointwise.group_norm(x, 4)
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        pointwise.group_norm(weight, 1)
    with pytest.raises(RuntimeError, match="Expected weight to be a vector"):
        pointwise.group_norm(x, 2, torch.ones(2, device=device, dtype=dtype))


def test_vmap_over_weights_and_without_rows(device):
    x, w = torch.randn(4, 8, device=device), torch.randn(3, 8, device=device)
    got = torch.vmap(pointwise.rms_norm, (None, 0))(x, w)
    torch.testing.assert_close(got, torch.stack([pointwise.rms_norm(x, row) for row in w]))
    torch.testing.assert_close(torch.vmap(pointwise.sum)(x), x.sum(-1))
    with pytest.raises(NotImplementedError, match="no rows"):
        torch.vmap(pointwise.softmax)(x[0])


@pytest.mark.parametrize("name", ROWS)
def test_arrays(name, device):
    """NumPy's arrays have the same results."""
    op, generator = CALLS[name].op, numpy.random.default_rng(0)
    made = []
    for operand in op.operands:
        shape = (2, 3) if operand.domain == "row" else (2, 3, 16)
        if operand.dtype == "int64":
            made.append(generator.integers(0, 16, shape))
            continue
        made.append(generator.random(shape) < 0.5 if operand.is_bool else generator.standard_normal(shape, "float32"))
    params = {param.name: param.default for param in op.params}
    got = getattr(arrays, name)(*made, **params)
    want = ours(name, [torch.from_numpy(x) for x in made], **params)
    got = got if isinstance(got, tuple) else (got,)
    for one, two in zip(got, want):
        assert one.shape == two.shape
        numpy.testing.assert_array_equal(one, two.numpy())
    if op.shown < len(op.results):
        return
    outs = tuple(numpy.empty_like(y) for y in got)
    getattr(arrays, name)(*made, **params, out=outs if len(outs) > 1 else outs[0])
    for one, two in zip(outs, got):
        numpy.testing.assert_array_equal(one, two)
    with pytest.raises(ValueError, match="`out`"):
        wrong = tuple(numpy.empty((2, 5), "float32") for _ in got)
        getattr(arrays, name)(*made, **params, out=wrong if len(wrong) > 1 else wrong[0])
    # Of float64, or beside an operand that has a type of its own.
    with pytest.raises(RuntimeError, match="float64|must be of float32"):
        getattr(arrays, name)(*(x.astype("float64") if x.dtype == "float32" else x for x in made), **params)


def test_builtins_are_still_there():
    """Functions of these names are the package's, and its own code has Python's."""
    assert pointwise.sum is not sum and pointwise.sum(torch.ones(3)) == 3
    x = torch.ones(2, 3, requires_grad=True)
    y, s = pointwise.add_rms_norm(x, x, torch.ones(3))
    (y + s).sum().backward()
    assert x.grad is not None and pointwise.round(torch.tensor(1.6)) == 2
