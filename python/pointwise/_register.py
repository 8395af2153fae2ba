"""Registers the kernels of a library with torch, as ops of the namespace `NAMESPACE_kernels`.

They are the inner ops: Rust kernels for CPU and CUDA, a fake for shapes, a rule for vmap, and no gradient.
"""

import os

import torch

from . import _fake, _vmap

TAGS = (torch.Tag.pt2_compliant_tag,)
# Registrations live as long as these objects.
_KEPT = []


def torch_path():
    """Where torch's library lies."""
    return os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so")


def register(namespace, description, implement):
    """Registers the kernels of a library. `implement(torch, namespace, lines)` gives torch the Rust functions."""
    inner = f"{namespace}_kernels"
    library = torch.library.Library(inner, "FRAGMENT")
    _KEPT.append(library)
    lines = {"CPU": [], "CUDA": []}
    for op in description.ops.values():
        fakes = {False: _fake.of(op), True: _fake.nothing}
        for kernel in op.kernels:
            library.define(kernel.schema, tags=TAGS)
            torch.library.register_fake(f"{inner}::{kernel.name}", fakes[kernel.out], lib=library)
            for key, list in lines.items():
                list.append(f"{key} {kernel.name} {kernel.number}")
            _vmap.register(library, inner, op, kernel)
    for kernel in description.rope_kernels:
        library.define(kernel.schema, tags=TAGS)
        fake = _fake.nothing if kernel.out else getattr(_fake, kernel.name)
        torch.library.register_fake(f"{inner}::{kernel.name}", fake, lib=library)
        for key, list in lines.items():
            list.append(f"{key} {kernel.name} {kernel.number}")
        _vmap.register_rope(library, inner, kernel)
    implement(torch_path(), inner, "\n".join(line for list in lines.values() for line in list))
    return getattr(torch.ops, inner)
