"""Habits of torch beside values: torch.fx, `__torch_function__`, NumPy's numbers, names of nodes and lines."""

import traceback

import numpy
import pytest
import torch
from torch import nn

import pointwise

CALLS = {
    "silu": lambda x, y: pointwise.silu(x),
    "add": lambda x, y: pointwise.add(x, y, alpha=2),
    "mul": lambda x, y: pointwise.mul(2, x),
    "gelu": lambda x, y: pointwise.gelu(x, approximate="tanh"),
    "div": lambda x, y: pointwise.div(x, y, rounding_mode="floor"),
    "round": lambda x, y: pointwise.round(x, decimals=1),
    "clamp": lambda x, y: pointwise.clamp(x, -0.5, max=0.5),
    "clamp by a tensor": lambda x, y: pointwise.clamp(x, max=y),
    "masked_fill": lambda x, y: pointwise.masked_fill(x, y > 0, 0.5),
    "where": lambda x, y: pointwise.where(x > 0, x, y),
    "dropout": lambda x, y: pointwise.dropout(x, 0.0),
    "silu_and_mul": lambda x, y: pointwise.silu_and_mul(x),
    "relu_": lambda x, y: pointwise.relu_(x + 0),
    "clamp_": lambda x, y: pointwise.clamp_(x + 0, 0),
    "masked_fill_": lambda x, y: pointwise.masked_fill_(x + 0, y > 0, 1),
    "dropout_": lambda x, y: pointwise.dropout_(x + 0, 0.0),
}
# Functions that only choose another.
RUN = {"gelu": "gelu_tanh", "div": "floor_divide", "round": "round_decimals"}
TABLES = torch.ones(4, 2), torch.zeros(4, 2)


@pytest.mark.parametrize("name", CALLS)
def test_fx_traces_calls(name):
    class Model(nn.Module):
        def forward(self, x, y):
            return CALLS[name](x, y)

    x, y = torch.randn(4, 4), torch.randn(4, 4)
    traced = torch.fx.symbolic_trace(Model())
    targets = [node.target for node in traced.graph.nodes if getattr(node.target, "__module__", "") == "pointwise"]
    assert [target.__name__ for target in targets] == [RUN.get(name, name.split()[0])]
    torch.testing.assert_close(traced(x, y), CALLS[name](x, y))


def test_fx_traces_rotations():
    class Model(nn.Module):
        def forward(self, q, k):
            one, _ = pointwise.rope(q, None, *TABLES, layout="sd")
            return pointwise.rope(one, k, *TABLES, layout="sd")

    q, k = torch.randn(4, 4), torch.randn(4, 4)
    for got, want in zip(torch.fx.symbolic_trace(Model())(q, k), Model()(q, k)):
        torch.testing.assert_close(got, want)


class Boxed:
    """An object that is no tensor and acts as one."""

    def __init__(self, tensor):
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        plain = lambda x: x.tensor if isinstance(x, Boxed) else x
        return Boxed(function(*map(plain, args), **{k: plain(v) for k, v in (kwargs or {}).items()}))

    def __add__(self, other):
        return Boxed(self.tensor + other)

    def __gt__(self, other):
        return Boxed(self.tensor > other)


@pytest.mark.parametrize("name", CALLS)
def test_what_acts_as_a_tensor(name):
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    got = CALLS[name](Boxed(x), Boxed(y))
    assert isinstance(got, Boxed)
    torch.testing.assert_close(got.tensor, CALLS[name](x, y))
    # Beside a tensor, too, and as what is written to.
    if name == "add":
        assert isinstance(pointwise.add(x, Boxed(y)), Boxed)
        pointwise.add(x, Boxed(y), out=x)


NUMBERS = [numpy.bool_(True), numpy.float16(2), numpy.float64(0.5), numpy.int64(3), numpy.ones(4), numpy.array(2.0)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bool], ids=str)
@pytest.mark.parametrize("value", NUMBERS, ids=repr)
@pytest.mark.parametrize("name", ["add", "mul", "div", "eq", "pow", "masked_fill"])
def test_numbers_of_numpy(name, value, dtype):
    """Taken, and refused, as torch has it."""
    x = torch.tensor([1, 0, 2, 3]).to(dtype)
    if name == "masked_fill":
        calls = [lambda lib: lib.masked_fill(x, x > 1, value)]
    else:
        calls = [lambda lib: getattr(lib, name)(x, value), lambda lib: getattr(lib, name)(x, other=value)]
        calls = calls[:1] if name == "pow" else calls
    for call in calls:
        try:
            want = call(torch)
        except TypeError:
            with pytest.raises(TypeError):
                call(pointwise)
        else:
            if want.dtype in (torch.float64,):
                continue
            torch.testing.assert_close(call(pointwise), want)


def test_the_names_of_nodes():
    x = torch.randn(2, 4, requires_grad=True)
    for result, name in (
        (pointwise.silu(x), "SiluBackward"),
        (pointwise.silu_and_mul(x), "SiluAndMulBackward"),
        (pointwise.rope(x, None, torch.ones(2, 2), torch.zeros(2, 2), layout="sd")[0], "RopeOneBackward"),
    ):
        assert result.grad_fn.name() == name
        assert f"grad_fn=<{name}>" in repr(result)


def test_a_traceback_shows_lines():
    with pytest.raises(TypeError) as raised:
        pointwise.silu("text")
    frames = traceback.extract_tb(raised.tb)
    (frame,) = [frame for frame in frames if frame.name == "silu"]
    assert frame.filename == "<pointwise.silu>" and "CALLS.general" in frame.line


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_whole_quotients_of_16_bits_are_exact(dtype):
    """As docs/torch.md says of what differs from torch."""
    a, b = (torch.randn(1 << 14) * 100).to(dtype), torch.rand(1 << 14).to(dtype)
    b[b == 0] = 1
    for mode in ("trunc", "floor"):
        exact = torch.div(a.double(), b.double(), rounding_mode=mode).to(dtype)
        assert torch.equal(pointwise.div(a, b, rounding_mode=mode), exact)
        assert not torch.equal(torch.div(a, b, rounding_mode=mode), exact)
    exact = torch.remainder(a.double(), b.double()).to(dtype)
    assert torch.equal(pointwise.remainder(a, b), exact)


def test_override_for_a_while_and_for_some_ops():
    x = torch.randn(4)

    def ran(function):
        before = pointwise._native.override_calls()
        function()
        return pointwise._native.override_calls() - before

    silu, relu = (lambda: nn.functional.silu(x)), (lambda: torch.relu(x))
    assert (ran(silu), ran(relu)) == (0, 0)
    with pointwise.override(ops="silu") as covered:
        assert set(covered) == {"aten::silu", "aten::silu_", "aten::silu.out"}
        assert (ran(silu), ran(relu)) == (1, 0)
        assert (ran(lambda: nn.functional.silu(x.clone(), inplace=True))) == 1
        with pointwise.override():
            assert (ran(silu), ran(relu)) == (1, 1)
            with pointwise.override(False):
                assert (ran(silu), ran(relu)) == (0, 0)
            assert (ran(silu), ran(relu)) == (1, 1)
        assert (ran(silu), ran(relu)) == (1, 0)
    assert (ran(silu), ran(relu)) == (0, 0)
    with pytest.raises(ValueError, match="no op 'none'"):
        pointwise.override(ops=["silu", "none"])
    assert ran(silu) == 0
