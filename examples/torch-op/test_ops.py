"""Builds nothing: run `cargo build` first, then `python test_ops.py ../target/debug/libtorch_op.so [cuda]`."""

import sys

import pointwise
import torch

device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
mine = pointwise.load(sys.argv[1], "mine")

# Eager, as a function and as an op.
x = torch.randn(4, 6, device=device, requires_grad=True)
y = mine.snake(x, a=0.5)
torch.testing.assert_close(y, x + torch.sin(0.5 * x) ** 2 / 0.5)
torch.testing.assert_close(torch.ops.mine.snake(x, a=0.5), y)

# The gradient, for which nothing was written.
(grad,) = torch.autograd.grad(y.sum(), x)
torch.testing.assert_close(grad, 1 + torch.sin(x))
if device == "cpu":
    torch.autograd.gradcheck(mine.snake, (torch.randn(5, dtype=torch.float64, requires_grad=True),))


# Compiled, with operands that are broadcast and a condition.
def block(x, bias, residual, keep):
    return mine.gelu_add(mine.snake(x), bias, residual, keep)


bias, residual = torch.randn(6, device=device, requires_grad=True), torch.randn(4, 6, device=device)
keep = torch.rand(4, 6, device=device) > 0.5
compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
for a, b in zip(
    torch.autograd.grad(compiled(x, bias, residual, keep).sum(), (x, bias)),
    torch.autograd.grad(block(x, bias, residual, keep).sum(), (x, bias)),
):
    torch.testing.assert_close(a, b)
torch.library.opcheck(torch.ops.mine.gelu_add.default, (x, bias, residual, keep))

# Halves of one tensor, or two tensors.
x = torch.randn(3, 8, device=device, requires_grad=True)
gate, value = x.chunk(2, dim=-1)
expected = torch.nn.functional.silu(gate) * (value + 1)
for y in (mine.silu_gate(x), mine.silu_gate_pair(gate, value), torch.compile(mine.silu_gate, backend="aot_eager")(x)):
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(*(torch.autograd.grad(z.sum(), x, retain_graph=True)[0] for z in (y, expected)))
torch.library.opcheck(torch.ops.mine.silu_gate.default, (x,))

# The result is kept for the gradient, not the operand.
x = torch.randn(3, 8, device=device, requires_grad=True)
kept = []
with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
    y = mine.logistic(x)
assert [t.data_ptr() for t in kept] == [y.data_ptr()]
for z in (y, torch.compile(mine.logistic, backend="aot_eager", fullgraph=True)(x)):
    torch.testing.assert_close(torch.autograd.grad(z.sum(), x)[0], torch.autograd.grad(x.sigmoid().sum(), x)[0])
slopes = torch.vmap(torch.func.grad(lambda x: mine.logistic(x).sum()))(x.detach())
torch.testing.assert_close(slopes, y.detach() * (1 - y.detach()))
_, tangent = torch.func.jvp(mine.logistic, (x.detach(),), (torch.ones_like(x),))
torch.testing.assert_close(tangent, slopes)
torch.library.opcheck(torch.ops.mine.logistic.default, (x,))

# A scale and a shift for each channel, which is dimension 1.
x = torch.randn(2, 3, 5, device=device, requires_grad=True)
scale, shift = (torch.randn(n, device=device, requires_grad=True) for n in (3, 1))
y, expected = mine.affine(x, scale, shift), x * scale[:, None] + shift
torch.testing.assert_close(y, expected)
for a, b in zip(*(torch.autograd.grad((z * z).sum(), (x, scale, shift)) for z in (y, expected))):
    torch.testing.assert_close(a, b)
torch.library.opcheck(torch.ops.mine.affine.default, (x, scale, shift))
many = torch.randn(4, 2, 3, 5, device=device)
every = torch.vmap(mine.affine, in_dims=(0, None, None))(many, scale, shift)
torch.testing.assert_close(every, many * scale[:, None] + shift)

# Made of its indices.
mask = mine.sliding_window((6, 6), window=2, fill=-1.0, device=device)
expected = torch.ones(6, 6, device=device).tril().triu(-1) - 1
torch.testing.assert_close(mask, expected)
compiled = torch.compile(lambda n: mine.sliding_window((n, n), device=device), fullgraph=True, backend="aot_eager")
assert compiled(5).shape == (5, 5)

# Indices beside operands, of any strides.
score = torch.randn(2, 3, 5, 5, device=device).transpose(-1, -2).requires_grad_()
slope = torch.tensor([0.5, 0.25, 0.125], device=device).view(3, 1, 1).requires_grad_()
back = torch.arange(5, device=device)[:, None] - torch.arange(5, device=device)
expected = (score - slope * back).masked_fill(back < 0, -torch.inf)
for y in (mine.causal_scores(score, slope), torch.compile(mine.causal_scores, backend="aot_eager")(score, slope)):
    torch.testing.assert_close(y, expected)
    for a, b in zip(*(torch.autograd.grad(z.tril().sum(), (score, slope), retain_graph=True) for z in (y, expected))):
        torch.testing.assert_close(a, b)
