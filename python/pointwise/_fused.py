"""The op `pointwise::fused`, which runs programs: texts that become kernels with numbers."""

import functools

import torch

from . import _native, _register

# The element types of a program, by torch's.
NAMES = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.bool: "bool",
    torch.float8_e4m3fn: "f8e4m3",
    torch.float8_e5m2: "f8e5m2",
}
# By number of a program: of each result the type, if each row has it once, its parts and their dimension, counted from the
# last (0); and the order of dimensions in memory.
_PROGRAMS = {}


def number(text, results, order=None):
    """Returns the number of a program, the same for the same text. Raises ValueError if it has no kernel.

    results: of each its type, if each row has it once, its parts and their dimension, counted from the last (0).
    """
    _define()
    found = _native.fusion_program(text)
    _PROGRAMS[found] = results, order
    return found


@functools.cache
def _define():
    """Defines the op."""
    library = torch.library.Library("pointwise", "FRAGMENT")
    _register._KEPT.append(library)
    library.define("fused(int program, Tensor[] operands) -> Tensor[]", tags=_register.TAGS)
    torch.library.register_fake("pointwise::fused", _fake, lib=library)
    _native.fusion_implement(_register.torch_path())


def _fake(program, operands):
    """Makes the results of a program without computing them."""
    results, order = _PROGRAMS[program]
    shape = torch.broadcast_shapes(*(x.shape for x in operands))
    order = order or list(range(len(shape)))
    made = []
    for dtype, row, parts, dim in results:
        own = [*shape[:-1], 1] if row else [*shape]
        if parts > 1:
            own[-1 - dim] *= parts
        dense = operands[0].new_empty([own[dim] for dim in order], dtype=dtype)
        made.append(dense.permute([order.index(dim) for dim in range(len(shape))]))
    return made
