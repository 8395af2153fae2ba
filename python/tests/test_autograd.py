"""Gradients: by finite differences in float64, against torch's in all float types, with torch.func, checkpoints,
autocast."""

import pointwise
import pytest
import torch
from pointwise._torch_ops import CALLS
from reference import REFERENCE, close, operands, tensor
from torch.autograd import gradcheck
from torch.utils.checkpoint import checkpoint

NAMES = sorted(
    name
    for name, call in CALLS.items()
    if call.has_gradient and not name.endswith("_backward") and not call.op.random and not call.op.rows
)
# torch has no gradient of floor_divide; clamp needs bounds.
COMPARED = [name for name in NAMES if name in REFERENCE and name not in ("clamp", "floor_divide")]


def smooth(op, device="cpu", dtype=torch.float64):
    """Operands away from kinks and poles."""
    made = []
    for k, x in enumerate(operands(op, dtype, device, shape=(3, 4))):
        if x.dtype != torch.bool:
            steps = torch.arange(x.numel(), device=device, dtype=torch.float64).reshape(x.shape)
            x = (0.3 + 0.11 * steps + 0.037 * k).to(dtype)
            if op.name == "clamp_tensor":
                x = x if k == 0 else torch.full_like(x, 0.44 if k == 1 else 1.17)
            x.requires_grad_()
        made.append(x)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_gradcheck(name):
    op = CALLS[name].op
    assert op.double
    if name in ("clamp", "nan_to_num", "hardtanh"):
        extra = {"clamp": (0.44, 1.17), "hardtanh": (0.44, 1.17)}.get(name, ())
        assert gradcheck(lambda x: getattr(pointwise, name)(x, *extra), smooth(op))
        return
    function = getattr(torch.ops.pointwise, name) if name in ("clamp",) else getattr(pointwise, name)
    assert gradcheck(function, smooth(op))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", COMPARED)
def test_as_torch(name, dtype, device):
    op = CALLS[name].op
    made = smooth(op, device, dtype)
    ours, theirs = ([x.detach().clone().requires_grad_() if x.dtype != torch.bool else x for x in made] for _ in "ab")
    y, z = getattr(pointwise, name)(*ours), REFERENCE[name](*theirs)
    weight = torch.linspace(-1, 1, y.numel(), device=device).reshape(y.shape).to(dtype)
    y.backward(weight)
    z.backward(weight)
    for a, b in zip(ours, theirs):
        if a.dtype != torch.bool:
            tolerance = {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 8e-2}[dtype]
            torch.testing.assert_close(a.grad, b.grad, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "maximum", "lerp", "where"])
def test_broadcast_and_types(name, device):
    def args():
        torch.manual_seed(1)
        x = (torch.rand(3, 1, 4, device=device) + 0.5).requires_grad_()
        y = (torch.rand(2, 1, device=device) + 0.5).to(torch.float32).requires_grad_()
        if name == "lerp":
            return x, y, 0.25
        return (torch.rand(3, 2, 4, device=device) > 0.5, x, y) if name == "where" else (x, y)

    ours, theirs = args(), args()
    getattr(pointwise, name)(*ours).square().sum().backward()
    REFERENCE[name](*theirs).square().sum().backward()
    for a, b in zip(ours, theirs):
        if torch.is_tensor(a) and a.dtype != torch.bool:
            assert a.grad.shape == a.shape
            torch.testing.assert_close(a.grad, b.grad)
    # Mixed types: each gradient is of its operand's type.
    x, y = (
        torch.ones(3, device=device, requires_grad=True),
        torch.ones(3, device=device, dtype=torch.float16, requires_grad=True),
    )
    if name not in ("lerp", "where"):
        getattr(pointwise, name)(x, y).sum().backward()
        assert (x.grad.dtype, y.grad.dtype) == (torch.float32, torch.float16)


def test_numbers(device):
    x = torch.rand(3, 4, device=device, requires_grad=True)
    for f in (
        lambda m, x: m.mul(x, 3),
        lambda m, x: m.pow(x, 3),
        lambda m, x: m.pow(2.0, x),
        lambda m, x: m.add(x, 1, alpha=2),
    ):
        torch.testing.assert_close(
            torch.autograd.grad(f(pointwise, x).sum(), x)[0], torch.autograd.grad(f(torch, x).sum(), x)[0]
        )


