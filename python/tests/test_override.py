"""`pointwise.override()`: torch's own functions run pointwise's kernels, and torch's where there are none."""

import pointwise
import pytest
import torch
import torch.nn.functional as F
from pointwise._torch_ops import CALLS
from reference import REFERENCE, Wrapped, close, operands
from torch.utils.mkldnn import to_mkldnn


@pytest.fixture
def on():
    yield pointwise.override()
    pointwise.override(False)


def runs_ours(f, *args):
    """True if a call runs one of pointwise's kernels, which are counted."""
    from pointwise import _native

    before = _native.override_calls()
    f(*args)
    return _native.override_calls() > before


def test_covered(on):
    assert len(on) > 100
    for name in (
        "aten::silu",
        "aten::silu_",
        "aten::mul.Tensor",
        "aten::mul.out",
        "aten::gelu_backward",
        "aten::where.self",
    ):
        assert name in on


NAMES = (
    "exp log sqrt abs neg silu gelu sigmoid tanh relu mul div maximum eq lt pow bitwise_and where lerp isnan".split()
)


@pytest.mark.parametrize("name", NAMES)
def test_values(name, device):
    op = CALLS[name].op
    dtype = torch.float32 if "float32" in op.dtypes else torch.int32
    args = operands(op, dtype, device, positive=name in ("pow", "log", "sqrt"))
    want = REFERENCE[name](*args)
    pointwise.override()
    try:
        assert runs_ours(REFERENCE[name], *args)
        got = REFERENCE[name](*args)
    finally:
        pointwise.override(False)
    assert not runs_ours(REFERENCE[name], *args)
    assert got.dtype == want.dtype and got.stride() == want.stride()
    close(got, want, dtype)


