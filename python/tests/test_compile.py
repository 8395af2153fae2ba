"""torch.library.opcheck of every op, torch.compile, torch.export, AOTInductor."""

import shutil
import subprocess
import sys

import pointwise
import pytest
import torch
import torch._dynamo.testing
from pointwise import _signatures
from pointwise._torch_ops import CALLS
from reference import operands
from torch._subclasses.fake_tensor import FakeTensorMode

NAMES = [name for name, call in CALLS.items() if call.op.operands]


def arguments(name, device, grad):
    """Operands and parameters of an op."""
    op = CALLS[name].op
    dtype = torch.float32 if "float32" in op.dtypes else torch.int32
    args = [
        x.requires_grad_() if grad and x.is_floating_point() else x for x in operands(op, dtype, device, (2, 4), True)
    ]
    params = [{"clamp": {"min": 0.2, "max": 0.7}}.get(name, {}).get(p.name, p.default) for p in op.params]
    return args, params, op


@pytest.mark.parametrize("name", NAMES)
def test_opcheck_inner(name, device):
    args, params, op = arguments(name, device, False)
    seed = [torch.tensor([5, 6])] if op.random else []
    kernels = getattr(torch.ops.pointwise_kernels, name)
    torch.library.opcheck(kernels.default, (*args, *params, *seed))
    like = kernels.default(*args, *params, *seed)
    names = [f"out_{r.name}" for r in op.results] if len(op.results) > 1 else ["out"]
    outs = {n: torch.empty_like(t) for n, t in zip(names, like if isinstance(like, tuple) else (like,))}
    torch.library.opcheck(kernels.out, (*args, *params, *seed), outs)
    for k, operand in enumerate(op.operands):
        if operand.takes_number:
            some = [0.5 if j == k else a for j, a in enumerate(args)]
            if op.name.startswith("bitwise"):
                some[k] = 1.0
            torch.library.opcheck(getattr(kernels, f"number_{operand.name}"), (*some, *params))


@pytest.mark.parametrize("name", NAMES)
def test_opcheck_public(name, device):
    grad = CALLS[name].has_gradient and not name.endswith("_backward")
    args, params, op = arguments(name, device, grad)
    params = [] if name in _signatures.COMPOSITE or name in ("add", "sub") else params
    overload = getattr(torch.ops.pointwise, name)
    overload = overload.Scalar_min_max if name == "clamp" else overload.default
    if op.random and not name.endswith("_backward"):
        # Two runs draw two masks: schema and fake are what can be compared.
        torch.library.opcheck(overload, tuple(args), test_utils=("test_schema", "test_faketensor"))
        return
    if op.rows:
        # Parameters are given by name.
        torch.library.opcheck(overload, tuple(args), {p.name: value for p, value in zip(op.params, params)})
        return
    extra = (0.2, 0.7) if name == "clamp" else (torch.tensor([5, 6]),) if op.random else ()
    torch.library.opcheck(
        overload, (*args, *([] if name == "clamp" or op.random else params), *((0.5,) if op.random else ()), *extra)
    )


def model(x, w, b):
    h = pointwise.silu_and_mul(x @ w)
    h = pointwise.gelu(pointwise.add(h, b))
    return pointwise.mul(pointwise.where(h > 0, h, 0.1), 2).square().mean()


def model_args(device):
    torch.manual_seed(0)
    return [torch.randn(s, device=device, requires_grad=True) for s in ((8, 16), (16, 32), (16,))]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compile(backend, device):
    if backend == "inductor" and device == "cpu" and not shutil.which("g++"):
        pytest.skip("inductor needs a C++ compiler")
    args = model_args(device)
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    ours, eager = compiled(*args), model(*args)
    torch.testing.assert_close(ours, eager)
    for a, b in zip(torch.autograd.grad(ours, args), torch.autograd.grad(eager, args)):
        torch.testing.assert_close(a, b)
    with torch.no_grad():
        torch.testing.assert_close(compiled(*args), eager)


def test_compile_dynamic(device):
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    options = {"fullgraph": True, "dynamic": True}
    f = torch.compile(lambda x, y: pointwise.add(pointwise.silu(x), y, alpha=2), backend=counter, **options)
    # A size as a number: torch may compile once for each.
    g = torch.compile(lambda x: pointwise.mul(x, x.shape[0]), backend="aot_eager", **options)
    for n in (3, 5, 9):
        x, y = torch.randn(n, 4, device=device), torch.randn(4, device=device)
        torch.testing.assert_close(f(x, y), torch.nn.functional.silu(x) + 2 * y)
        torch.testing.assert_close(g(x), x * n)
    assert counter.frame_count == 1


