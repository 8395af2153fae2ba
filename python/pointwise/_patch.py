"""Ops of a Hugging Face model replaced by pointwise's: rotary embedding, activations, gated MLPs and norms.

What is replaced is found by trying it: a module or function is taken for an op if it gives the op's values on a few
numbers. So nothing is replaced for its name alone.
"""

import inspect
import types

import torch
from torch import nn

from . import _patch_norms, _torch_ops

_OPS = _torch_ops.FUNCTIONS
_ACTIVATIONS = (
    "silu gelu gelu_tanh relu sigmoid tanh mish hardswish hardsigmoid selu elu leaky_relu".split()
)  # with their parameters' defaults
# Activations that have an op with the multiplication.
_GATED = {"silu", "gelu", "gelu_tanh"}
_HOMES = ("torch.nn.modules.activation", "transformers.activations")
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def _gives(function, want):
    """True if a function gives these values. One that fails does not."""
    try:
        with torch.no_grad():
            got = function()
    except Exception:
        return False
    got, want = (x if isinstance(x, (tuple, list)) else (x,) for x in (got, want))
    return len(got) == len(want) and all(
        isinstance(a, torch.Tensor) and a.shape == b.shape and torch.allclose(a, b, rtol=1e-5, atol=1e-5)
        for a, b in zip(got, want)
    )


def _numbers(*shape):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu")


class _Forward:
    """The forward of a patched module: a function made for its class. It stays when the module is copied or pickled."""

    def __init__(self, module, op, make, *of):
        self.module, self.op, self.made_of = module, op, (make, *of)
        self.function = make(type(module), *of)
        self.__signature__ = inspect.signature(types.MethodType(self.function, module))

    def __call__(self, *args, **kwargs):
        return self.function(self.module, *args, **kwargs)

    def __reduce__(self):
        # Where it is loaded the function is made, and tried, anew.
        return _Forward, (self.module, self.op, *self.made_of)

    def undo(self):
        """Takes it away from the module. What wrapped it since then stays, and gets the module's own."""
        if vars(self.module).get("forward") is self:
            del self.module.forward
        self.op, self.made_of = None, (_own,)
        self.function = _own(type(self.module))


def _own(cls):
    return cls.forward


def _patched(module):
    """The op that a module is patched with, or None."""
    forward = vars(module).get("forward")
    return forward.op if isinstance(forward, _Forward) else None


def _has_hooks(module):
    return bool(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    )


def _as_activation(cls, op):
    run = _OPS[op]

    def forward(self, input):
        return run(input)

    return forward


def _activation(module):
    """The op that gives a module's values, or None. The module's hooks see nothing of it."""
    if _patched(module):
        return _patched(module)
    if any(True for _ in module.parameters()) or any(True for _ in module.buffers()):
        return None
    x = torch.linspace(-8, 8, 129, dtype=torch.float32, device="cpu")
    return next((op for op in _ACTIVATIONS if _gives(lambda: module.forward(x.clone()), _OPS[op](x))), None)


def _by_two(cls, op, activation):
    run, own = _OPS[op], cls.forward

    def forward(self, x):
        if _has_hooks(getattr(self, activation)):
            return own(self, x)
        return self.down_proj(run(self.gate_proj(x), self.up_proj(x)))

    return forward


def _by_one(cls, op, activation):
    run, own = _OPS[op], cls.forward

    def forward(self, hidden_states):
        if _has_hooks(getattr(self, activation)):
            return own(self, hidden_states)
        return self.down_proj(run(self.gate_up_proj(hidden_states)))

    return forward


# Gated MLPs: their linear modules, what their activation is called, what makes the replacement, and its op's suffix.
_MLPS = (
    ({"gate_proj", "up_proj", "down_proj"}, ("act_fn", "activation_fn"), _by_two, "_and_mul_pair"),
    ({"gate_up_proj", "down_proj"}, ("activation_fn", "act_fn"), _by_one, "_and_mul"),
)


class _NoHooks:
    """An activation as a gated MLP's forward sees it."""

    _forward_hooks = _forward_pre_hooks = _backward_hooks = _backward_pre_hooks = ()

    def __init__(self, run):
        self.run = run

    def __call__(self, x):
        return self.run(x)


