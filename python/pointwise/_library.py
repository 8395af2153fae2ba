"""A library of ops in torch: inner ops, public ops `torch.ops.NAMESPACE.NAME`, and functions.

A public op's kernel is the function itself (CompositeImplicitAutograd): what torch records of it are the inner op, and
its gradient. It is what torch.compile and torch.export see.
"""

import torch

from . import _composite, _functions, _register, _rope, _signatures, _spec, _when
from ._calls import Calls


def _define(library, name, arguments, results, random=False, tags=_register.TAGS, has_out=True):
    """Defines a public op with its overloads. Returns the names of what is to be implemented."""
    tags = (*tags, torch.Tag.nondeterministic_seeded) if random else tags
    many = "Tensor" if results == 1 else f"({', '.join(['Tensor'] * results)})"
    names = []
    for overload, types in _signatures.overloads(arguments):
        plain = _signatures.schema(arguments, types)
        dot = f".{overload}" if overload else ""
        library.define(f"{name}{dot}({plain}) -> {many}", tags=tags)
        names.append(f"{name}{dot}")
        if results == 1 and not random and has_out:
            star = "" if any(a.keyword for a in arguments) else "*, "
            dot = f".{overload}_out" if overload else ".out"
            comma = ", " if plain else ""
            library.define(f"{name}{dot}({plain}{comma}{star}Tensor(a!) out) -> Tensor(a!)", tags=tags)
            names.append(f"{name}{dot}")
    return names


def _define_inplace(library, name, arguments):
    names = []
    for overload, types in _signatures.overloads(arguments):
        if not types[0] == "Tensor":
            continue
        plain = _signatures.schema(arguments, ["Tensor(a!)", *types[1:]])
        dot = f".{overload}" if overload else ""
        library.define(f"{name}_{dot}({plain}) -> Tensor(a!)", tags=_register.TAGS)
        names.append(f"{name}_{dot}")
    return names


def _shard(namespace, description):
    from . import _distributed

    _distributed.register(namespace, description)


@_when.uncollected()
def build(namespace, description, implement, family=False):
    """Registers a library. Returns its functions by name."""
    description = _spec.parse(description)
    ops = description.ops
    inner = _register.register(namespace, description, implement)
    _when.imported("torch.distributed.tensor", lambda: _shard(namespace, description))
    library = torch.library.Library(namespace, "FRAGMENT")
    _register._KEPT.append(library)
    public = getattr(torch.ops, namespace)
    calls = {name: Calls(op, inner, family, _signatures.of(op, family)) for name, op in ops.items()}
    names, functions = {}, {}
    composite = _signatures.COMPOSITE if family else set()
    for name, call in calls.items():
        op = call.op
        if op.form == "generator":
            if not family:
                names[name] = _define(library, name, call.arguments, 1)
                functions[name] = _functions.generator(call, getattr(public, name))
            continue
        call.differentiate(calls)
        arguments = _signatures.parse(_signatures.FAMILY[name]) if name in composite else call.arguments
        names[name] = _define(
            library, name, arguments, op.shown, op.random, has_out=op.shown == len(op.results)
        )
        inplace = packet = None
        if _signatures.has_inplace(op):
            # What draws at random is public in one form alone.
            if not op.random:
                names[f"{name}_"] = _define_inplace(library, name, arguments)
                packet = getattr(public, f"{name}_")
            inplace = functions[f"{name}_"] = call.function_inplace = _functions.function_inplace(call, packet)
        with_argument = inplace if family and name in _signatures.INPLACE else None
        function = call.function = _functions.function(call, getattr(public, name), with_argument)
        functions[name] = function if op.shown == len(op.results) else _functions.shown(op, function)
    if family:
        for name in ("masked_fill", "alibi", "sinusoidal"):
            names[name] = _define(library, name, _signatures.parse(_signatures.FAMILY[name]), 1)
        names["masked_fill_"] = _define_inplace(
            library, "masked_fill", _signatures.parse(_signatures.FAMILY["masked_fill"])
        )
        functions.update(_composite.make(functions, calls, public))
        functions |= _rope.make(library, inner, public, description.rope)
        names |= {name: [name] for name in _rope.SCHEMAS}
    for name, overloads in names.items():
        for overload in overloads:
            # With the second key torch.func's transforms see what a function calls, level by level, and not the op.
            for key in ("CompositeImplicitAutograd", "FuncTorchDynamicLayerFrontMode"):
                library.impl(overload, functions[name], key)
    for name, function in functions.items():
        function.__module__, function.__qualname__ = namespace, name
        function.__doc__ = function.__doc__ or _signatures.doc(name, ops)
    return functions, calls
