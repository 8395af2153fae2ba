"""Registers the kernels of a library with torch, as ops of the namespace `NAMESPACE_kernels`.

They are the inner ops: Rust kernels for CPU and CUDA, a fake for shapes, a rule for vmap, and no gradient.
"""

import os

import torch
from torch import Tensor

from . import _fake, _vmap

TAGS = (torch.Tag.pt2_compliant_tag,)
# Registrations live as long as these objects.
_KEPT = []


def torch_path():
    """The path of torch's library."""
    return os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")


def _resolved(call, count):
    """A kernel that writes to its last `count` tensors, where some have a lazy negation or conjugation.

    torch's own way for these wants the written tensors among an op's results, which torch.compile refuses.
    """

    def run(*args):
        args, outs = args[:-count], args[-count:]
        args = [a.resolve_conj().resolve_neg() if isinstance(a, Tensor) else a for a in args]
        made = [torch.empty_like(out.resolve_conj().resolve_neg()) for out in outs]
        call(*args, *made)
        for out, result in zip(outs, made):
            out.copy_(result)

    return run


def register(namespace, description, implement):
    """Registers the kernels of a library. `implement(torch, namespace, lines)` gives torch the Rust functions."""
    inner = f"{namespace}_kernels"
    library = torch.library.Library(inner, "FRAGMENT")
    _KEPT.append(library)
    lines = {"CPU": [], "CUDA": []}

    def define(kernel, fake, results):
        library.define(kernel.schema, tags=TAGS)
        torch.library.register_fake(f"{inner}::{kernel.name}", fake, lib=library)
        for key, list in lines.items():
            list.append(f"{key} {kernel.name} {kernel.number}")
        if kernel.out:
            name, _, overload = kernel.name.partition(".")
            run = _resolved(getattr(getattr(getattr(torch.ops, inner), name), overload), results)
            for key in ("Negative", "Conjugate"):
                library.impl(kernel.name, run, key)

    for op in description.ops.values():
        fakes = {False: _fake.of(op), True: _fake.into(op)}
        for kernel in op.kernels:
            define(kernel, fakes[kernel.out], len(op.results))
            _vmap.register(library, inner, op, kernel)
    for kernel in description.rope_kernels:
        results = 2 if kernel.name.partition(".")[0] == "rope" else 1
        define(kernel, _fake.rope_into if kernel.out else getattr(_fake, kernel.name), results)
        _vmap.register_rope(library, inner, kernel)
    implement(torch_path(), inner, "\n".join(line for list in lines.values() for line in list))
    return getattr(torch.ops, inner)