def test_compile_mutation_random_and_types(device):
    def f(x, n):
        y = x.clone()
        pointwise.mul_(y, 3)
        pointwise.silu(y, inplace=True)
        out = torch.empty_like(y)
        pointwise.exp(y, out=out)
        return out, pointwise.add(x, n), pointwise.clamp(x, max=1), pointwise.alibi(2, 4), pointwise.dropout(x, 0.0)

    x, n = torch.randn(3, 4, device=device), torch.arange(4, device=device)
    compiled = torch.compile(f, fullgraph=True, backend="aot_eager")
    for a, b in zip(compiled(x, n), f(x, n)):
        torch.testing.assert_close(a, b)
    g = torch.compile(lambda x: pointwise.dropout(x), fullgraph=True, backend="aot_eager")
    z = torch.ones(1000, device=device, requires_grad=True)
    y = g(z)
    y.sum().backward()
    assert torch.equal(y.detach(), z.grad) and 300 < (y == 0).sum() < 700
    assert not torch.equal(g(z), g(z))


def test_fakes_refuse(device):
    """Tensors without data are refused as the kernels refuse them: meta tensors, and fake ones of two devices."""
    meta = torch.empty(3, 5, device="meta")
    x = torch.randn(3, 5, device=device)
    for call in (
        lambda: pointwise.add(meta, x),
        lambda: pointwise.where(x > 0, meta, meta),
        lambda: pointwise.silu_and_mul_backward(torch.empty(3, 2, device="meta"), torch.randn(3, 4, device=device)),
    ):
        with pytest.raises(RuntimeError, match="same device"):
            call()
    for odd in (meta, torch.empty((), device="meta")):
        with pytest.raises(RuntimeError, match="must be even"):
            pointwise.silu_and_mul(odd)
    assert pointwise.mul(meta, torch.tensor(2.0)).device.type == "meta"
    with FakeTensorMode():
        a, b = torch.empty(3, 4), torch.empty(3, 4, device="cuda")
        with pytest.raises(RuntimeError, match="same device"):
            pointwise.add(a, b)
        assert pointwise.add(torch.empty(()), b).device.type == "cuda"
        with pytest.raises(RuntimeError, match="must be even"):
            pointwise.silu_and_mul(torch.empty(3, 5))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(16, 64)

    def forward(self, x):
        return pointwise.add(pointwise.silu_and_mul(self.up(x)), 1.5)


def test_export(device):
    block, x = Block().to(device), torch.randn(4, 16, device=device)
    rows = torch.export.Dim("rows")
    program = torch.export.export(block, (x,), dynamic_shapes={"x": {0: rows}})
    y = torch.randn(7, 16, device=device)
    torch.testing.assert_close(program.module()(y), block(y))
    names = {str(node.target) for node in program.run_decompositions().graph.nodes}
    assert "pointwise_kernels.silu_and_mul.default" in names


_PACKAGED = """
import sys, warnings
import torch
import pointwise

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(16, 64)

    def forward(self, x):
        if ops == "torch":
            return torch.nn.functional.silu(self.up(x)) + 1.5
        return pointwise.add(pointwise.silu_and_mul(self.up(x)), 1.5)

device, path, ops = sys.argv[1:]
warnings.simplefilter("ignore")
block, x = Block().to(device), torch.randn(4, 16, device=device)
with torch.no_grad():
    torch._inductor.aoti_compile_and_package(torch.export.export(block, (x,)), package_path=path)
    loaded = torch._inductor.aoti_load_package(path)
    for _ in range(3):
        x = torch.randn(4, 16, device=device)
        torch.testing.assert_close(loaded(x), block(x))
"""


def test_aot_inductor(device, tmp_path):
    """In a process of its own: code that crashes takes no other test with it, and says where."""
    if not shutil.which("g++"):
        pytest.skip("AOTInductor needs a C++ compiler")

    def run(ops):
        path = str(tmp_path / f"{ops}.pt2")
        command = [sys.executable, "-X", "faulthandler", "-c", _PACKAGED, device, path, ops]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path)

    done = run("pointwise")
    if done.returncode < 0 and run("torch").returncode < 0:
        pytest.skip("this PyTorch's AOTInductor crashes with its own ops, too")
    assert done.returncode == 0, done.stderr[-6000:]
