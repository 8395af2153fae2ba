"""Libraries of a user's own ops: made with Rust's crate `pointwise-torch`, whose macro `export!` is all they need."""

import ctypes
import os
from types import SimpleNamespace

from . import _library, _spec

_LOADED = {}


def load(path, namespace):
    """Loads a library and registers its ops with torch, as `torch.ops.NAMESPACE.NAME`.

    Returns an object with a function of each op, that has its gradient, and works with torch.compile, torch.export and
    torch.func as pointwise's own do. A library that is loaded once more is the same object.
    """
    path = os.path.realpath(path)
    if path in _LOADED:
        known, functions = _LOADED[path]
        if known != namespace:
            raise ValueError(f"{path} is loaded as {known!r} already")
        return functions
    taken = {"pointwise", *(known for known, _ in _LOADED.values())}
    if not namespace.isidentifier() or namespace in taken:
        raise ValueError(f"{namespace!r} is no free name for a library")
    library = ctypes.CDLL(path)
    try:
        describe, implement = library.pointwise_torch_describe, library.pointwise_torch_implement
    except AttributeError:
        raise ValueError(f"{path} exports no ops: its crate lacks `pointwise_torch::export!();`") from None
    describe.restype = implement.restype = ctypes.c_char_p
    implement.argtypes = [ctypes.c_char_p] * 3

    def checked(*texts):
        if error := implement(*(text.encode() for text in texts)):
            raise RuntimeError(error.decode())

    try:
        description = _spec.parse(describe().decode())
    except (KeyError, TypeError):
        made = f"{path} was built with another version of pointwise-torch than this package"
        raise ValueError(f"{made}: build it again, from the same checkout") from None
    functions, _ = _library.build(namespace, description, checked)
    _LOADED[path] = namespace, SimpleNamespace(**functions)
    return _LOADED[path][1]