def test_gradients_are_torchs(on, device):
    x = torch.randn(3, 4, device=device, requires_grad=True)
    y = F.silu(x) * F.gelu(x, approximate="tanh")
    assert runs_ours(lambda: torch.autograd.grad(y.sum(), x, retain_graph=True))
    (grad,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(grad.sum(), x)
    z = x.detach().double().requires_grad_()
    w = F.silu(z) * F.gelu(z, approximate="tanh")
    (want,) = torch.autograd.grad(w.sum(), z, create_graph=True)
    torch.testing.assert_close(grad.double(), want, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(second.double(), torch.autograd.grad(want.sum(), z)[0], rtol=1e-5, atol=1e-5)


def test_numbers_and_types(on, device):
    x = torch.randn(3, 4, device=device)
    assert runs_ours(lambda: x * 2) and torch.equal(x * 2, x + x)
    half = x.half()
    assert (half * 2.5).dtype == torch.float16 and runs_ours(lambda: half * 2.5)
    i = torch.arange(5, device=device)
    assert (i * 2.5).dtype == torch.float32 and not runs_ours(lambda: i * 2.5)
    assert torch.equal(i * 2, i << 1)
    assert (i / 2).dtype == torch.float32
    assert (x * half).dtype == torch.float32
    assert (torch.tensor(2.0, device=device) * half).dtype == torch.float16


INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
ENDS = [n + k for n in (0, 2**7, 2**8, 2**15, 2**16, 2**31, 2**32, 2**53, 2**62, 2**63) for k in (-1, 0, 1)]
NUMBERS = [n for end in ENDS for n in (end, -end) if -(2**63) <= n < 2**63] + [True, False, 2.5, 1e30, float("nan")]


def outcome(f, *args):
    """A result, or the words of an error."""
    try:
        return f(*args)
    except RuntimeError as error:
        return type(error), str(error)


@pytest.mark.parametrize("dtype", [*INTEGERS, torch.bool, torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", "mul div remainder eq ne lt ge bitwise_and bitwise_or bitwise_xor".split())
def test_numbers_as_torchs(name, dtype, device):
    x = torch.tensor([-128, -3, -1, 1, 2, 100, 127], device=device).to(dtype)
    f = getattr(torch, name)
    # A remainder by an integer 0 is an error of torch's on the CPU, and on a GPU no number that it defines.
    undefined = name == "remainder" and x.is_cuda and dtype in INTEGERS
    numbers = [n for n in NUMBERS if n or not undefined]
    calls = [(f, x, n) for n in numbers]
    # Numbers of other kinds: a tensor without dimensions, and the first operand.
    calls += [(f, x, torch.tensor(n)) for n in numbers]
    calls += [(f, torch.tensor(n), x) for n in NUMBERS]
    if hasattr(torch.Tensor, f"{name}_"):
        calls += [(lambda x, n: getattr(x.clone(), f"{name}_")(n), x, n) for n in numbers]
    calls += [(torch.where, x != 1, x, torch.tensor(n)) for n in NUMBERS]
    want = [outcome(*call) for call in calls]
    pointwise.override()
    try:
        got = [outcome(*call) for call in calls]
    finally:
        pointwise.override(False)
    for call, a, b in zip(calls, got, want):
        if isinstance(b, tuple):
            assert a == b, call
        else:
            assert a.dtype == b.dtype, call
            exact = {"rtol": 0, "atol": 0} if b.dtype in INTEGERS else {}
            torch.testing.assert_close(a, b, **exact, equal_nan=True, msg=str(call))


def test_integers_pass_exactly(on, device):
    x = torch.tensor([2**62 + 1, 5], device=device)
    for n in (2**62 + 1, 2**53 + 1):
        assert runs_ours(torch.bitwise_xor, x, n)
        assert torch.equal(x ^ n, torch.tensor([(2**62 + 1) ^ n, 5 ^ n], device=device))
        assert torch.equal(torch.bitwise_xor(x, torch.tensor(n)), x ^ n)
    assert torch.equal(pointwise.bitwise_xor(x, torch.tensor(2**53 + 1)), x ^ (2**53 + 1))


def test_out_and_in_place(on, device):
    x = torch.randn(3, 4, device=device)
    y = x.clone()
    version = y._version
    assert y.mul_(2) is y and y._version > version
    close(y, x + x, torch.float32)
    out = torch.empty(3, 4, device=device)
    assert runs_ours(lambda: torch.exp(x, out=out))
    close(out, x.double().exp().float(), torch.float32)
    empty = torch.empty(0, device=device)
    assert torch.exp(x, out=empty).shape == x.shape
    F.relu(y, inplace=True)
    close(y, (x + x).clamp(min=0), torch.float32)
    with pytest.raises(RuntimeError, match="broadcast"):
        torch.ones(3, device=device).mul_(x[:, :1])


def test_falls_back(on, device):
    x = torch.randn(3, 4, device=device)
    double = x.double()
    for f in (F.silu, torch.exp, torch.abs):
        assert not runs_ours(f, double)
        close(f(double).float(), f(x), torch.float32)
    assert not runs_ours(torch.exp, x.to(torch.complex64))
    torch.testing.assert_close(torch.exp(x.to(torch.complex64)).real, torch.exp(x))
    assert torch.exp(torch.ones(2, device="meta")).device.type == "meta"
    sparse = (x * (x > 0)).to_sparse()
    close((sparse * 2).to_dense(), sparse.to_dense() * 2, torch.float32)
    close(torch.neg(x.to_sparse_csr()).to_dense(), -x, torch.float32)
    if device == "cpu":
        quantised = torch.quantize_per_tensor(x, 0.1, 10, torch.quint8)
        assert torch.relu(quantised).is_quantized
        nested = torch.nested.nested_tensor([x, x[:2]])
        assert torch.relu(nested).is_nested
    double.mul_(2)
    torch.lerp(double, double, double, out=double)
    F.gelu(double, approximate="tanh")
    torch.where(x > 0, double, double)


def test_every_kind_of_tensor(on, device):
    x = torch.randn(3, 4, device=device)
    wrapped = torch.relu(Wrapped(x))
    assert isinstance(wrapped, Wrapped) and torch.equal(wrapped.inner, x.relu())
    # It has no memory of its own, which torch's kernel would read.
    with torch._C._DisableTorchDispatch(), pytest.raises(RuntimeError, match="must not be null"):
        torch.relu(Wrapped(x))
    jagged = torch.nested.nested_tensor([x, x[:2]], layout=torch.jagged)
    assert torch.equal(torch.relu(jagged).values(), jagged.values().relu())
    fake = torch._subclasses.FakeTensorMode()
    assert torch.relu(fake.from_tensor(x)).shape == x.shape
    assert torch.relu(torch.ones(2, device="meta")).shape == (2,)
    for layout in (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc):
        close(torch.relu(x.to_sparse(layout=layout)).to_dense(), x.relu(), torch.float32)
    torch.testing.assert_close(torch.mul(x.to(torch.complex64), 2j).imag, 2 * x)
    if device != "cpu":
        return
    dense = x.to_mkldnn()
    for f in (torch.relu, torch.sigmoid, torch.tanh, lambda x: torch.mul(x, x), lambda x: torch.relu_(x.clone())):
        close(f(dense).to_dense(), f(x), torch.float32)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval()
    want = model(x)
    close(to_mkldnn(model)(dense).to_dense(), want, torch.float32)
    with torch.no_grad():
        fast = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.script(model)))
        for _ in range(3):
            close(fast(x), want, torch.float32)


def test_lazy_negation(on, device):
    x = torch.randn(4, device=device)
    for f in (torch.exp, torch.Tensor.exp_, lambda y: y.mul_(y), lambda y: torch.mul(y, 2), torch.relu_):
        lazy = torch.complex(x, -x).conj().imag
        assert lazy.is_neg()
        close(f(lazy), f(x.clone()), torch.float32)
    out = torch.zeros(4, dtype=torch.complex64, device=device).conj().imag
    assert torch.exp(x, out=out).is_neg()
    close(out, x.double().exp().float(), torch.float32)


def test_errors_are_torchs(on, device):
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.ones(2, device=device) * torch.ones(3, device=device)
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.ones(2, device=device, dtype=torch.double) * torch.ones(3, device=device, dtype=torch.double)
    with pytest.raises(NotImplementedError):
        F.silu(torch.ones(2, device=device, dtype=torch.int32))
    with pytest.raises(RuntimeError):
        torch.exp(torch.ones(2, device=device), out=torch.ones(2, device=device, dtype=torch.int32))


def test_memory_that_is_shared(on, device):
    """torch judges what is written over operands, or over itself: by its rules, and in its words."""
    x = torch.arange(8.0, device=device)
    for f in (
        lambda: torch.exp(x[:4], out=x[1:5]),
        lambda: torch.mul(x[:4], x[4:], out=x[2:6]),
        lambda: x[:4].mul_(x[1:5]),
        lambda: torch.ones(1, device=device).expand(3).mul_(2),
        lambda: torch.exp(torch.ones(3, device=device), out=torch.ones(1, device=device).expand(3)),
    ):
        with pytest.raises(RuntimeError, match="unsupported operation"):
            f()
    want = x.double().exp().float()
    assert runs_ours(lambda: torch.exp(x, out=x))
    close(x, want, torch.float32)
    # Every second element, between operands: torch looks no closer.
    pairs = torch.arange(8.0, device=device)
    torch.neg(pairs[::2], out=pairs[1::2])
    assert torch.equal(pairs[1::2], -pairs[::2])


def test_remainder_by_zero(on, device):
    x, zero = torch.arange(4, device=device), torch.zeros(4, dtype=torch.int64, device=device)
    if device == "cpu":
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            torch.remainder(x, zero)
    assert torch.equal(torch.remainder(x, zero + 3), x % 3)
    assert torch.remainder(x.float(), zero.float()).isnan().all()


def test_compile_and_vmap(on, device):
    f = torch.compile(lambda x: F.silu(x) * x, fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (3, 5):
        x = torch.randn(n, 4, device=device)
        close(f(x), F.silu(x) * x, torch.float32)
    x = torch.randn(3, 4, device=device)
    close(torch.vmap(F.silu)(x), F.silu(x), torch.float32)


def test_threads(on, device):
    from concurrent.futures import ThreadPoolExecutor

    x = torch.randn(64, 64, device=device)
    want = F.silu(x)
    with ThreadPoolExecutor(8) as pool:
        assert all(torch.equal(y, want) for y in pool.map(lambda _: F.silu(x), range(200)))
