"""Ops without torch: on NumPy's arrays and on objects that speak DLPack."""

import gc
import inspect
import resource
import subprocess
import sys
import threading
import time

import numpy
import pytest

from pointwise import arrays

OPS = {name: op for name, op in arrays._OPS.items() if op.operands}
FLOAT = sorted(name for name, op in OPS.items() if "float32" in op.dtypes)


class Speaks:
    """An object that speaks DLPack and nothing else."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class SpeaksOld(Speaks):
    """One of before version 1.0."""

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()


def operands(op, dtype):
    """Arrays that an op takes, positive and apart from where formulas jump."""
    generator = numpy.random.default_rng(len(op.name))
    shapes = {"elements": (3, 4), "channel": (4,), "row": (3,), "halves": (3, 8)}

    def one(operand):
        shape = shapes[operand.domain]
        if operand.is_bool:
            return generator.random(shape) < 0.5
        if operand.dtype:
            return generator.integers(0, 4, shape).astype(operand.dtype)
        return generator.uniform(0.1, 0.9, shape).astype(dtype)

    return [one(operand) for operand in op.operands]


def flat(result):
    return [numpy.asarray(y, dtype=numpy.float64) for y in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("name", FLOAT)
def test_every_op_is_its_formula_in_float64(name):
    op = OPS[name]
    # An op's own function, not one that chooses among ops.
    function = arrays._function(op)
    options = {"seed": (7, 3)} if op.random else {}
    single = operands(op, numpy.float32)
    got = function(*single, **options)
    results = got if isinstance(got, tuple) else (got,)
    assert len(results) == op.shown
    for result, spec in zip(results, op.results):
        assert result.dtype == (bool if spec.is_bool else numpy.float32)
    if op.double:
        double = [x if x.dtype == bool else x.astype(numpy.float64) for x in single]
        for y, expected in zip(flat(got), flat(function(*double, **options))):
            numpy.testing.assert_allclose(y, expected, rtol=2e-5, atol=1e-6)


def test_values_of_numpy():
    x = numpy.linspace(-2, 2, 101, dtype=numpy.float32).reshape(101, 1)
    row = numpy.array([0.5, 2.0], dtype=numpy.float32)
    close = lambda got, expected: numpy.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)
    close(arrays.exp(x), numpy.exp(x))
    close(arrays.add(x, row), x + row)
    close(arrays.add(x, row, alpha=2), x + 2 * row)
    close(arrays.mul(x.T, 3), x.T * 3)
    close(arrays.silu(x[::-2]), x[::-2] / (1 + numpy.exp(-x[::-2])))
    close(arrays.clamp(x, -1, 1), numpy.clip(x, -1, 1))
    close(arrays.clamp(x, min=row), numpy.maximum(x, row))
    close(arrays.div(x, row, rounding_mode="floor"), numpy.floor_divide(x, row))
    close(arrays.where(x > 0, x, 0.0), numpy.where(x > 0, x, 0.0))
    close(arrays.masked_fill(x, x > 0, 7.0), numpy.where(x > 0, 7.0, x))
    close(arrays.round(x, decimals=1), numpy.round(x, 1))
    assert (arrays.bitwise_and(numpy.arange(9), 6) == (numpy.arange(9) & 6)).all()
    assert (arrays.lt(x, row) == (x < row)).all()


def test_types_meet_as_torchs():
    types = {
        ("int8", "uint8"): "int16",
        ("int32", "float16"): "float16",
        ("float16", "float32"): "float32",
        ("bool", "int64"): "int64",
        ("float64", "float32"): "float64",
        ("float64", "int32"): "float64",
    }
    for (a, b), met in types.items():
        assert arrays.mul(numpy.ones(3, a), numpy.ones(3, b)).dtype == met, (a, b)
    ones = numpy.ones(3, "int32")
    assert arrays.add(ones, 1).dtype == "int32"
    assert arrays.add(ones, 0.5).dtype == "float32"
    assert arrays.add(ones, numpy.float32(0.5)).dtype == "float32"
    assert arrays.exp(ones).dtype == "float32"
    assert arrays.exp(numpy.float64(1.0)).dtype == "float64"


def test_memory_of_numpy():
    x = numpy.arange(6, dtype=numpy.float32)
    x.flags.writeable = False
    y = arrays.neg(x)
    assert y.flags.writeable and not numpy.shares_memory(x, y)
    del x
    gc.collect()
    assert (y == -numpy.arange(6)).all()
    assert arrays.neg(numpy.ones((0, 3), "float32")).shape == (0, 3)
    assert arrays.neg(numpy.float32(2.0)) == -2.0
    assert arrays.neg(numpy.array(2.0, "float32")).shape == ()


def test_any_byte_but_zero_is_true():
    odd = numpy.array([0, 1, 2, 255], "uint8").view(bool)
    assert (arrays.logical_not(odd) == [True, False, False, False]).all()
    assert (arrays.where(odd, numpy.ones(4, "float32"), 0.0) == [0, 1, 1, 1]).all()


@pytest.mark.parametrize("kind", [Speaks, SpeaksOld])
def test_objects_that_speak_dlpack(kind):
    x = numpy.linspace(-2, 2, 12, dtype=numpy.float32).reshape(3, 4).T
    y = arrays.relu(kind(x))
    assert isinstance(y, arrays.Array)
    assert (y.shape, y.dtype, y.device) == ([4, 3], "float32", "cpu")
    assert y.__dlpack_device__() == (1, 0)
    assert repr(y) == "pointwise.Array(shape=[4, 3], dtype=float32, device=cpu)"
    # As often as one likes, and as an operand, too.
    for _ in range(2):
        assert (numpy.from_dlpack(y) == numpy.maximum(x, 0)).all()
    assert (numpy.from_dlpack(arrays.neg(y)) == -numpy.maximum(x, 0)).all()
    # New consumers get the memory, to be read; old ones, who cannot be told so, a copy.
    address = lambda array: numpy.from_dlpack(array).ctypes.data
    assert address(Speaks(y)) == address(y) != address(SpeaksOld(y))
    assert not numpy.from_dlpack(y).flags.writeable
    assert numpy.from_dlpack(arrays.exp(kind(x.astype("float64")))).dtype == "float64"


def test_element_types_that_numpy_has_not():
    x = arrays.alibi(4, 8, dtype="bfloat16")
    assert x.dtype == "bfloat16" and arrays.exp(x).dtype == "bfloat16"
    assert arrays.add(x, arrays.alibi(4, 8)).dtype == "float32"
    with pytest.raises(BufferError, match="another device"):
        x.__dlpack__(dl_device=(2, 0))


def test_generators():
    assert numpy.from_dlpack(arrays.alibi(2, 3))[0, 2, 0] == -0.125
    assert numpy.from_dlpack(arrays.alibi(2, 3, causal=True)).shape == (2, 3, 3)
    table = numpy.from_dlpack(arrays.sinusoidal(5, 4))
    numpy.testing.assert_allclose(table[:, 0], numpy.sin(numpy.arange(5)), rtol=1e-6, atol=1e-7)


def test_dropout():
    x = numpy.ones(10_000, "float32")
    y = arrays.dropout(x, 0.25, seed=1)
    assert set(numpy.unique(y)) == {0.0, numpy.float32(1 / 0.75)} and 0.2 < (y == 0).mean() < 0.3
    assert (y == arrays.dropout(x, 0.25, seed=(1, 0))).all()
    assert (y != arrays.dropout(x, 0.25)).any()
    assert arrays.dropout(x, training=False) is x


def test_memory_is_given_back():
    x = numpy.ones(1 << 20, "float32")
    most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unused = Speaks(arrays.neg(Speaks(x)))
    before = None
    # Memory may grow in the first turns.
    for i in range(400):
        arrays.neg(arrays.neg(Speaks(x)))
        arrays.neg(x)
        unused.__dlpack__(max_version=(1, 0))
        unused.__dlpack__()
        before = before or (i == 200 and most())
    assert most() - before < 50_000, "kilobytes"


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda x: arrays.silu("a"), TypeError, "must be an array, not str"),
        (lambda x: arrays.silu(), TypeError, "missing a required argument"),
        (lambda x: arrays.silu(2.0), TypeError, "must be an array"),
        (lambda x: arrays.add(1, 2), TypeError, "one argument at least"),
        (lambda x: arrays.add(x.astype("int8"), 2**60 + 1), RuntimeError, "tensors take -128 to 127"),
        (lambda x: arrays.add(x, numpy.ones(2, "float32")), RuntimeError, "must match"),
        (lambda x: arrays.silu(x.astype("complex64")), TypeError, "complex64"),
        (lambda x: arrays.bitwise_not(x), TypeError, "bitwise_not does not take float32"),
        (lambda x: arrays.where(x, x, x), RuntimeError, "must be of bools"),
        (lambda x: arrays.silu(x.reshape((1,) * 8 + (3,))), ValueError, "9 dimensions"),
        (lambda x: arrays.add(Speaks(x), Speaks(x.astype("float64"))), TypeError, "float64 goes with float64"),
        (lambda x: arrays.gelu(x, approximate="sinh"), RuntimeError, "approximate"),
        (lambda x: arrays.dropout(x, 1.5), ValueError, "between 0 and 1"),
        (lambda x: arrays.alibi(2, 3, dtype="complex64"), TypeError, "does not make complex64"),
        (lambda x: arrays.alibi(-1, 3), ValueError, "must not be negative"),
        (lambda x: arrays.softplush(x), AttributeError, "softplush"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call(numpy.ones(3, "float32"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_out(dtype):
    x = numpy.linspace(-2, 2, 12, dtype=dtype).reshape(3, 4)
    # With gaps between its elements, which stay.
    whole = numpy.full((3, 8), 7, dtype)
    out = whole[:, ::2]
    assert arrays.add(x, 1, out=out) is out
    assert (out == x + 1).all() and (whole[:, 1::2] == 7).all()
    # The operand itself.
    y = x.copy()
    assert arrays.clamp(y, min=-1, out=y) is y
    assert (y == numpy.maximum(x, -1)).all()
    truths = numpy.empty((3, 4), bool)
    assert (arrays.gt(x, 0, out=truths) == (x > 0)).all()
    assert (arrays.masked_fill(x, truths, 0, out=y) == numpy.minimum(x, 0)).all()
    both = numpy.empty_like(x), numpy.empty_like(x)
    name = next(name for name, op in OPS.items() if len(op.results) == 2 and len(op.operands) == 3)
    function, given = arrays._function(OPS[name]), operands(OPS[name], dtype)
    assert function(*given, out=both) is both
    assert all((a == b).all() for a, b in zip(both, function(*given)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_out_is_checked(dtype):
    x = numpy.ones((3, 4), dtype)
    for out, error, words in (
        (numpy.empty((4, 3), dtype), ValueError, "sizes"),
        (numpy.empty((3, 4), "int32"), ValueError, "`out` is"),
        ([0.0], TypeError, "must be an array, not list"),
        ((x, x), TypeError, "1 results"),
        (numpy.broadcast_to(numpy.ones(4, dtype), (3, 4)), ValueError, "may only be read"),
    ):
        with pytest.raises(error, match=words):
            arrays.exp(x, out=out)
    row = numpy.ones(13, dtype)
    with pytest.raises((ValueError, RuntimeError), match="overlap|share no memory"):
        arrays.exp(row[:12], out=row[1:])
    assert (row == 1).all()
    name = next(name for name, op in OPS.items() if len(op.results) == 2 and op.double)
    with pytest.raises(ValueError, match="two of `out` share memory"):
        arrays._function(OPS[name])(*operands(OPS[name], dtype), out=(x, x))


def rotated(x, cos, sin, interleaved=False):
    """The rotation of [batch, sequence, heads, lanes] by tables [sequence, lanes / 2], in float64."""
    x, cos, sin = x.astype("float64"), cos[:, None, :].astype("float64"), sin[:, None, :].astype("float64")
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return numpy.stack((a * cos - b * sin, b * cos + a * sin), -1).reshape(x.shape)
    a, b = numpy.split(x, 2, -1)
    return numpy.concatenate((a * cos - b * sin, b * cos + a * sin), -1)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_rope(dtype):
    generator = numpy.random.default_rng(1)
    q, k = (generator.normal(size=(2, 5, heads, 8)).astype(dtype) for heads in (3, 1))
    cos, sin = arrays.rope_tables("rope_neox", 8, 16)
    angles = numpy.arange(16)[:, None] / 10000 ** (numpy.arange(0, 8, 2) / 8)
    numpy.testing.assert_allclose(cos, numpy.cos(angles), atol=1e-6)
    bound = 2e-3 if dtype == "float16" else 2e-6
    close = lambda got, want: numpy.testing.assert_allclose(got, want, rtol=bound, atol=bound)
    for pairs in ("half", "interleaved"):
        for got, x in zip(arrays.rope(q, k, cos, sin, pairs=pairs), (q, k)):
            assert got.dtype == x.dtype and got.flags.writeable
            close(got, rotated(x, cos[:5], sin[:5], pairs == "interleaved"))
    ids = numpy.array([4, 3, 2, 1, 0])
    out = numpy.empty_like(q)
    got, none = arrays.rope(q, None, cos, sin, ids, out=out)
    assert got is out and none is None
    close(got, rotated(q, cos[ids], sin[ids]))
    # Back again.
    close(arrays.rope(out, None, cos, sin, ids, backward=True)[0], q)
    with_dlpack = arrays.rope(Speaks(q), Speaks(k), Speaks(cos), Speaks(sin), offset=2)
    assert all(isinstance(x, arrays.Array) for x in with_dlpack)
    close(numpy.from_dlpack(with_dlpack[1]), rotated(k, cos[2:7], sin[2:7]))


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("name", ["cos", "sin", "position_ids", "q", "k"])
def test_out_of_rope_is_apart(name, which):
    outs = [numpy.ones((1, 2, 1, 2), "float32") for _ in "qk"]
    shared = outs[which].reshape(-1)
    given = {
        "q": numpy.ones((1, 2, 1, 2), "float32"),
        "k": numpy.ones((1, 2, 1, 2), "float32"),
        "cos": numpy.ones((2, 1), "float32"),
        "sin": numpy.ones((2, 1), "float32"),
        "position_ids": numpy.zeros(2, "int32"),
    }
    arrays.rope(**given, out=tuple(outs))
    shared[:] = 0
    # The last elements, of which another thread would read what the first one writes.
    size = given[name].size
    given[name] = shared[-size:].view(given[name].dtype).reshape(given[name].shape)
    with pytest.raises(RuntimeError, match="share no memory"):
        arrays.rope(**given, out=tuple(outs))
    assert (shared == 0).all()


@pytest.mark.parametrize("op", ["gelu", "rope"])
def test_other_threads_go_on(op):
    x = numpy.ones((1 << 14, 1, 64), "float32")
    tables = arrays.rope_tables("rope_neox", 64, 1 << 14)
    call = {"gelu": lambda: arrays.gelu(x), "rope": lambda: arrays.rope(x, None, *tables, layout="thd")}[op]
    steps, is_over = 0, False

    def count():
        nonlocal steps
        while not is_over:
            steps += 1
            time.sleep(0)

    interval = sys.getswitchinterval()
    other = threading.Thread(target=count)
    other.start()
    # No thread is made to wait now: another one goes on only while this one lets it.
    sys.setswitchinterval(1e6)
    try:
        for _ in range(200):
            before = steps
            call()
            if steps != before:
                break
        else:
            raise AssertionError("no other thread went on in 200 calls")
    finally:
        is_over = True
        sys.setswitchinterval(interval)
        other.join()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"q": [1.0]}, TypeError, "'q' must be an array, not list"),
        ({"q": numpy.ones((2, 5, 3, 8))}, TypeError, "not float64"),
        ({"cos": numpy.ones((16, 3), "float32")}, RuntimeError, "."),
        ({"pairs": "thirds"}, ValueError, "thirds"),
        ({"layout": "dhsb"}, ValueError, "dhsb"),
        ({"offset": 14}, RuntimeError, "."),
        ({"rotary_dim": -2}, ValueError, "cannot rotate"),
        ({"out": (numpy.ones((2, 5, 3, 8), "float32"),) * 2}, TypeError, "1 results"),
        ({"out": numpy.ones((2, 5, 3, 4), "float32")}, RuntimeError, "."),
        ({"position_ids": numpy.ones(5, "float32")}, RuntimeError, "."),
    ],
)
def test_errors_of_rope(change, error, words):
    cos, sin = arrays.rope_tables("rope_neox", 8, 16)
    arguments = {"q": numpy.ones((2, 5, 3, 8), "float32"), "k": None, "cos": cos, "sin": sin}
    with pytest.raises(error, match=words):
        arrays.rope(**{**arguments, **change})


def test_signatures_are_pytorchs():
    assert str(inspect.signature(arrays.leaky_relu)) == "(input, negative_slope=0.01, *, out=None)"
    assert str(inspect.signature(arrays.add)) == "(input, other, *, alpha=1, out=None)"
    assert arrays.silu.__name__ == "silu" and arrays.silu.__doc__


def test_the_package_needs_no_torch():
    code = """
import sys, numpy, pointwise
assert pointwise.neg(numpy.ones(3, "float32"))[0] == -1.0
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