def test_in_place(device):
    x = torch.rand(3, 4, device=device, requires_grad=True)

    def run(f):
        y = x * 2
        f(y)
        return torch.autograd.grad(y.square().sum(), x)[0]

    torch.testing.assert_close(run(pointwise.silu_), run(lambda y: torch.nn.functional.silu(y, inplace=True)))
    torch.testing.assert_close(run(lambda y: pointwise.mul_(y, y.detach() + 1)), run(lambda y: y.mul_(y.detach() + 1)))
    torch.testing.assert_close(
        run(lambda y: pointwise.masked_fill_(y, y > 1, 0.0)), run(lambda y: y.masked_fill_(y > 1, 0.0))
    )
    with pytest.raises(RuntimeError, match="leaf"):
        pointwise.silu_(x)
    with pytest.raises(RuntimeError, match="out="):
        pointwise.exp(x, out=torch.empty(3, 4, device=device))


@pytest.mark.parametrize(
    "run",
    [
        pointwise.exp_,
        pointwise.add_,
        lambda x, *y: pointwise.relu(x, inplace=True),
        lambda x, *y: pointwise.mul_(x, 2),
        lambda x, *y: pointwise.clamp_(x, 0.2, 0.3),
        lambda x, *y: pointwise.masked_fill_(x, x < 2, 0.0),
        lambda x, *y: pointwise.dropout_(x),
        torch.ops.pointwise.exp_,
    ],
)
def test_nothing_is_written_before_torch_refuses(run, device):
    def refused(x, whole, match):
        args = (x, torch.ones_like(x)) if run is pointwise.add_ else (x,)
        before, version = whole.detach().clone(), whole._version
        with pytest.raises(RuntimeError, match=match):
            run(*args)
        assert torch.equal(whole, before) and whole._version == version

    leaf = torch.rand(3, 4, device=device, requires_grad=True)
    refused(leaf, leaf, "a leaf Variable that requires grad")
    refused(leaf[1], leaf, "a view of a leaf Variable")
    refused(leaf.view(-1), leaf, "a view of a leaf Variable")
    inner = leaf * 1
    refused(inner.unbind()[0], inner, "multiple views")
    # Here torch refuses nothing.
    run(*((inner, torch.ones_like(inner)) if run is pointwise.add_ else (inner,)))
    with torch.no_grad():
        run(*((leaf, torch.ones_like(leaf)) if run is pointwise.add_ else (leaf,)))


def tangents(args):
    return [torch.linspace(-1, 1, x.numel(), device=x.device).reshape(x.shape).to(x.dtype) for x in args]


@pytest.mark.parametrize("name", COMPARED)
def test_forward_mode(name, device):
    made = [x.detach() for x in smooth(CALLS[name].op, device, torch.float32)]
    places = [k for k, x in enumerate(made) if x.dtype != torch.bool]
    args = tuple(made[k] for k in places)

    def fixed(function):
        def call(*args):
            given = list(made)
            for k, x in zip(places, args):
                given[k] = x
            return function(*given)

        return call

    theirs = fixed(REFERENCE[name])
    directions = tuple(tangents(args))
    want = torch.func.jvp(theirs, args, directions)
    for function in map(fixed, (getattr(pointwise, name), getattr(torch.ops.pointwise, name))):
        torch.testing.assert_close(torch.func.jvp(function, args, directions), want, rtol=1e-5, atol=1e-5)
        for at in range(len(args)):
            jacobians = [torch.func.jacfwd(f, argnums=at)(*args) for f in (function, theirs)]
            torch.testing.assert_close(*jacobians, rtol=1e-5, atol=1e-5)
        with torch.autograd.forward_ad.dual_level():
            duals = [torch.autograd.forward_ad.make_dual(x, t) for x, t in zip(args, directions)]
            for no_grad in (False, True):
                with torch.set_grad_enabled(not no_grad):
                    got = torch.autograd.forward_ad.unpack_dual(function(*duals))
                torch.testing.assert_close(tuple(got), want, rtol=1e-5, atol=1e-5)
            # One operand alone has a tangent.
            one = torch.autograd.forward_ad.unpack_dual(function(duals[0], *args[1:])).tangent
        zeros = (directions[0], *map(torch.zeros_like, directions[1:]))
        torch.testing.assert_close(one, torch.func.jvp(theirs, args, zeros)[1], rtol=1e-5, atol=1e-5)


