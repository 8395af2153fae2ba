"""pointwise: elementwise and rotary-embedding kernels written in Rust, with PyTorch's semantics.

`pointwise.NAME` is a function of every op, and `torch.ops.pointwise.NAME` the op. This package imports no torch; the
ops are registered when torch is imported, before or after it, or when a function is used.
"""

import importlib

from . import _native, _when

__version__ = _native.__version__


# Functions beside the ops, and where they are.
_OTHERS = {"override": "._override", "load": "._load", "patch": "._patch"}


def __getattr__(name):
    if name in _OTHERS:
        return getattr(importlib.import_module(_OTHERS[name], __name__), name)
    if not name.startswith("_"):
        functions = importlib.import_module("._torch_ops", __name__).FUNCTIONS
        if name in functions:
            globals()[name] = functions[name]
            return functions[name]
    raise AttributeError(f"pointwise has no op {name!r}")


_when.imported("torch", lambda: importlib.import_module("._torch_ops", __name__))
