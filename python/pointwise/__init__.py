"""pointwise: elementwise, row and rotary-embedding kernels written in Rust, with PyTorch's semantics.

`pointwise.NAME` is a function of every op. Once torch is imported, it takes torch's tensors, and `torch.ops.pointwise.NAME`
is the op; before, it takes NumPy's arrays and objects that speak DLPack (`pointwise.arrays`, which is there always). This
package imports no torch; the ops are registered when torch is imported, before or after it.
"""

import importlib
import sys

from . import _native, _when

__version__ = _native.__version__


# What is beside the ops, and where it is.
_OTHERS = {"override": "._override", "load": "._load", "patch": "._patch", "explain": "._compile"}


def _found():
    """The functions of the ops: torch's if it is there."""
    if "torch" in sys.modules:
        return importlib.import_module("._torch_ops", __name__).FUNCTIONS
    return importlib.import_module(".arrays", __name__).UNTIL_TORCH


def __getattr__(name):
    if name == "arrays":
        return importlib.import_module(".arrays", __name__)
    if name in _OTHERS:
        return getattr(importlib.import_module(_OTHERS[name], __name__), name)
    if not name.startswith("_"):
        functions = _found()
        if name in functions:
            if "torch" in sys.modules:
                globals()[name] = functions[name]
            return functions[name]
    raise AttributeError(f"pointwise has no op {name!r}")


def __dir__():
    return sorted({name for name in globals() if name.startswith("__")} | {"arrays", *_OTHERS, *_found()})


_when.imported("torch", lambda: importlib.import_module("._torch_ops", __name__))
