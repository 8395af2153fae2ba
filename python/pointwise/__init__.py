"""pointwise: elementwise and rotary-embedding kernels written in Rust, with PyTorch's semantics.

`pointwise.NAME` is a function of every op. Once torch is imported, it takes torch's tensors, and `torch.ops.pointwise.NAME`
is the op; before, it takes NumPy's arrays and objects that speak DLPack (`pointwise.arrays`, which is there always). This
package imports no torch; the ops are registered when torch is imported, before or after it.
"""

import importlib
import sys

from . import _native, _when

__version__ = _native.__version__


# Functions beside the ops, and where they are.
_OTHERS = {"override": "._override", "load": "._load", "patch": "._patch"}


def __getattr__(name):
    if name == "arrays":
        return importlib.import_module(".arrays", __name__)
    if name in _OTHERS:
        return getattr(importlib.import_module(_OTHERS[name], __name__), name)
    if not name.startswith("_"):
        with_torch = "torch" in sys.modules
        functions = importlib.import_module("._torch_ops" if with_torch else ".arrays", __name__).FUNCTIONS
        if name in functions:
            if with_torch:
                globals()[name] = functions[name]
            return functions[name]
    raise AttributeError(f"pointwise has no op {name!r}")


_when.imported("torch", lambda: importlib.import_module("._torch_ops", __name__))
