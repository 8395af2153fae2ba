"""A library of ops in torch: inner ops, public ops `torch.ops.NAMESPACE.NAME`, and functions.

A public op's kernel is the function itself (CompositeImplicitAutograd): what torch records of it are the inner op, and
its gradient. It is what torch.compile and torch.export see.
"""

from collections.abc import Mapping

import torch

from . import _composite, _functions, _register, _rope, _signatures, _spec, _when
from ._calls import Calls


class Functions(Mapping):
    """Functions by name, each made when it is first asked for: there are hundreds, and a program calls some."""

    def __init__(self, namespace, ops):
        self._namespace, self._ops, self._made = namespace, ops, {}
        # By name what makes a function.
        self.makers = {}

    def __getitem__(self, name):
        if name not in self._made:
            function = self.makers[name]()
            function.__module__, function.__qualname__ = self._namespace, name
            function.__doc__ = function.__doc__ or _signatures.doc(name, self._ops)
            self._made.setdefault(name, function)
        return self._made[name]

    def __iter__(self):
        return iter(self.makers)

    def __len__(self):
        return len(self.makers)

    def __contains__(self, name):
        return name in self.makers

    def add(self, functions):
        """Adds functions that are made, in place of others of the same names."""
        for name, function in functions.items():
            self._made.pop(name, None)
            self.makers[name] = lambda function=function: function

    def late(self, name):
        """Returns a function that calls another, which is made by then."""
        return lambda *args, **named: self[name](*args, **named)


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
    """Registers the library of a description. Returns its functions by name."""
    ops = description.ops
    inner = _register.register(namespace, description, implement)
    _when.imported("torch.distributed.tensor", lambda: _shard(namespace, description))
    library = torch.library.Library(namespace, "FRAGMENT")
    _register._KEPT.append(library)
    public = getattr(torch.ops, namespace)
    calls = {name: Calls(op, inner, family, _signatures.of(op, family)) for name, op in ops.items()}
    names, functions = {}, Functions(namespace, ops)
    composite = _signatures.COMPOSITE if family else set()
    for name, call in calls.items():
        op = call.op
        if not op.operands:
            if not family:
                names[name] = _define(library, name, call.arguments, 1)
                functions.makers[name] = lambda call=call: _functions.generator(call, getattr(public, call.name))
            continue
        call.differentiate(calls)
        arguments = _signatures.parse(_signatures.FAMILY[name]) if name in composite else call.arguments
        names[name] = _define(
            library, name, arguments, op.shown, op.random, has_out=op.shown == len(op.results)
        )
        if _signatures.has_inplace(op):
            # What draws at random is public in one form alone.
            if not op.random:
                names[f"{name}_"] = _define_inplace(library, name, arguments)
                call.packet_inplace = getattr(public, f"{name}_")
            functions.makers[f"{name}_"] = lambda call=call: call.function_inplace
            call.has_inplace = family and name in _signatures.INPLACE
        call.packet = getattr(public, name)
        functions.makers[name] = lambda call=call: call.shown
    if family:
        for name in ("masked_fill", "alibi", "sinusoidal"):
            names[name] = _define(library, name, _signatures.parse(_signatures.FAMILY[name]), 1)
        group_norm = _signatures.parse(_signatures.FAMILY["group_norm"])
        names["group_norm"] = _define(library, "group_norm", group_norm, 1, has_out=False)
        names["masked_fill_"] = _define_inplace(
            library, "masked_fill", _signatures.parse(_signatures.FAMILY["masked_fill"])
        )
        functions.add(_composite.make(functions, calls, public))
        functions.add(_rope.make(library, inner, public, description.rope))
        names |= {name: [name] for name in _rope.SCHEMAS}
    for name, overloads in names.items():
        function = functions.late(name)
        for overload in overloads:
            # With the second key torch.func's transforms see what a function calls, level by level, and not the op.
            for key in ("CompositeImplicitAutograd", "FuncTorchDynamicLayerFrontMode"):
                library.impl(overload, function, key)
    return functions, calls
