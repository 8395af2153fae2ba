"""Writes `pointwise/__init__.pyi`, the functions with their signatures and documentation, from the ops' data.

python stubs_of_functions.py [--check]
"""

import pathlib
import sys

from pointwise import _native, _signatures, _spec

PACKAGE = pathlib.Path(__file__).resolve().parent.parent

HEAD = '''"""Written by tools/stubs_of_functions.py from the ops' data."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from . import arrays as arrays
from ._compile import Report
from ._override import Covered
from ._patch import Patch

Number = int | float | bool

__version__: str

def override(enabled: bool = True, *, ops: Iterable[str] | None = None) -> Covered:
    """Makes torch's own ops run pointwise's kernels, or no more. Returns the names of the ops that are covered."""

def load(path: str, namespace: str) -> SimpleNamespace:
    """Loads a library of a user's own ops. Returns an object with a function of each."""

def patch(model: torch.nn.Module) -> Patch:
    """Replaces rotary embedding, activations and gated MLPs of a Hugging Face model. Returns what undoes it."""

def explain(model: Callable[..., Any], inputs: Any) -> Report:
    """Compiles and runs a model once. Returns a report of its fused kernels and of the ops left to torch: print it."""

'''

TYPES = {
    "Tensor": "Tensor",
    "Scalar": "Number",
    "float": "float",
    "int": "int",
    "bool": "bool",
    "str": "str",
    "ScalarType": "torch.dtype",
    "Device": "torch.device | str",
}
ROPE = "position_ids: Tensor | None = None, *, offset: int = 0, rotary_dim: int | None = None, layout: str = 'bshd'"


def annotated(argument):
    """An argument with its types."""
    kinds = dict.fromkeys(TYPES[kind.rstrip("?")] for kind in argument.types)
    optional = any(kind.endswith("?") for kind in argument.types)
    text = f"{argument.name}: {' | '.join([*kinds, *(['None'] if optional else [])])}"
    return text if argument.default is None else f"{text} = {argument.default}"


def head(name, arguments, result, more, inplace=False):
    """The line of a function."""
    parts, keyword = [], False
    for argument in arguments:
        if argument.keyword and not keyword:
            parts.extend(["inplace: bool = False"] if inplace else [])
            parts.append("*")
            keyword = True
        parts.append(annotated(argument))
    if not keyword:
        parts.extend(["inplace: bool = False"] if inplace else [])
        parts.extend(["*"] if more else [])
    return f"def {name}({', '.join([*parts, *more])}) -> {result}:\n"


def document(doc):
    """A docstring in the body of a stub."""
    return f'    """{doc}"""\n\n'.replace("\\", "\\\\")


def text():
    """The file."""
    description = _spec.parse(_native.describe())
    lines = [HEAD]
    for name, op in description.ops.items():
        if name in ("alibi_causal", "sinusoidal_halves"):
            continue
        arguments = (
            _signatures.parse(_signatures.FAMILY[name]) if name in _signatures.FAMILY else _signatures.of(op, True)
        )
        many = op.shown > 1
        result = f"tuple[{', '.join(['Tensor'] * op.shown)}]" if many else "Tensor"
        out = "out: tuple[Tensor, ...] | None = None" if many else "out: Tensor | None = None"
        more = [] if name == "dropout" or op.shown < len(op.results) else [out]
        lines.append(head(name, arguments, result, more, name in _signatures.INPLACE) + document(op.doc))
        if _signatures.has_inplace(op):
            lines.append(
                head(f"{name}_", arguments, "Tensor", []) + document(_signatures.doc(f"{name}_", description.ops))
            )
    fill = _signatures.parse(_signatures.FAMILY["masked_fill"])
    for name, more in (("masked_fill", ["out: Tensor | None = None"]), ("masked_fill_", [])):
        lines.append(head(name, fill, "Tensor", more) + document(_signatures.doc(name, description.ops)))
    settings = "pairs: str = '{}', rotated_lanes: str = 'lead', q_scale: float = 1.0, k_scale: float = 1.0"
    for name, first, result in (
        ("rope", "q: Tensor, k: Tensor | None", "tuple[Tensor, Tensor | None]"),
        ("rope_one", "q: Tensor", "Tensor"),
    ):
        lines.append(
            f"def {name}({first}, cos: Tensor, sin: Tensor, {ROPE}, {settings.format('half')}, "
            f"backward: bool = False) -> {result}:\n"
        )
        lines.append(document("Rotary embedding by tables of cosines and sines."))
    for variant in description.rope:
        pairs = settings.format("interleaved" if variant["interleaved"] else "half")
        more = "max_positions: int | None = None, **settings: Any"
        lines.append(
            f"def {variant['name']}(q: Tensor, k: Tensor | None = None, {ROPE}, {pairs}, {more}) "
            "-> tuple[Tensor, Tensor | None]:\n"
        )
        lines.append(document(variant["doc"]))
    return "".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    path = PACKAGE / "pointwise" / "__init__.pyi"
    if "--check" in sys.argv:
        sys.exit(0 if path.read_text() == text() else f"{path} is out of date: run {__file__}")
    path.write_text(text())
