"""pointwise: elementwise and rotary-embedding kernels written in Rust, with PyTorch's semantics.

`pointwise.NAME` is a function of every op, and `torch.ops.pointwise.NAME` the op. torch is loaded when it is needed, not
when this package is imported.
"""

import importlib

from . import _native

__version__ = _native.__version__


# Functions beside the ops, and where they are.
_OTHERS = {"override": "._override", "load": "._load"}


def __getattr__(name):
    if name in _OTHERS:
        return getattr(importlib.import_module(_OTHERS[name], __name__), name)
    if not name.startswith("_"):
        functions = importlib.import_module("._torch_ops", __name__).FUNCTIONS
        if name in functions:
            globals()[name] = functions[name]
            return functions[name]
    raise AttributeError(f"pointwise has no op {name!r}")
