"""RMS norms of Hugging Face's models, and decoder layers that have one behind a sum, replaced by pointwise's.

A norm is found by trying it, whatever its class is called: on a few numbers its module's own code gives the op's values, in f32
and in bf16, which tells what is rounded.
"""

import copy
import inspect
import itertools
import types

import torch
from torch import nn

from . import _torch_ops

_OPS = _torch_ops.FUNCTIONS
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
# What models call the number beside the mean.
EPS = ("variance_epsilon", "eps", "epsilon", "norm_eps")
# The elements of a row that norms are tried on.
_WIDTH = 48


def _numbers(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float32, device="cpu")


def _probe(module, weight):
    """The module with another weight, to try its class's own code on."""
    probe = copy.copy(module)
    vars(probe)["_parameters"] = {"weight": nn.Parameter(weight, requires_grad=False)}
    vars(probe).pop("forward", None)
    return probe


def is_candidate(module):
    """True for a module that may be a norm: it has a weight of one dimension and nothing else."""
    names = [name for name, _ in module.named_parameters(recurse=False)]
    return (
        names == ["weight"]
        and module.weight.dim() == 1
        and not type(module).__module__.startswith("torch.")
        and not any(True for _ in module.children())
        and not any(True for _ in module.buffers())
        and any(isinstance(getattr(module, name, None), float) for name in EPS)
    )


def settings(module):
    """The parameters of `rms_norm` that a module gives the values of, or None: its name for eps, offset and rounded."""
    name = next(name for name in EPS if isinstance(getattr(module, name, None), float))
    x, weight = _numbers(0, 16, _WIDTH), _numbers(1, _WIDTH)
    best = None
    for offset, rounded in itertools.product((0.0, 1.0), (True, False)):
        equal = 0
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 1.6e-2)):
            own_x, own_weight = x.to(dtype), weight.to(dtype)
            try:
                with torch.no_grad():
                    want = type(module).forward(_probe(module, own_weight), own_x)
            except Exception:
                return None
            got = _OPS["rms_norm"](own_x, own_weight, eps=getattr(module, name), offset=offset, rounded=rounded)
            if not isinstance(want, torch.Tensor) or (want.dtype, want.shape) != (dtype, x.shape):
                return None
            if not torch.allclose(got, want, rtol=tolerance, atol=tolerance):
                break
            equal = int((got == want).sum())
        else:
            # Both ways to round are close: the module's own gives its bits.
            best = max(best or (0,), (equal, name, offset, rounded))
    return best and best[1:]


def _takes(x, weight):
    """True if the op takes these as the module's own code would: elements of one type, and nothing that autocast changes."""
    return (
        x.dtype is weight.dtype
        and x.dtype in _DTYPES
        and x.dim() > 0
        and not torch.is_autocast_enabled(x.device.type)
    )


def as_norm(cls, eps, offset, rounded):
    """The forward of a norm."""
    run, own = _OPS["rms_norm"], cls.forward

    def forward(self, *args, **kwargs):
        if kwargs or len(args) != 1 or not _takes(args[0], self.weight):
            return own(self, *args, **kwargs)
        return run(args[0], self.weight, eps=getattr(self, eps), offset=offset, rounded=rounded)

    return forward


# Decoder layers: their modules, which of them is behind the sum, and which comes before it, if any.
_LAYERS = (
    ({"input_layernorm", "self_attn", "post_attention_layernorm", "mlp"}, "post_attention_layernorm", None, None),
    (
        {
            "input_layernorm",
            "self_attn",
            "post_attention_layernorm",
            "pre_feedforward_layernorm",
            "mlp",
            "post_feedforward_layernorm",
        },
        "pre_feedforward_layernorm",
        "post_attention_layernorm",
        "post_feedforward_layernorm",
    ),
)


def as_layer(cls, behind, before, after, eps, offset, rounded):
    """The forward of a decoder layer, whose sum of attention and residual is one op with the norm `behind` it. `before` and
    `after` are the norms of what attention and the MLP give, if there are any.
    """
    run, own = _OPS["add_rms_norm"], cls.forward
    parameters = list(inspect.signature(own).parameters.values())[2:]
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}

    def forward(self, hidden_states, *args, **kwargs):
        norm = getattr(self, behind)
        if not _takes(hidden_states, norm.weight) or norm._forward_hooks or norm._forward_pre_hooks:
            return own(self, hidden_states, *args, **kwargs)
        given = {**defaults, **dict(zip(names, args)), **kwargs}
        made, _ = self.self_attn(hidden_states=self.input_layernorm(hidden_states), **given)
        made = getattr(self, before)(made) if before else made
        made, total = run(
            made, hidden_states, norm.weight, eps=getattr(norm, eps), offset=offset, rounded=rounded
        )
        made = self.mlp(made)
        return total + (getattr(self, after)(made) if after else made)

    return forward


class _Attention:
    """Attention as a layer's forward sees it: keeps what it is called with."""

    def __init__(self):
        self.calls = []

    def __call__(self, *args, **kwargs):
        self.calls.append((args, {name: value for name, value in kwargs.items() if name != "hidden_states"}))
        return 0.5 - kwargs["hidden_states"], None


def layer(module, found):
    """The arguments of `as_layer` for a decoder layer, or None. `found` has the settings of the norms, by their modules."""
    children = dict(module.named_children())
    own = type(module).forward
    for names, behind, before, after in _LAYERS:
        if set(children) != names or children[behind] not in found:
            continue
        norm = children[behind]
        args = (behind, before, after, *found[norm])
        made = as_layer(type(module), *args)
        given = [object() for name in list(inspect.signature(own).parameters)[2:4]]
        results = []
        for forward in (own, made):
            stand_in = types.SimpleNamespace(
                **{name: (lambda x, k=k: x * (1.5 + k)) for k, name in enumerate(sorted(names - {"self_attn", behind}))},
                self_attn=_Attention(),
                **{behind: _probe(norm, _numbers(2, _WIDTH))},
            )
            try:
                with torch.no_grad():
                    result = forward(stand_in, _numbers(3, 4, _WIDTH), *given, more=1)
            except Exception:
                return None
            results.append((result, stand_in.self_attn.calls))
        (want, own_calls), (got, calls) = results
        if isinstance(want, torch.Tensor) and torch.allclose(got, want, rtol=1e-5, atol=1e-5) and calls == own_calls:
            return args
    return None
