"""The parts that only CUDA has: graphs, streams, several devices, and memory of other libraries there."""

import pytest
import torch

import pointwise


@pytest.fixture(autouse=True)
def cuda(device):
    if device != "cuda":
        pytest.skip("needs --device cuda")


@pytest.fixture
def two():
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two GPUs")


def test_graph_replays(device):
    """A replay reads what its operands hold by then."""
    x = torch.randn(2, 5, 4, 8, device=device)
    cos, sin = (torch.rand(5, 4, device=device) for _ in range(2))

    def f(x):
        return pointwise.rope(pointwise.add(pointwise.silu(x), 1.5), None, cos, sin)[0]

    f(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = f(x)
    for _ in range(3):
        x.normal_()
        graph.replay()
        assert torch.equal(y, f(x))


def test_graph_of_rows_that_are_turned(device):
    """Operands are copied where the elements of a row do not lie one after another: a capture takes the copies from torch."""
    x = torch.randn(96, 64, device=device).T.requires_grad_()
    weight = torch.rand(192, device=device)[::2].requires_grad_()
    grad = torch.randn(96, 64, device=device).T
    # More dimensions than a kernel takes: no two are one, so that the copy is made in parts.
    deep = torch.randn((2,) * 10, device=device).permute(*reversed(range(10)))

    def f():
        y = pointwise.rms_norm(x, weight)
        grads = torch.autograd.grad(y, (x, weight), grad)
        return y.detach(), *grads, pointwise.softmax(x.detach()), pointwise.softmax(deep)

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        f()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = f()
    for _ in range(3):
        with torch.no_grad():
            for tensor in (x, weight, grad, deep):
                tensor.normal_()
        graph.replay()
        for one, two in zip(got, f()):
            assert torch.equal(one, two)


def test_dropout_draws_anew_at_each_replay(device):
    x = torch.ones(4096, device=device, requires_grad=True)

    def f():
        y = pointwise.dropout(x, 0.25)
        return y, torch.autograd.grad(y.sum(), x)[0]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        f()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y, grad = f()
    masks = []
    for _ in range(3):
        graph.replay()
        # The gradient has the mask of its replay.
        assert torch.equal(y.detach(), grad)
        masks.append(y.detach().clone())
    for k, mask in enumerate(masks):
        assert 0.2 < (mask == 0).float().mean() < 0.3
        assert not any(torch.equal(mask, other) for other in masks[:k])
    # The seed of torch's generator decides.
    torch.manual_seed(3)
    graph.replay()
    first = y.detach().clone()
    torch.manual_seed(3)
    graph.replay()
    assert torch.equal(first, y)


def test_dropout_compiled_to_graphs(device):
    torch._dynamo.reset()
    f = torch.compile(lambda x: pointwise.dropout(x, 0.25), mode="reduce-overhead", fullgraph=True)
    x = torch.ones(4096, device=device)
    masks = []
    for _ in range(5):
        torch.compiler.cudagraph_mark_step_begin()
        masks.append(f(x).clone())
    for k, mask in enumerate(masks):
        assert 0.2 < (mask == 0).float().mean() < 0.3
        assert not any(torch.equal(mask, other) for other in masks[:k])
    torch._dynamo.reset()


def test_dropout_seed_on_either_side(device):
    """The mask of a seed is the same wherever the seed lies, and on the CPU."""
    x, seed = torch.randn(1000, device=device), torch.tensor([5, 6])
    drop = torch.ops.pointwise_kernels.dropout
    want = drop(x.cpu(), 0.5, seed)
    assert torch.equal(drop(x, 0.5, seed).cpu(), want)
    assert torch.equal(drop(x, 0.5, seed.to(device)).cpu(), want)
    with pytest.raises(RuntimeError):
        drop(x.cpu(), 0.5, seed.to(device))
    with pytest.raises(RuntimeError, match="int64 tensor of 2"):
        drop(x, 0.5, torch.zeros(3, dtype=torch.int64, device=device))


def test_dlpack(device):
    """Without torch's functions: an array of pointwise and a tensor share memory of the device."""
    x = torch.randn(100, device=device)
    array = pointwise.arrays.silu(x)
    y = torch.from_dlpack(array)
    assert y.is_cuda
    assert torch.equal(y, pointwise.silu(x))
    torch.testing.assert_close(pointwise.add(y, x), torch.nn.functional.silu(x) + x)


def test_wrong_devices(device):
    x, y = torch.randn(5, device=device), torch.randn(5)
    for call in (
        lambda: pointwise.add(x, y),
        lambda: pointwise.add(y, x),
        lambda: pointwise.silu(x, out=torch.empty(5)),
        lambda: pointwise.where(torch.ones(5, dtype=torch.bool), x, x),
    ):
        with pytest.raises(RuntimeError, match="same device"):
            call()
    # A number in a tensor may be on the CPU.
    torch.testing.assert_close(pointwise.add(x, torch.tensor(2.0)), x + 2)


def test_two_devices(two):
    a, b = (torch.randn(1000, device=f"cuda:{k}") for k in range(2))
    assert torch.cuda.current_device() == 0
    for x in (a, b, a, b):
        y = pointwise.silu(x)
        assert y.device == x.device
        torch.testing.assert_close(y, torch.nn.functional.silu(x))
        # The current device is as it was.
        assert torch.cuda.current_device() == 0
        assert pointwise.dropout(x, 0.5).device == x.device
        pointwise.override()
        assert torch.nn.functional.silu(x).device == x.device
        pointwise.override(False)
    with pytest.raises(RuntimeError, match="same device"):
        pointwise.add(a, b)
    with torch.cuda.device(1):
        torch.testing.assert_close(pointwise.exp(a), torch.exp(a))
        assert torch.cuda.current_device() == 1