def _mlp(module):
    """The `forward` of a gated MLP; or why there is none; or None for what is no MLP."""
    children = {name for name, _ in module.named_children()}
    for linears, names, make, suffix in _MLPS:
        name = next((name for name in names if name in children), None)
        if name is None or not linears <= children:
            continue
        activation = getattr(module, name)
        op = _activation(activation)
        if op not in _GATED:
            return f"pointwise has no gated op of {type(activation).__name__}"
        if "forward" in vars(module):
            return "its forward is replaced already"
        if _has_hooks(activation) or "forward" in vars(activation) and not _patched(activation):
            return f"its {name} has hooks"
        forward = _Forward(module, op + suffix, make, op + suffix, name)
        # The module's own code with other linear maps.
        maps = {"gate_proj": lambda x: x + 1, "up_proj": lambda x: x * 2, "gate_up_proj": lambda x: x - 0.5}
        stand_in = types.SimpleNamespace(
            **{key: maps.get(key, lambda x: x * 3) for key in linears}, **{name: _NoHooks(_OPS[op])}
        )
        x = _numbers(3, 8)
        if not _gives(lambda: type(module).forward(stand_in, x), forward.function(stand_in, x)):
            return "its forward does more than a gated MLP"
        return forward
    return None


def _tables(cos, sin, batch):
    """Hugging Face's tables, [batch, sequence, lanes], as pointwise takes them: one for all, or one for each."""
    if cos.shape[0] == 1 and batch != 1:
        cos, sin = cos[0], sin[0]
    return cos.detach(), sin.detach()


def _pair(original, pairs):
    """The rotation of q and k. Tables have each angle twice, as the halves of a row."""

    # No functools.wraps: torch.compile looks for the defaults of what is wrapped. Nor defaults by keyword.
    def rotate(q, k, cos, sin, *others, **more):
        where = more.get("unsqueeze_dim", 1)
        if others or more.keys() - {"unsqueeze_dim"} or cos.dim() != 3 or q.dim() != 4 or where not in (1, 2):
            return original(q, k, cos, sin, *others, **more)
        if q.dtype not in _DTYPES:
            return original(q, k, cos, sin, *others, **more)
        width, layout = cos.shape[-1], {1: "bhsd", 2: "bshd"}[where]
        cos, sin = _tables(cos, sin, q.shape[0])
        return _OPS["rope"](q, k, cos, sin, layout=layout, pairs=pairs, rotary_dim=width)

    return rotate


def _single(original, pairs):
    """The rotation of one tensor, [batch, sequence, heads, lanes], as GPT-J has it."""

    def rotate(tensor, sin, cos):
        if cos.dim() != 3 or tensor.dim() != 4 or tensor.dtype not in _DTYPES:
            return original(tensor, sin, cos)
        width = 2 * cos.shape[-1]
        cos, sin = _tables(cos, sin, tensor.shape[0])
        return _OPS["rope_one"](tensor, cos, sin, layout="bshd", pairs=pairs, rotary_dim=width)

    return rotate


def _rotation(function):
    """The function that replaces a rotation, or None."""
    # With the package `kernels`, transformers has functions as modules.
    signature = inspect.signature(function.forward if isinstance(function, nn.Module) else function)
    names = list(signature.parameters)
    angles = _numbers(2, 3, 4)
    if names[:4] == ["q", "k", "cos", "sin"]:
        made = _pair
        wide = torch.cat((angles, angles), -1)
        args = (_numbers(2, 2, 3, 8), _numbers(2, 1, 3, 8), wide.cos(), wide.sin())
    elif names == ["tensor", "sin", "cos"]:
        made = _single
        args = (_numbers(2, 3, 2, 8), angles.sin(), angles.cos())
    else:
        return None
    for pairs in ("half", "interleaved", "interleaved_to_half"):
        rotate = made(function, pairs)
        if _gives(lambda: function(*args), rotate(*args)):
            return rotate
    return None


class Patch:
    """The changes that `patch` made. `undo()`, or leaving it as a context manager, brings the model's own back.

    replaced: pairs of the name of what is replaced and the op. kept: pairs of a name and why it is not replaced.
    """

    def __init__(self):
        self.replaced, self.kept, self._forwards = [], [], []

    def _set(self, forward):
        forward.module.forward = forward
        self._forwards.append(forward)

    def undo(self):
        """Brings the model's own back, and leaves what others have set since then. A second call does nothing."""
        while self._forwards:
            self._forwards.pop().undo()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.undo()

    def __repr__(self):
        lines = [f"{name}: {op}" for name, op in self.replaced]
        return "\n".join([*lines, *(f"{name}: kept, {why}" for name, why in self.kept)])


