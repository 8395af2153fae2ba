"""pointwise's kernels under torch's own ops."""

import torch

from . import _native, _register

_COVERED = ()


def _keys(handle, below=torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)):
    """The keys that torch chooses its kernel of a device by, of the tensor with a handle, which is taken."""
    tensor = torch._C._aoti.alloc_tensor_by_stealing_from_void_ptr(handle)
    return (torch._C._dispatch_keys(tensor) & below).raw_repr()


def _dense(device):
    """Those of a dense tensor of a device."""
    key = getattr(torch._C.DispatchKey, device)
    return torch._C.DispatchKeySet(key).raw_repr()


def override(enabled=True):
    """Makes torch's own ops run pointwise's kernels, as `torch.nn.functional.silu` does then; or no more (False).

    Autograd, autocast, torch.compile and subclasses are torch's as before. A call that pointwise has no kernel for
    (float64, complex, operands of several types) runs torch's. Returns the names of the ops that are covered: those
    whose schema has no `Scalar`, which kernels of the stable ABI cannot take. So `add` and `sub` are not.
    """
    global _COVERED
    found = _native.override(_register.torch_path(), _dense("CPU"), _dense("CUDA"), _keys, enabled)
    if not _COVERED and enabled:
        there = [(name, number) for name, number in found if _is_op(name)]
        lines = "\n".join(f"BackendSelect {name} {number}" for name, number in there)
        _native.implement(_register.torch_path(), "aten", lines)
        _COVERED = tuple(sorted(f"aten::{name}" for name, _ in there))
    return _COVERED if enabled else ()


def _is_op(name):
    name, _, overload = name.partition(".")
    return hasattr(getattr(torch.ops.aten, name, None), overload or "default")
