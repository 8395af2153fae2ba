"""Random programs compiled by the backend `pointwise`: views, `cat`, slices, reductions, and mutations of inputs through views.

A program is a list of numbers. What AOTAutograd alone makes another result of than eager is no fault of the backend.
"""

import random

import pytest
import torch
import torch.nn.functional as F
from torch.utils._pytree import tree_leaves

from pointwise import _compile

# The last added a slice's gradient to itself.
SEEDS, MANY_SEEDS = [*range(40), 746], 2000


def pytest_generate_tests(metafunc):
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(MANY_SEEDS) if metafunc.config.getoption("--all") else SEEDS)


class Choices:
    """Numbers in turn: torch.compile traces no `random.Random`."""

    def __init__(self, numbers):
        self.numbers, self.at = numbers, 0

    def below(self, n):
        self.at += 1
        return self.numbers[self.at] % n

    def of(self, items):
        return items[self.below(len(items))]


def _cat(x, y, dim):
    return x if x.numel() > 400 else torch.cat([x, y] if y.shape == x.shape else [x, x * 2], dim)


def _half(x, dim, k):
    half = x.shape[dim] // 2
    return x.narrow(dim, k * half, half) if half else x


def _rotated(x, dim):
    y = torch.cat([-_half(x, dim, 1), _half(x, dim, 0)], dim)
    return x * 0.5 + y * 0.25 if y.shape == x.shape else y


# Ops on two tensors, a row, a matrix and two numbers.
OPS = [
    lambda x, y, row, matrix, a, b: x + (y if y.shape == x.shape else 1),
    lambda x, y, row, matrix, a, b: x * (y if y.shape == x.shape else 0.5),
    lambda x, y, row, matrix, a, b: torch.relu(x) - 0.25,
    lambda x, y, row, matrix, a, b: x.sigmoid(),
    lambda x, y, row, matrix, a, b: _half(x, a % x.dim(), b % 2),
    lambda x, y, row, matrix, a, b: _cat(x, y, a % x.dim() - x.dim()),
    lambda x, y, row, matrix, a, b: _rotated(x, a % x.dim() - x.dim()),
    lambda x, y, row, matrix, a, b: x.transpose(a % x.dim(), b % x.dim()),
    lambda x, y, row, matrix, a, b: x * row if x.shape[-1] == row.shape[-1] else x * 2,
    lambda x, y, row, matrix, a, b: torch.softmax(x, -1),
    lambda x, y, row, matrix, a, b: x.reshape(-1).reshape(x.shape) if a % 2 else F.pad(x, (0, x.shape[-1])),
    lambda x, y, row, matrix, a, b: x @ matrix[: x.shape[-1], : x.shape[-1]] if x.shape[-1] <= 64 else x,
    lambda x, y, row, matrix, a, b: F.layer_norm(x, x.shape[-1:]),
]


def _fits(x, y):
    return y if y.shape == x.shape else y.new_full(x.shape, 0.5)


# Mutations of an input.
WRITES = [
    lambda x, y, a: x.add_(y if y.shape == x.shape else 0.125),
    lambda x, y, a: x.index_copy_(1, torch.arange(2, device=x.device), _fits(x, y)[:, a % 2 : a % 2 + 2]),
    lambda x, y, a: x[:, 1:3].copy_(_fits(x, y)[:, :2]),
    lambda x, y, a: x[a % 4].copy_(_fits(x, y)[0]),
    lambda x, y, a: x[1].index_copy_(0, torch.arange(2, device=x.device), _fits(x, y)[0, :2]),
    lambda x, y, a: x.index_copy(1, torch.arange(2, device=x.device), x[:, 2:] * 2),
    lambda x, y, a: x.copy_(_fits(x, y).flip(0)),
    lambda x, y, a: x.copy_(x.index_copy(1, torch.arange(2, device=x.device), x[:, 2:] * 2)),
    lambda x, y, a: x[..., ::2].mul_(0.5),
    lambda x, y, a: x.transpose(0, 1)[1:3].copy_(_fits(x, y)[:2]),
]


def program(numbers, count, writes):
    def run(x, y, z, row, matrix):
        choices = Choices(numbers)
        pool = [x, y, z]
        for _ in range(count):
            k = choices.below(len(OPS) + (len(WRITES) if writes else 0))
            first, second = choices.of(pool[-5:]), choices.of(pool)
            a, b = choices.below(8), choices.below(8)
            if k < len(OPS):
                pool.append(OPS[k](first, second, row, matrix, a, b))
            else:
                pool.append(WRITES[k - len(OPS)](choices.of([x, y]), first, a))
        return choices.of(pool), choices.of(pool), *pool[-2:]

    return run


def _outcome(call, given, grad):
    """Returns results, gradients and operands, and the results once more when operands have changed."""
    given = [x.clone().requires_grad_(grad) for x in given]
    with torch.set_grad_enabled(grad):
        results = call(*given)
    if not grad:
        copies = [x.clone() for x in results]
        given[0].mul_(3), given[1].sub_(1)
        return copies, list(results), given
    sources = [x for x in results if x.requires_grad]
    total = sum((x * x).sum() for x in sources)
    return results, torch.autograd.grad(total, given, allow_unused=True) if sources else (), given


def _differ(ours, theirs):
    for a, b in zip(tree_leaves(ours), tree_leaves(theirs), strict=True):
        if a is not None and b is not None:
            if a.stride() != b.stride():
                return f"strides {a.stride()} and {b.stride()}"
            if not torch.allclose(a, b, rtol=2e-4, atol=2e-4, equal_nan=True):
                return f"values of {tuple(a.shape)}"
    return None


def test_random_programs(number, device):
    # A quarter each: two with mutations, one with gradients, one with neither.
    kind, drawn = number % 4, random.Random(number)
    numbers = [drawn.randrange(1 << 20) for _ in range(400)]
    f = program(numbers, drawn.randrange(4, 16), kind < 2)
    torch.manual_seed(number)
    given = [torch.randn(4, 4, 8, device=device) for _ in range(3)]
    if number % 5 == 4:
        given[0] = torch.randn(4, 8, 4, device=device).transpose(1, 2)
    given += [torch.randn(8, device=device), torch.randn(64, 64, device=device) * 0.3]
    try:
        wanted = _outcome(f, given, kind == 2)
    except RuntimeError:
        pytest.skip("eager refuses it")
    torch._dynamo.reset()
    found = _differ(_outcome(torch.compile(f, backend=_compile.backend, dynamic=False), given, kind == 2), wanted)
    if found:
        torch._dynamo.reset()
        theirs = _differ(_outcome(torch.compile(f, backend="aot_eager", dynamic=False), given, kind == 2), wanted)
        assert theirs, found