def patch(model):
    """Replaces rotary embedding, activations, gated MLPs and RMS norms of a Hugging Face model by pointwise's.

    model: a torch.nn.Module. Each module stays the object it is, with its parameters, names and hooks, and gets another
    `forward`; other models, of the same class too, stay as they are. A copy or a pickle of the model is patched, too; a
    `state_dict` is as before. A gated MLP whose activation has hooks runs its own code, so that they see what they saw; a
    decoder layer whose second norm has hooks, too.
    Returns a `Patch`: it says what is replaced, and what is not and why, and undoes it.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"patch(): argument 'model' must be torch.nn.Module, not {type(model).__name__}")
    patched = Patch()
    _norms(model, patched)
    for name, module in list(model.named_modules()):
        if _patched(module):
            continue
        found = _mlp(module)
        if isinstance(found, str):
            patched.kept.append((name, found))
        elif found is not None:
            patched._set(found)
            patched.replaced.append((name, found.op))
        _rotations(name, module, patched)
        for child, activation in list(module.named_children()):
            if type(activation).__module__ in _HOMES and not isinstance(found, _Forward) and not _patched(activation):
                _replace_activation(f"{name}.{child}".lstrip("."), activation, patched)
    return patched


def _norms(model, patched):
    """Replaces the norms, and the decoder layers that have one behind a sum."""
    found, tried = {}, {}
    for name, module in model.named_modules():
        if _patched(module) or not _patch_norms.is_candidate(module):
            continue
        if "forward" in vars(module):
            patched.kept.append((name, "its forward is replaced already"))
            continue
        kind = type(module), *(getattr(module, eps, None) for eps in _patch_norms.EPS)
        if kind not in tried:
            tried[kind] = _patch_norms.settings(module)
        if tried[kind] is None:
            patched.kept.append((name, "it is no norm that pointwise knows"))
            continue
        found[module] = tried[kind]
        patched._set(_Forward(module, "rms_norm", _patch_norms.as_norm, *tried[kind]))
        patched.replaced.append((name, "rms_norm"))
    for name, module in model.named_modules():
        if "forward" in vars(module):
            continue
        of = _patch_norms.layer(module, found)
        if of is not None:
            patched._set(_Forward(module, "add_rms_norm", _patch_norms.as_layer, *of))
            patched.replaced.append((name, "add_rms_norm"))


def _replace_activation(name, module, patched):
    if "forward" in vars(module):
        patched.kept.append((name, "its forward is replaced already"))
        return
    op = _activation(module)
    if op is None:
        patched.kept.append((name, f"pointwise has no op of {type(module).__name__}"))
        return
    patched._set(_Forward(module, op, _as_activation, op))
    patched.replaced.append((name, op))


def _known_rotations(forward):
    """The functions that replace the rotations in a module's code, by their names; None for an unknown rotation."""
    used = {g for g in inspect.unwrap(forward).__code__.co_names if g.startswith("apply_rotary")}
    used = {g: forward.__globals__.get(g) for g in sorted(used)}
    return {g: _rotation(function) for g, function in used.items() if callable(function)}


def _with_rotations(cls):
    """A module's own code, which calls pointwise's rotations."""
    forward = cls.forward
    found = {g: rotate for g, rotate in _known_rotations(forward).items() if rotate is not None}
    if not found:
        raise RuntimeError(
            f"{cls.__name__} was patched where its rotary embedding was one that pointwise knows, and here it is not: "
            "use the version of transformers that it was saved with, or undo the patch before you save it"
        )
    # By its name torch.compile would find the module, whose rotation is another.
    scope = {k: v for k, v in forward.__globals__.items() if k != "__name__"} | found
    made = types.FunctionType(forward.__code__, scope, forward.__name__, forward.__defaults__, forward.__closure__)
    made.__kwdefaults__, made.__module__ = forward.__kwdefaults__, forward.__module__
    return made


def _rotations(name, module, patched):
    """Gives a module a `forward` whose code calls pointwise's rotation."""
    forward = type(module).forward
    if not isinstance(forward, types.FunctionType):
        return
    known = _known_rotations(forward)
    for function, rotate in known.items():
        if rotate is None:
            patched.kept.append((f"{name}: {function}", "it is no rotation that pointwise knows"))
    found = [function for function, rotate in known.items() if rotate is not None]
    if not found:
        return
    if "forward" in vars(module) or inspect.unwrap(forward) is not forward:
        patched.kept.append((name, "its forward is replaced or decorated already"))
        return
    patched._set(_Forward(module, "rope", _with_rotations))
    patched.replaced += [(f"{name}: {function}", "rope") for function in found]
