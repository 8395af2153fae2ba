"""The signatures of the package's functions: PyTorch's names, order and defaults. Needs no torch.

A signature is written as torch's schemas are; `Tensor|Scalar` is an operand that may be a number.
"""

import itertools
import re
from dataclasses import dataclass

# Those that do not follow from the op's data.
FAMILY = {
    "add": "Tensor|Scalar input, Tensor|Scalar other, *, Scalar alpha=1",
    "sub": "Tensor|Scalar input, Tensor|Scalar other, *, Scalar alpha=1",
    "div": "Tensor|Scalar input, Tensor|Scalar other, *, str? rounding_mode=None",
    "pow": "Tensor|Scalar input, Tensor|Scalar exponent",
    "gelu": "Tensor input, *, str approximate='none'",
    "round": "Tensor input, *, int decimals=0",
    "clamp": "Tensor input, Tensor?|Scalar? min=None, Tensor?|Scalar? max=None",
    "where": "Tensor condition, Tensor|Scalar input, Tensor|Scalar other",
    "masked_fill": "Tensor input, Tensor mask, Tensor|Scalar value",
    "lerp": "Tensor input, Tensor end, Tensor|Scalar weight",
    "prelu": "Tensor input, Tensor weight",
    "group_norm": "Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05",
    "dropout": "Tensor input, float p=0.5, bool training=True",
    "alibi": "int num_heads, int seq_len, *, bool causal=False, ScalarType? dtype=None, Device? device=None",
    "sinusoidal": "int seq_len, int d_model, *, bool halves=False, ScalarType? dtype=None, Device? device=None",
}

# Functions that run one of several ops, or prepare what they run.
COMPOSITE = {"div", "gelu", "round", "clamp", "masked_fill", "group_norm", "dropout", "alibi", "sinusoidal"}

# Ops whose function in torch.nn.functional has `inplace`.
INPLACE = {
    "dropout",
    "elu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "mish",
    "relu",
    "selu",
    "silu",
}

# What autocast on CUDA converts operands to: torch's own lists (autocast_mode.h), of those that are here.
AUTOCAST = {
    **dict.fromkeys(("exp", "expm1", "log", "log1p", "pow", "reciprocal", "rsqrt", "softplus"), "float32"),
    **dict.fromkeys(("layer_norm", "log_softmax", "logsumexp", "softmax", "sum"), "float32"),
    "prelu": "lower",
}


@dataclass(frozen=True)
class Argument:
    """An argument of a function: its types, one for each overload, and its default as Python text."""

    name: str
    types: tuple[str, ...]
    default: str | None
    keyword: bool


def parse(signature):
    """The arguments of a signature."""
    arguments, keyword = [], False
    for part in filter(None, re.split(r",\s*", signature)):
        if part == "*":
            keyword = True
            continue
        types, name, default = re.fullmatch(r"(\S+) (\w+)(?:=(.*))?", part).groups()
        arguments.append(Argument(name, tuple(types.split("|")), default, keyword))
    return arguments


def _derived(op, rename):
    """The signature that an op's data give."""
    names = [operand.name for operand in op.operands]
    if rename:
        known = {1: ["input"], 2: ["input", "other"]}.get(len(names)) if not op.gradient else None
        names = known if known and names in (["x"], ["a", "b"]) else names
    parts = []
    for operand, name in zip(op.operands, names):
        parts.append(f"{'Tensor|Scalar' if operand.takes_number else 'Tensor'} {name}")
    kinds = {"float": "Scalar", "float?": "Scalar?", "int": "int", "bool": "bool"}
    if op.rows and op.params:
        # torch's functions have a dimension in their place.
        parts.append("*")
    for param in op.params:
        default = int(param.default) if param.kind == "float" and param.default == int(param.default) else param.default
        parts.append(f"{kinds[param.kind]} {param.name}={default!r}")
    if op.random:
        parts.append("Tensor? seed=None")
    if not op.operands:
        parts = ["SymInt[] size", *parts, "*", "ScalarType? dtype=None", "Device? device=None"]
    return ", ".join(parts)


def of(op, family):
    """The arguments of an op's function, for one of pointwise's own or of another library."""
    known = FAMILY.get(op.name) if family and op.name not in COMPOSITE else None
    return parse(known or _derived(op, family))


def doc(name, ops):
    """The documentation of a function."""
    if name == "masked_fill":
        return "`mask ? value : input`; the value is converted to input's type, which must hold it."
    if name == "group_norm":
        return "`layer_norm` over groups of the channels, dimension 1; weight and bias have an element for each channel."
    base = name.removesuffix("_")
    return ops[name].doc if name in ops else f"`{base}` over its first operand."


def has_inplace(op):
    """True if there is a function over the first operand: it has the result's type and shape."""
    if len(op.results) > 1 or not op.operands or op.rows or op.gradient:
        return False
    return all(slot.dtype is None and slot.domain == "elements" for slot in (op.operands[0], op.results[0]))


def python(arguments, more=()):
    """The arguments as the head of a Python function has them; `more` are further ones by name alone."""
    parts, keyword = [], False
    for argument in arguments:
        if argument.keyword and not keyword:
            parts.append("*")
            keyword = True
        parts.append(argument.name if argument.default is None else f"{argument.name}={argument.default}")
    if more and not keyword:
        parts.append("*")
    return ", ".join([*parts, *more])


def passed(arguments):
    """The arguments as a call passes them on."""
    return ", ".join(f"{a.name}={a.name}" if a.keyword else a.name for a in arguments)


def overloads(arguments):
    """The overloads as pairs of a name and types: all choices that leave a Tensor."""
    for types in itertools.product(*(a.types for a in arguments)):
        if arguments and not any(kind.startswith("Tensor") for kind in types) and "Tensor" in arguments[0].types:
            continue
        others = [a.name for a, kind in zip(arguments, types) if kind != a.types[0]]
        yield "_".join(["Scalar", *others]) if others else "", list(types)


def schema(arguments, types):
    """The arguments of one overload as torch's schemas have them."""
    parts, keyword = [], False
    for argument, kind in zip(arguments, types):
        if argument.keyword and not keyword:
            parts.append("*")
            keyword = True
        default = "" if argument.default is None else f"={argument.default.replace(chr(39), chr(34))}"
        parts.append(f"{kind} {argument.name}{default}")
    return ", ".join(parts)