def test_forward_mode_of_other_calls(device):
    def compare(ours, theirs, *args):
        directions = tuple(tangents(args))
        got, want = torch.func.jvp(ours, args, directions), torch.func.jvp(theirs, args, directions)
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(torch.func.jacfwd(ours)(*args), torch.func.jacfwd(theirs)(*args))

    x, y = torch.rand(3, 1, 4, device=device) + 0.5, torch.rand(2, 1, device=device) + 0.5
    for name in ("add", "mul", "div", "pow", "maximum"):
        compare(getattr(pointwise, name), getattr(torch, name), x, y)
    compare(lambda x, y: pointwise.sub(x, y, alpha=3), lambda x, y: torch.sub(x, y, alpha=3), x, y)
    compare(lambda x: pointwise.mul(x, 3), lambda x: x * 3, x)
    compare(lambda x: pointwise.mul(x, y.double().half()), lambda x: x * y.double().half(), x)
    compare(lambda x: pointwise.clamp(x, 0.7, 1.1), lambda x: x.clamp(0.7, 1.1), x)
    compare(lambda x: pointwise.masked_fill(x, x > 1, 2), lambda x: x.masked_fill(x > 1, 2), x)
    compare(lambda x: pointwise.silu(x) * x, lambda x: torch.nn.functional.silu(x) * x, x)
    compare(lambda x: pointwise.exp_(x * 1), lambda x: (x * 1).exp_(), x)
    compare(lambda x: pointwise.mul_(x * 1, x), lambda x: (x * 1).mul_(x), x)
    compare(pointwise.floor, torch.floor, x)
    compare(pointwise.prelu, torch.prelu, torch.randn(2, 3, 4, device=device), torch.rand(3, device=device))
    compare(pointwise.prelu, torch.prelu, torch.randn(2, 3, 4, device=device), torch.rand(1, device=device))
    compare(
        lambda x: pointwise.silu_and_mul(x),
        lambda x: torch.nn.functional.silu(x[..., :2]) * x[..., 2:],
        x,
    )
    with torch.autograd.forward_ad.dual_level():
        y = pointwise.dropout(torch.autograd.forward_ad.make_dual(x, 2 * x), 0.5)
        y, tangent = torch.autograd.forward_ad.unpack_dual(y)
        assert 0 < y.count_nonzero() < y.numel() and torch.equal(tangent, 2 * y)


def test_second_derivatives_by_forward_mode_are_refused(device):
    x = torch.rand(3, device=device)
    ones = torch.ones_like(x)

    def forward(f):
        return lambda x: torch.func.jvp(f, (x,), (ones,))[1]

    def total(f):
        return lambda x: f(x).sum()

    for f in (pointwise.silu, torch.ops.pointwise.silu, lambda x: pointwise.mul(x, x)):
        for second in (
            forward(forward(f)),
            forward(torch.func.grad(total(f))),
            torch.func.grad(total(forward(f))),
            torch.func.hessian(total(f)),
        ):
            with pytest.raises(RuntimeError, match="second derivatives"):
                second(x)


def test_writing_to_a_tensor_in_forward_mode_is_refused(device):
    x = torch.rand(3, device=device)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x)
        for args, out in (((dual,), torch.empty_like(x)), ((x,), dual)):
            with pytest.raises(RuntimeError, match="out="):
                pointwise.exp(*args, out=out)
        pointwise.exp(x, out=torch.empty_like(x))


def test_only_what_is_needed_is_saved(device):
    def saved(f, *args):
        kept = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
            f(*args)
        return len(kept)

    x, y = (torch.rand(3, device=device, requires_grad=True) for _ in "ab")
    assert saved(pointwise.add, x, y) == 0
    assert saved(pointwise.floor, x) == 0
    assert saved(pointwise.silu, x) == 1
    assert saved(pointwise.mul, x, y) == 2
    assert saved(pointwise.where, x > 0.5, x, y) == 1


