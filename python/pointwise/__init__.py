"""pointwise: elementwise and rotary-embedding kernels written in Rust, with PyTorch's semantics.

`pointwise.NAME` is a function of every op, and `torch.ops.pointwise.NAME` the op. This package imports no torch; the
ops are registered when torch is imported, before or after it, or when a function is used.
"""

import importlib
import importlib.abc
import importlib.util
import sys

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


class _WhenTorchComes(importlib.abc.MetaPathFinder):
    """Registers the ops behind the import of torch."""

    def find_spec(self, name, path, target=None):
        if name != "torch" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                importlib.import_module("._torch_ops", __name__)

            spec.loader.exec_module = exec_module
        return spec


if "torch" in sys.modules:
    importlib.import_module("._torch_ops", __name__)
else:
    sys.meta_path.insert(0, _WhenTorchComes())
