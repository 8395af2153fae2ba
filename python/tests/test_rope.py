"""Rotary embedding: values, gradients, compile and vmap."""

import pointwise
import pytest
import torch


def rotate(x, cos, sin, interleaved=False):
    """The rotation of [.., sequence, heads, lanes] by tables [sequence, lanes / 2]."""
    cos, sin = cos[:, None, :], sin[:, None, :]
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)
    a, b = x.chunk(2, -1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


@pytest.fixture
def tables(device):
    angles = torch.arange(16.0)[:, None] / 10000 ** (torch.arange(0, 8, 2) / 8)
    return angles.cos().to(device), angles.sin().to(device)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("pairs", ["half", "interleaved"])
def test_values(device, tables, dtype, pairs):
    q, k = torch.randn(2, 5, 3, 8, device=device, dtype=dtype), torch.randn(2, 5, 1, 8, device=device, dtype=dtype)
    cos, sin = tables
    for got, x in zip(pointwise.rope(q, k, cos, sin, pairs=pairs), (q, k)):
        want = rotate(x.double(), cos[:5].double(), sin[:5].double(), pairs == "interleaved").to(dtype)
        torch.testing.assert_close(got, want)
    got, none = pointwise.rope(q, None, cos, sin, pairs=pairs, offset=4)
    assert none is None
    torch.testing.assert_close(
        got, rotate(q.double(), cos[4:9].double(), sin[4:9].double(), pairs == "interleaved").to(dtype)
    )


def test_layouts_and_ids(device, tables):
    cos, sin = tables
    q = torch.randn(2, 5, 3, 8, device=device)
    want = rotate(q, cos[:5], sin[:5])
    heads_first = q.transpose(1, 2)
    got, _ = pointwise.rope(heads_first, None, cos, sin, layout="bhsd")
    assert got.stride() == heads_first.stride()
    torch.testing.assert_close(got.transpose(1, 2), want)
    ids = torch.tensor([[4, 3, 2, 1, 0], [5, 6, 7, 8, 9]], device=device)
    got, _ = pointwise.rope(q, None, cos, sin, ids)
    for b in range(2):
        torch.testing.assert_close(got[b], rotate(q[b], cos[ids[b]], sin[ids[b]]))
    # Hugging Face's tables: all lanes, a row for each token.
    wide = [torch.cat((t, t), -1)[:5].expand(2, 5, 8) for t in tables]
    torch.testing.assert_close(pointwise.rope(q, None, *wide)[0], want)
    some, _ = pointwise.rope(torch.cat((q, q), -1), None, cos, sin, rotary_dim=8, rotated_lanes="trail")
    torch.testing.assert_close(some, torch.cat((q, want), -1))


def test_gradients(device, tables):
    cos, sin = tables
    q, k = (torch.randn(2, 5, h, 8, device=device, requires_grad=True) for h in (3, 1))
    w = torch.randn(2, 5, 3, 8, device=device)
    a, b = pointwise.rope(q, k, cos, sin)
    ours = torch.autograd.grad((a * w).sum() + b.square().sum(), (q, k), create_graph=True)
    theirs = torch.autograd.grad(
        (rotate(q, cos[:5], sin[:5]) * w).sum() + rotate(k, cos[:5], sin[:5]).square().sum(), (q, k)
    )
    for x, y in zip(ours, theirs):
        torch.testing.assert_close(x, y)
    # Its gradient is the rotation itself: the second derivative of the square is 2.
    torch.testing.assert_close(torch.autograd.grad(ours[1].sum(), k)[0], torch.full_like(k, 2.0))
    with pytest.raises(RuntimeError, match="detach"):
        pointwise.rope(q, k, cos.clone().requires_grad_(), sin)


def test_torch_func(device, tables):
    cos, sin = tables
    q = torch.randn(4, 2, 5, 3, 8, device=device)

    def f(q):
        return pointwise.rope(q, None, cos, sin)[0]

    torch.testing.assert_close(torch.vmap(f)(q), torch.stack([f(x) for x in q]))
    torch.testing.assert_close(torch.vmap(f, in_dims=1)(q), torch.stack([f(x) for x in q.unbind(1)]))
    grad = torch.vmap(torch.func.grad(lambda x: f(x).square().sum()))(q)
    torch.testing.assert_close(grad, 2 * q)


def test_named(device):
    q, k = torch.randn(2, 5, 3, 8, device=device), torch.randn(2, 5, 1, 8, device=device)
    angles = torch.arange(5.0)[:, None] / 10000 ** (torch.arange(0, 8, 2) / 8)
    a, b = pointwise.rope_neox(q, k)
    torch.testing.assert_close(a, rotate(q, angles.cos().to(device), angles.sin().to(device)))
    torch.testing.assert_close(b, rotate(k, angles.cos().to(device), angles.sin().to(device)))
    a, _ = pointwise.rope_non_neox(q, None, torch.arange(5, device=device))
    torch.testing.assert_close(a, rotate(q, angles.cos().to(device), angles.sin().to(device), True))
    assert not torch.equal(pointwise.rope_llama31(q, rope_theta=500000, factor=8.0)[0], q)
    assert not torch.equal(pointwise.rope_longrope(q, short_factor=[1, 1, 2, 2])[0], pointwise.rope_neox(q)[0])
    with pytest.raises(ValueError):
        pointwise.rope_yarn(q, no_such_setting=1)


def test_compile_and_opcheck(device, tables):
    cos, sin = tables
    q, k = (torch.randn(2, 5, h, 8, device=device, requires_grad=True) for h in (3, 1))
    torch.library.opcheck(torch.ops.pointwise.rope.default, (q, k, cos, sin))
    torch.library.opcheck(torch.ops.pointwise_kernels.rope_one.default, (
        q.detach().transpose(1, 2), cos, sin, None, 0, None, "bhsd", "half", "lead", 1.0, 1.0, False,
    ))  # fmt: skip
    f = torch.compile(lambda q, k: pointwise.rope(q, k, cos, sin), fullgraph=True, backend="aot_eager")
    for got, want in zip(f(q, k), pointwise.rope(q, k, cos, sin)):
        torch.testing.assert_close(got, want)
    g = torch.compile(lambda q: pointwise.rope_neox(q)[0], fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(g(q), pointwise.rope_neox(q)[0])


def test_errors(device, tables):
    cos, sin = tables
    q = torch.randn(2, 5, 3, 8, device=device)
    with pytest.raises(TypeError):
        pointwise.rope(q, None, 1, sin)
    with pytest.raises(RuntimeError):
        pointwise.rope(q, None, cos[:, :3], sin)
    with pytest.raises(RuntimeError):
        pointwise.rope(q, None, cos, sin, layout="dhsb")
    with pytest.raises(NotImplementedError):
        pointwise.rope(q.double(), None, cos, sin)
    if device == "cpu":
        with pytest.raises(RuntimeError):
            pointwise.rope(q, None, cos, sin, offset=100)


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("name", ["q", "k", "cos", "sin", "position_ids"])
def test_out_is_apart(device, name, which):
    """A call refuses to write to memory that it also reads."""
    outs = [torch.ones(1, 2, 1, 2, device=device) for _ in "qk"]
    shared = outs[which].view(-1)
    given = {
        "q": torch.ones(1, 2, 1, 2, device=device),
        "k": torch.ones(1, 2, 1, 2, device=device),
        "cos": torch.ones(2, 1, device=device),
        "sin": torch.ones(2, 1, device=device),
        "position_ids": torch.zeros(2, dtype=torch.int32, device=device),
    }
    settings = 0, None, "bshd", "half", "lead", 1.0, 1.0, False
    op = torch.ops.pointwise_kernels.rope.out
    op(*given.values(), *settings, out_q=outs[0], out_k=outs[1])
    shared.zero_()
    own = given[name]
    given[name] = shared[-own.numel() :].view(own.dtype).view(own.shape)
    with pytest.raises(RuntimeError, match="share no memory"):
        op(*given.values(), *settings, out_q=outs[0], out_k=outs[1])
    assert not shared.any()