def test_second_derivative_is_refused(device):
    x = torch.rand(3, device=device, requires_grad=True)
    (grad,) = torch.autograd.grad(pointwise.silu(x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="second derivatives"):
        grad.sum().backward()
    with pytest.raises(RuntimeError, match="second derivatives"):
        torch.func.grad(torch.func.grad(lambda x: pointwise.silu(x).sum()))(x[0].detach())


def test_dropout(device):
    x = torch.ones(100, device=device, requires_grad=True)
    y = pointwise.dropout(x, 0.5)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


@pytest.mark.parametrize("name", COMPARED)
def test_torch_func(name, device):
    op = CALLS[name].op
    if op.has("channel"):
        pytest.skip("vmap over the weight is not there")
    args = [x.detach() for x in smooth(op, device, torch.float32)]
    at = next(k for k, x in enumerate(args) if x.dtype != torch.bool)
    theirs = torch.vmap(torch.func.grad(lambda *a: REFERENCE[name](*a).square().sum(), argnums=at))(*args)
    for function in (getattr(pointwise, name), getattr(torch.ops.pointwise, name)):
        ours = torch.vmap(torch.func.grad(lambda *a: function(*a).square().sum(), argnums=at))(*args)
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
        close(torch.vmap(function)(*args), REFERENCE[name](*args), torch.float32)
        outer = torch.func.grad(lambda *a: torch.vmap(function)(*a).square().sum(), argnums=at)(*args)
        torch.testing.assert_close(outer, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["silu_and_mul", "gelu_and_mul"])
def test_halves_of_ten_dimensions(name, device):
    op = getattr(pointwise, name)
    x = torch.randn(2, 1, 2, 1, 3, 1, 2, 1, 1, 8, device=device).transpose(0, 4).requires_grad_()
    y = op(x)
    flat = x.detach().reshape(-1, 8).requires_grad_()
    grad = torch.randn_like(y)
    (got,) = torch.autograd.grad(y, x, grad)
    (wanted,) = torch.autograd.grad(op(flat), flat, grad.reshape(-1, 4))
    torch.testing.assert_close(got, wanted.reshape(x.shape))


def test_vmap_aligns_ranks(device):
    x, y = torch.rand(5, 3, device=device), torch.rand(4, 3, 5, device=device)
    got = torch.vmap(pointwise.add, in_dims=(0, 2))(x, y)
    torch.testing.assert_close(got, torch.vmap(torch.add, in_dims=(0, 2))(x, y))
    weight = torch.rand(3, device=device)
    z = torch.randn(5, 2, 3, 4, device=device)
    got = torch.vmap(pointwise.prelu, in_dims=(0, None))(z, weight)
    torch.testing.assert_close(got, torch.stack([torch.prelu(x, weight) for x in z]))
    with pytest.raises(RuntimeError, match="randomness"):
        torch.vmap(pointwise.dropout)(z)
    assert torch.vmap(pointwise.dropout, randomness="different")(z).shape == z.shape


def test_checkpoint(device):
    x = torch.randn(3, 8, device=device, requires_grad=True)

    def f(x):
        return pointwise.silu_and_mul(pointwise.gelu(x)).sum()

    (a,) = torch.autograd.grad(checkpoint(f, x, use_reentrant=False), x)
    (b,) = torch.autograd.grad(f(x), x)
    assert torch.equal(a, b)


def test_autocast(device):
    # The rule is torch's own list, which the dispatcher has.
    listed = {name for name in CALLS if _has_autocast(name)}
    assert listed == {n for n in CALLS if CALLS[n].autocast}
    if device == "cuda":
        x = torch.rand(3, device=device, dtype=torch.float16, requires_grad=True)
        with torch.autocast("cuda"):
            y = pointwise.exp(x)
            assert y.dtype == torch.float32 and pointwise.silu(x).dtype == torch.float16
        y.sum().backward()
        assert x.grad.dtype == torch.float16


def _has_autocast(name):
    others = {"pow": "pow.Tensor_Tensor", "softmax": "softmax.int", "log_softmax": "log_softmax.int"}
    overload = f"aten::{others.get(name, name)}"
    try:
        return torch._C._dispatch_has_kernel_for_dispatch_key(overload, "AutocastCUDA")
    except RuntimeError:
        return False


def test_an_op_without_a_gradient_says_so(device):
    name = next(name for name, call in CALLS.items() if name.endswith("_backward") and call.apply)
    args = [x.requires_grad_() if x.is_floating_point() else x for x in operands(CALLS[name].op, torch.float32, device)]
    result = getattr(pointwise, name)(*args)
    with pytest.raises(RuntimeError, match="has no gradient"):
        (result[0] if isinstance(result, tuple) else result).sum().backward()


def test_requires_grad_of_results(device):
    x = torch.rand(3, device=device, requires_grad=True)
    assert not pointwise.isnan(x).requires_grad and not pointwise.lt(x, x).requires_grad
    with torch.no_grad():
        assert not pointwise.silu(x).requires_grad
    with torch.inference_mode():
        assert pointwise.silu(x).is_inference()
        assert torch.ops.pointwise.silu(x).is_inference()
    assert tensor((2,), torch.float32, device).requires_grad is False
