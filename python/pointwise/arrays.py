"""Every op without torch: on NumPy's arrays, and on every object that speaks DLPack.

Results are NumPy's arrays if an operand is one, and otherwise `Array`s, which speak DLPack themselves. `out=` takes an
array (or a tuple of them, one for each result) of the result's shape and type, which is then the result. `pointwise.NAME` is
`pointwise.arrays.NAME` until torch is imported.
"""

import functools
import importlib
import inspect
import math
import secrets
import sys

from . import _native, _signatures, _spec

Array = _native.Array

_OPS = _spec.parse(_native.describe()).ops


def _call(name, operands, params=(), out=None, **options):
    numpy = sys.modules.get("numpy")
    if out is not None:
        outs = list(out) if isinstance(out, tuple) else [out]
        if numpy is not None and any(isinstance(x, numpy.ndarray | numpy.generic) for x in operands):
            operands = _prepared(numpy, name, operands)
        _native.call(name, list(operands), list(params), outs=outs, **options)
        return out
    if numpy is None or not any(isinstance(x, numpy.ndarray | numpy.generic) for x in operands):
        results = _native.call(name, list(operands), list(params), **options)
    else:
        results = _native.call(name, _prepared(numpy, name, operands), list(params), given=True, **options)
        results = _taken(numpy, results)
    return results[0] if len(results) == 1 else tuple(results)


def _taken(numpy, results):
    """Results as NumPy's arrays."""
    results = [numpy.from_dlpack(result) for result in results]
    # NumPy before 2.1 takes all memory to be read.
    return [result if result.flags.writeable else result.copy() for result in results]


def _prepared(numpy, name, operands):
    """NumPy's numbers as Python's, and arrays that meet float64 as float64, but for those of operands with a type of their own."""
    operands = [x.item() if isinstance(x, numpy.generic) else x for x in operands]
    if not any(isinstance(x, numpy.ndarray) for x in operands):
        operands = [numpy.asarray(x) for x in operands]
    fixed = [operand.dtype for operand in _OPS[name].operands] if name in _OPS else [None] * len(operands)
    meets = [isinstance(x, numpy.ndarray) and x.dtype != bool and own is None for x, own in zip(operands, fixed)]
    if any(x.dtype == numpy.float64 for x, is_met in zip(operands, meets) if is_met):
        operands = [x.astype(numpy.float64, copy=False) if is_met else x for x, is_met in zip(operands, meets)]
    return operands


def _seed(seed):
    """A place in a random sequence: a new one, or of a seed and an offset."""
    if seed is None:
        return secrets.randbits(64), 0
    return (seed, 0) if isinstance(seed, int) else tuple(seed)


