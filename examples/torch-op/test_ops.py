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
print("snake and gelu_add work")
