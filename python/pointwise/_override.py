"""pointwise's kernels under torch's own ops."""

import torch

from . import _native, _override_rows, _register

# All ops that can be covered, and those that are now.
_COVERED, _CHOSEN = (), ()


class Covered(tuple):
    """The names of the ops that are covered. As a context manager it ends with those that were covered before."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        _cover(self.before)


def _keys(handle, below=torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)):
    """The keys that torch chooses its kernel of a device by, of the tensor with a handle, which is taken."""
    tensor = torch._C._aoti.alloc_tensor_by_stealing_from_void_ptr(handle)
    keys = torch._C._dispatch_keys(tensor) | torch._C._dispatch_tls_local_include_set()
    return (keys - torch._C._dispatch_tls_local_exclude_set() & below).raw_repr()


def _dense(device):
    """Those of a dense tensor of a device."""
    key = getattr(torch._C.DispatchKey, device)
    return torch._C.DispatchKeySet(key).raw_repr()


def override(enabled=True, *, ops=None):
    """Makes torch's own ops run pointwise's kernels, as `torch.nn.functional.silu` does then; or no more (False).

    ops: names of ops, `("silu", "mul")`, whose kernels alone run, in-place and `out` forms with them; all by default. Of ops
    on rows the names are `softmax`, `log_softmax`, `layer_norm`, `rms_norm` and `logsumexp`, for their gradients, too.
    `with pointwise.override(): ..` ends with what was covered before. Autograd, autocast, torch.compile and subclasses are
    torch's as before. A call that pointwise has no kernel for (float64, complex, operands of several types) runs torch's.
    Returns the names of the ops that are covered: of those whose schema has no `Scalar`, which kernels of the stable ABI
    cannot take. So `add` and `sub` are not.
    """
    before = _CHOSEN
    if enabled and not _COVERED:
        _register_all()
    chosen = _COVERED if enabled else ()
    if enabled and ops is not None:
        ops = (ops,) if isinstance(ops, str) else tuple(ops)
        if unknown := set(ops) - set(map(_plain, _COVERED)):
            raise ValueError(f"override() covers no op {', '.join(sorted(map(repr, unknown)))}")
        chosen = (name for name in _COVERED if _plain(name) in ops)
    covered = Covered(chosen)
    covered.before = before
    _cover(covered)
    return covered


def _plain(name):
    """The name that users choose an op by: without its overload, of an in-place form the op's, of rows the function's."""
    name = name.removeprefix("aten::")
    return _override_rows.FUNCTIONS.get(name) or name.partition(".")[0].removesuffix("_")


def _register_all():
    global _COVERED
    torch_path = _register.torch_path()
    found = _native.override_find(torch_path, _dense("CPU"), _dense("CUDA"), _keys)
    there = [(name, number) for name, number in found if _is_op(name)]
    lines = "\n".join(f"BackendSelect {name} {number}" for name, number in there)
    _native.implement(torch_path, "aten", lines)
    _COVERED = tuple(sorted(f"aten::{name}" for name in [*(name for name, _ in there), *_override_rows.FUNCTIONS]))


def _cover(names):
    global _CHOSEN
    chosen = [name.removeprefix("aten::") for name in names]
    _native.override_choose(chosen)
    _override_rows.choose([name for name in chosen if name in _override_rows.FUNCTIONS])
    _CHOSEN = tuple(names)


def _is_op(name):
    name, _, overload = name.partition(".")
    return hasattr(getattr(torch.ops.aten, name, None), overload or "default")
