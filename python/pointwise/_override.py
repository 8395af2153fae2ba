"""pointwise's kernels under torch's own ops."""

import torch

from . import _native, _register

_COVERED = ()
# c10::DeviceType, by the names of the dispatch keys.
_DEVICES = {"CPU": 0, "CUDA": 1, "XLA": 9, "XPU": 12, "MPS": 13, "Meta": 14, "HPU": 15, "PrivateUse1": 20}
_KINDS = ("CPU", "QuantizedCPU", "SparseCPU", "SparseCsrCPU", "NestedTensorCPU")


def _bits(key):
    return torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key)).raw_repr()


def override(enabled=True):
    """Makes torch's own ops run pointwise's kernels, as `torch.nn.functional.silu` does then; or no more (False).

    Autograd, autocast, torch.compile and subclasses are torch's as before. A call that pointwise has no kernel for
    (float64, complex, operands of several types) runs torch's. Returns the names of the ops that are covered: those
    whose schema has no `Scalar`, which kernels of the stable ABI cannot take. So `add` and `sub` are not.
    """
    global _COVERED
    # A set of keys has a bit for the device and one for the kind of tensor.
    cpu = _bits("CPU") & _bits("QuantizedCPU")
    dense = _bits("CPU") & ~cpu
    devices = [(number, _bits(key) & ~dense) for key, number in _DEVICES.items()]
    found = _native.override(_register.torch_path(), devices, [_bits(key) & ~cpu for key in _KINDS], enabled)
    if not _COVERED and enabled:
        there = [(name, number) for name, number in found if _is_op(name)]
        lines = "\n".join(f"BackendSelect {name} {number}" for name, number in there)
        _native.implement(_register.torch_path(), "aten", lines)
        _COVERED = tuple(sorted(f"aten::{name}" for name, _ in there))
    return _COVERED if enabled else ()


def _is_op(name):
    name, _, overload = name.partition(".")
    return hasattr(getattr(torch.ops.aten, name, None), overload or "default")