def _function(op):
    """The function of an op, with PyTorch's names, order and defaults."""
    arguments = _signatures.of(op, True)
    count = len(op.operands)
    kinds = {True: inspect.Parameter.KEYWORD_ONLY, False: inspect.Parameter.POSITIONAL_OR_KEYWORD}
    default = lambda text: inspect.Parameter.empty if text is None else eval(text, {"inf": math.inf, "nan": math.nan})
    signature = inspect.Signature(
        [
            *(inspect.Parameter(a.name, kinds[a.keyword], default=default(a.default)) for a in arguments),
            inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None),
        ]
    )
    names = [a.name for a in arguments]
    operands, params = names[:count], [name for name in names[count:] if name != "seed"]

    def function(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        options = {"seed": _seed(given["seed"])} if op.random else {}
        options["out"] = given["out"]
        if op.shown < len(op.results) and given["out"] is not None:
            raise RuntimeError(f"{op.name} keeps results for its gradient: it does not write to `out`")
        results = _call(op.name, [given[name] for name in operands], [given[name] for name in params], **options)
        return results if op.shown == len(op.results) else op.show(results)

    function.__signature__, function.__doc__ = signature, op.doc
    return function


def _shaped(op, shape, dtype):
    return _call(op, (), shape=shape, dtype=dtype)


def _make():
    ops = {name: _function(op) for name, op in _OPS.items() if op.operands}
    functions = dict(ops)

    def add(function):
        functions[function.__name__] = function

    @add
    def div(input, other, *, rounding_mode=None, out=None):
        """`input / other`, rounded towards zero (`"trunc"`) or down (`"floor"`) if asked for."""
        if rounding_mode not in (None, "trunc", "floor"):
            raise RuntimeError(
                f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found {rounding_mode!r}"
            )
        return ops[{None: "div", "trunc": "div_trunc", "floor": "floor_divide"}[rounding_mode]](
            input, other, out=out
        )

    @add
    def gelu(input, *, approximate="none", out=None):
        """GELU, exact or by tanh."""
        if approximate not in ("none", "tanh"):
            raise RuntimeError("approximate argument must be either none or tanh.")
        return ops["gelu" if approximate == "none" else "gelu_tanh"](input, out=out)

    @add
    def round(input, *, decimals=0, out=None):
        """Rounds half to even, to a number of decimals."""
        return ops["round"](input, out=out) if decimals == 0 else ops["round_decimals"](input, decimals, out=out)

    @add
    def clamp(input, min=None, max=None, *, out=None):
        """Between two bounds, arrays or numbers, either of which may be None."""
        if min is None and max is None:
            raise RuntimeError("clamp: at least one of 'min' or 'max' must not be None")
        if max is None:
            return ops["maximum"](input, min, out=out)
        if min is None:
            return ops["minimum"](input, max, out=out)
        return ops["clamp_tensor"](input, min, max, out=out)

    @add
    def masked_fill(input, mask, value, *, out=None):
        """`value` where `mask` is true, `input` elsewhere."""
        return ops["where"](mask, value, input, out=out)

    @add
    def dropout(input, p=0.5, training=True, seed=None):
        """Zeros each element with probability `p` and scales the others. `seed` is a number, or a seed and an offset."""
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        return ops["dropout"](input, p, seed) if training else input

    @add
    def alibi(num_heads, seq_len, *, causal=False, dtype="float32"):
        """ALiBi's biases, of shape (num_heads, seq_len, seq_len)."""
        return _shaped("alibi_causal" if causal else "alibi", (num_heads, seq_len, seq_len), dtype)

    @add
    def sinusoidal(seq_len, d_model, *, halves=False, dtype="float32"):
        """Sinusoidal positions, of shape (seq_len, d_model)."""
        return _shaped("sinusoidal_halves" if halves else "sinusoidal", (seq_len, d_model), dtype)

    @add
    def rope(
        q, k, cos, sin, position_ids=None, *, offset=0, rotary_dim=None, layout="bshd", pairs="half",
        rotated_lanes="lead", q_scale=1.0, k_scale=1.0, backward=False, out=None,
    ):  # fmt: skip
        """Rotary embedding of q and k (None: of q alone) by tables of cosines and sines, such as `rope_tables` makes.

        q, k: [batch, sequence, heads, head_dim], or as `layout` says (bshd, bhsd, sbhd, thd, sd). cos, sin: [rows,
        width], or with a row for each token [batch, sequence, width]; the width is half of the lanes that rotate, or all
        of them. `position_ids` are int32 or int64; `pairs` is half, interleaved or interleaved_to_half. Neighbouring
        lanes lie side by side in memory.
        """
        numpy = sys.modules.get("numpy")
        arrays = numpy is not None and isinstance(q, numpy.ndarray)
        outs = None if out is None else list(out) if isinstance(out, tuple) else [out]
        results = _native.rope(
            q, k, cos, sin, position_ids, offset=offset, rotary_dim=rotary_dim, layout=layout, pairs=pairs,
            rotated_lanes=rotated_lanes, q_scale=q_scale, k_scale=k_scale, backward=backward, given=arrays, outs=outs,
        )  # fmt: skip
        results = outs or (_taken(numpy, results) if arrays else results)
        return tuple(results) if k is not None else (results[0], None)

    for name, function in functions.items():
        function.__name__ = function.__qualname__ = name
        function.__module__ = __name__
    return functions


FUNCTIONS = _make()


def _until_torch(name, function):
    """The function as the package has it before torch is imported: from then on torch's, but on arrays."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        torch = sys.modules.get("torch")
        if torch is not None:
            given = (*args, *kwargs.values())
            if not any(hasattr(x, "__dlpack__") and not isinstance(x, torch.Tensor) for x in given):
                torchs = importlib.import_module("._torch_ops", __package__).FUNCTIONS
                return torchs[name](*args, **kwargs)
        return function(*args, **kwargs)

    call.__module__ = __package__
    return call


UNTIL_TORCH = {name: _until_torch(name, function) for name, function in FUNCTIONS.items()}


def rope_tables(name, head_dim, length, **settings):
    """Cosines and sines of a named rotary embedding (`"rope_llama31"`, ..) for positions from 0 to `length`.

    `settings` are those of Hugging Face's configurations (`rope_theta`, `factor`, ..). Returns two NumPy arrays of
    float32, [length, width].
    """
    import numpy

    def text(value):
        if isinstance(value, (list, tuple)):
            return ",".join(map(str, value))
        return str(value).lower() if isinstance(value, bool) else str(value)

    rows = _native.rope_tables(name, sorted((key, text(value)) for key, value in settings.items()), head_dim, length)
    return tuple(numpy.frombuffer(bytearray(row), numpy.float32).reshape(length, -1) for row in rows)


def __getattr__(name):
    try:
        return FUNCTIONS[name]
    except KeyError:
        raise AttributeError(f"pointwise.arrays has no op {name!r}") from None


def __dir__():
    return [*FUNCTIONS, "Array", "rope_tables"]
