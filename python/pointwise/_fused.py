"""The op `pointwise::fused`, which runs programs: texts that become kernels with numbers."""

import functools
import json

import torch

from . import _native, _register

# The element types of a program, by torch's.
NAMES = {getattr(torch, of): name for of, name in _native.element_types}
# By number of a program: of each result the type, if each row has it once, its parts and their dimension, counted from the
# last (0); the order of dimensions in memory; and the number of seeds behind the operands.
_PROGRAMS = {}


def number(text, results, order=None, seeds=0):
    """Returns the number of a program, the same for the same text. Raises ValueError if it has no kernel.

    results: of each its type, if each row has it once, its parts and their dimension, counted from the last (0).
    seeds: the masks of dropout. Each has a tensor of two int64 behind the operands.
    """
    define()
    found = _native.fusion_program(text)
    _PROGRAMS[found] = results, order, seeds
    return found


@functools.cache
def define():
    """Defines `pointwise::fused`, and `pointwise::dropout_mask`, which a program may have as a step."""
    library = torch.library.Library("pointwise", "FRAGMENT")
    _register._KEPT.append(library)
    library.define("fused(int program, Tensor[] operands) -> Tensor[]", tags=_register.TAGS)
    torch.library.register_fake("pointwise::fused", _fake, lib=library)
    _native.fusion_implement(_register.torch_path())
    library.define("dropout_mask(Tensor x, float p, Tensor seed) -> Tensor", tags=_register.TAGS)
    torch.library.register_fake("pointwise::dropout_mask", lambda x, p, seed: torch.empty_like(x, dtype=torch.bool), lib=library)
    for key in ("CPU", "CUDA"):
        library.impl("dropout_mask", _mask, key)


def _fake(program, operands):
    """Makes the results of a program without computing them."""
    results, order, seeds = _PROGRAMS[program]
    shape = torch.broadcast_shapes(*(x.shape for x in operands[: len(operands) - seeds]))
    order = order or list(range(len(shape)))
    made = []
    for dtype, row, parts, dim in results:
        own = [*shape[:-1], 1] if row else [*shape]
        if parts > 1:
            own[-1 - dim] *= parts
        dense = operands[0].new_empty([own[dim] for dim in order], dtype=dtype)
        made.append(dense.permute([order.index(dim) for dim in range(len(shape))]))
    return made


def _mask(x, p, seed):
    """Computes a mask of dropout by itself: true where an element is kept. It lies in memory as `torch.empty_like(x)`."""
    like = torch.empty_like(x, dtype=torch.bool)
    order = sorted(range(x.dim()), key=lambda dim: -like.stride(dim))
    operand = {"dtype": NAMES[x.dtype], "scalar": not x.dim()}
    step = {"dropout_mask": p, "args": [{"v": 0}]}
    text = json.dumps({"operands": [operand], "steps": [step], "results": [{"v": 1}], "order": order})
    return torch.ops.pointwise.fused(number(text, [(torch.bool, False, 1, 0)], order, 1), [x, seed])[0]