assert mine.causal_scores(score, slope).is_contiguous()
torch.library.opcheck(torch.ops.mine.causal_scores.default, (score, slope))
torch.testing.assert_close(torch.vmap(mine.causal_scores, in_dims=(0, None))(score, slope), expected)
try:
    torch.vmap(mine.causal_scores)(score[0, 0].detach(), slope[:1, 0].expand(5, 1).detach())
    raise AssertionError("a batch of rows must be refused")
except NotImplementedError as error:
    assert "indices of its elements" in str(error)
if device == "cpu":
    double = score.detach().double()
    torch.testing.assert_close(mine.causal_scores(double, slope.detach().double()), expected.detach().double())

# A sample keeps its branch, or all of it is left out; the gradient draws the same words.
branch = torch.ones(64, 3, 5, 7, device=device, requires_grad=True)
for drop_path in (mine.drop_path, torch.compile(mine.drop_path, backend="aot_eager")):
    torch.manual_seed(3)
    y = drop_path(torch.zeros_like(branch), branch, p=0.5)
    samples = y.detach().flatten(1)
    assert (samples == samples[:, :1]).all() and set(samples.unique().tolist()) == {0.0, 2.0}
    torch.testing.assert_close(torch.autograd.grad(y.sum(), branch)[0], y.detach())
if device == "cpu":
    torch.manual_seed(3)
    torch.testing.assert_close(mine.drop_path(torch.zeros(64, 105).double(), torch.ones(64, 105).double(), p=0.5).float(), samples)
try:
    torch.vmap(mine.drop_path, randomness="different")(branch.detach(), branch.detach())
    raise AssertionError("words of samples must be refused")
except NotImplementedError as error:
    assert "each sample" in str(error)

# Rows that are groups of the last dimension: fp8 with a scale for each, and back.
x = torch.randn(2, 3, 512, device=device)
q, scale = mine.group_quantised(x)
expected = (x.unflatten(-1, (4, 128)).abs().amax(-1) / 448).clamp_min(1e-12)
assert q.shape == x.shape and q.dtype == torch.float8_e4m3fn and scale.dtype == torch.float32
torch.testing.assert_close(scale, expected)
torch.testing.assert_close(mine.group_dequantised(q, scale), x, rtol=1 / 16, atol=1e-3)
compiled = torch.compile(mine.group_quantised, backend="aot_eager", fullgraph=True)
for call in (compiled, torch.vmap(mine.group_quantised)):
    for a, b in zip(call(x), (q, scale)):
        torch.testing.assert_close(a.float(), b.float(), rtol=0, atol=0)
scales = torch.vmap(mine.group_dequantised, in_dims=(None, 0))(q[0], torch.stack((scale[0], 2 * scale[0])))
torch.testing.assert_close(scales[1], 2 * scales[0])
for wrong in (torch.randn(3, 100, device=device), torch.randn((), device=device)):
    for call in (mine.group_quantised, torch.compile(mine.group_quantised, backend="aot_eager")):
        try:
            call(wrong)
            raise AssertionError("a last dimension that is no multiple must be refused")
        except RuntimeError as error:
            assert "multiple of 128" in str(error), error
# torch compares no fp8, as `test_schema` does.
utils = ("test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
torch.library.opcheck(torch.ops.mine.group_dequantised.default, (q, scale), test_utils=utils)

# And their gradients: a weight for each element of the last dimension.
x = torch.randn(4, 5, 96, device=device, requires_grad=True)
weight = torch.randn(96, device=device, requires_grad=True)
rms = (x.unflatten(-1, (3, 32)).square().mean(-1) + 1e-6).sqrt()
expected = (x.unflatten(-1, (3, 32)) / rms[..., None]).flatten(-2) * weight, rms
of_y, of_rms = torch.randn_like(expected[0]), torch.randn_like(rms)
for call in (mine.group_rms_norm, torch.compile(mine.group_rms_norm, backend="aot_eager", fullgraph=True)):
    results = call(x, weight)
    for a, b in zip(results, expected):
        torch.testing.assert_close(a, b)
    for which in ((of_y, of_rms), (of_y, None), (None, of_rms)):
        both = [
            torch.autograd.grad(
                [(y * g).sum() for y, g in zip(ys, which) if g is not None],
                (x, weight),
                retain_graph=True,
                allow_unused=True,
            )
            for ys in (results, expected)
        ]
        for a, b in zip(*both):
            torch.testing.assert_close(a, torch.zeros_like(a) if b is None else b, rtol=1e-4, atol=1e-5)
slopes = torch.vmap(torch.func.grad(lambda x, w: mine.group_rms_norm(x, w)[0].sum(), argnums=(0, 1)), in_dims=(0, None))
every = slopes(x.detach(), weight.detach())
for k, row in enumerate(x.detach()):
    row.requires_grad_()
    y = mine.group_rms_norm(row, weight)[0].sum()
    for a, b in zip((every[0][k], every[1][k]), torch.autograd.grad(y, (row, weight))):
        torch.testing.assert_close(a, b)
torch.library.opcheck(torch.ops.mine.group_rms_norm.default, (x, weight))
print("the ops work")
