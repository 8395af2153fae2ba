"""Rotary embedding: by tables of cosines and sines, and the named variants, whose tables are made in Rust and kept."""

import functools

import torch
from torch import Tensor
from torch.autograd import Function
from torch.overrides import handle_torch_function, has_torch_function

from . import _autograd, _native, _register

_dynamo = torch.compiler.is_dynamo_compiling

_SETTINGS = (
    "Tensor cos, Tensor sin, Tensor? position_ids=None, *, int offset=0, int? rotary_dim=None, str layout='bshd', "
    "str pairs='half', str rotated_lanes='lead', float q_scale=1.0, float k_scale=1.0, bool backward=False"
)
SCHEMAS = {
    "rope": f"rope(Tensor q, Tensor k, {_SETTINGS}) -> (Tensor, Tensor)",
    "rope_one": f"rope_one(Tensor q, {_SETTINGS}) -> Tensor",
}


def _unit(tensor):
    """The tensor with neighbouring lanes, which the kernels need."""
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] == 1 else tensor.contiguous()


def _function(kernel, count):
    """`apply` of a rotation of `count` tensors. The gradient is the rotation backwards, and its gradient the
    rotation."""

    def run(*args):
        return kernel(*(_unit(t) for t in args[:count]), *args[count:])

    def save(ctx, args):
        ctx.save_for_backward(*args[count : count + 3])
        ctx.save_for_forward(*args[count : count + 3])
        ctx.rest = args[count + 3 :]

    def backward(ctx, *grads):
        cos, sin, ids = ctx.saved_tensors
        *rest, backwards = ctx.rest
        results = apply(*grads, cos, sin, ids, *rest, not backwards)
        results = results if isinstance(results, tuple) else (results,)
        return (*results, *[None] * (4 + len(rest)))

    class Plain(_autograd.SingleLevelFunction):
        @staticmethod
        def forward(ctx, *args):
            save(ctx, args)
            return run(*args)

    class Functorch(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*args):
            return run(*args)

        @staticmethod
        def setup_context(ctx, inputs, output):
            save(ctx, inputs)

    def jvp(ctx, *tangents):
        # It is linear.
        return apply(*tangents[:count], *ctx.saved_tensors, *ctx.rest)

    Plain.backward = Functorch.backward = staticmethod(backward)
    Plain.jvp = Functorch.jvp = staticmethod(jvp)
    Plain.__name__ = Functorch.__name__ = Plain.__qualname__ = Functorch.__qualname__ = f"pointwise_{kernel.__name__}"
    differentiable = _autograd.choose(Plain, Functorch)

    def apply(*args):
        if _autograd.is_asked(args[:count]):
            return differentiable(*args)
        return run(*args)

    return apply


def _check(tensors, cos, sin, position_ids):
    for name, x in (*tensors, ("cos", cos), ("sin", sin)):
        if not isinstance(x, Tensor):
            raise TypeError(f"rope(): argument '{name}' must be Tensor, not {type(x).__name__}")
    if position_ids is not None and not isinstance(position_ids, Tensor):
        raise TypeError(f"rope(): argument 'position_ids' must be Tensor, not {type(position_ids).__name__}")
    if (torch.is_grad_enabled() and (cos.requires_grad or sin.requires_grad)) or any(
        _autograd.has_tangent(t) for t in (cos, sin)
    ):
        raise RuntimeError("rope has no gradient for its tables: detach() them")
    dtype = tensors[0][1].dtype
    if dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise NotImplementedError(f"\"rope\" is not implemented for '{dtype}': it takes float32, float16, bfloat16")


def make(library, inner, public, variants):
    """Defines the public ops. Returns the functions."""
    for schema in SCHEMAS.values():
        library.define(schema, tags=_register.TAGS)
    apply_one, apply = _function(inner.rope_one.default, 1), _function(inner.rope.default, 2)

    def prepared(q, cos, sin, position_ids, settings):
        tables = [_unit(t if t.dtype in (q.dtype, torch.float32) else t.float()) for t in (cos, sin)]
        if tables[0].dtype != tables[1].dtype:
            tables = [t.float() for t in tables]
        return (*tables, position_ids, *settings)

    def rope_one(
        q, cos, sin, position_ids=None, *, offset=0, rotary_dim=None, layout="bshd", pairs="half", rotated_lanes="lead",
        q_scale=1.0, k_scale=1.0, backward=False,
    ):  # fmt: skip
        """Rotates q alone: see `rope`."""
        if _dynamo():
            return public.rope_one(
                q, cos, sin, position_ids, offset=offset, rotary_dim=rotary_dim, layout=layout, pairs=pairs,
                rotated_lanes=rotated_lanes, q_scale=q_scale, k_scale=k_scale, backward=backward,
            )  # fmt: skip
        if has_torch_function((q, cos, sin, position_ids)):
            return handle_torch_function(
                rope_one, (q, cos, sin, position_ids), q, cos, sin, position_ids, offset=offset, rotary_dim=rotary_dim,
                layout=layout, pairs=pairs, rotated_lanes=rotated_lanes, q_scale=q_scale, k_scale=k_scale,
                backward=backward,
            )  # fmt: skip
        _check((("q", q),), cos, sin, position_ids)
        settings = offset, rotary_dim, layout, pairs, rotated_lanes, q_scale, k_scale, backward
        return apply_one(q, *prepared(q, cos, sin, position_ids, settings))

    def rope(
        q, k, cos, sin, position_ids=None, *, offset=0, rotary_dim=None, layout="bshd", pairs="half",
        rotated_lanes="lead", q_scale=1.0, k_scale=1.0, backward=False,
    ):  # fmt: skip
        """Rotary embedding of q and k (None: of q alone) by tables of cosines and sines, in one launch.

        q, k: [batch, sequence, heads, head_dim], or as `layout` says (bshd, bhsd, sbhd, thd, sd); float32, float16 or
        bfloat16. cos, sin: [rows, width], or with a row for each token [batch, sequence, width]; the width is half of
        the lanes that rotate, or all of them (Hugging Face's). The row of a token is its index and `offset`, or its
        number in `position_ids` ([sequence] or [batch, sequence]). `pairs`: half (NeoX, Llama), interleaved (GPT-J) or
        interleaved_to_half (DeepSeek). `rotated_lanes`: lead or trail, where `rotary_dim` lanes rotate.
        """
        settings = {
            "offset": offset, "rotary_dim": rotary_dim, "layout": layout, "pairs": pairs,
            "rotated_lanes": rotated_lanes, "q_scale": q_scale, "k_scale": k_scale, "backward": backward,
        }  # fmt: skip
        if _dynamo():
            if k is None:
                return public.rope_one(q, cos, sin, position_ids, **settings), None
            return public.rope(q, k, cos, sin, position_ids, **settings)
        if has_torch_function((q, k, cos, sin, position_ids)):
            tensors = q, k, cos, sin, position_ids
            return handle_torch_function(rope, tensors, *tensors, **settings)
        if k is None:
            return rope_one(q, cos, sin, position_ids, **settings), None
        _check((("q", q), ("k", k)), cos, sin, position_ids)
        return apply(q, k, *prepared(q, cos, sin, position_ids, settings.values()))

    functions = {"rope": rope, "rope_one": rope_one}
    tables = _define_tables(library, public)
    for variant in variants:
        functions[variant["name"]] = _named(rope, tables, **variant)
    return functions


@functools.lru_cache(maxsize=64)
def _tables(name, settings, head_dim, length, device):
    rows = _native.rope_tables(name, list(settings), head_dim, length)
    cos, sin = (torch.frombuffer(bytearray(r), dtype=torch.float32).reshape(length, -1) for r in rows)
    return cos.to(device), sin.to(device)


def _define_tables(library, public):
    """The tables as an op, which a compiled graph can have."""
    library.define(
        "rope_tables(str name, str[] settings, int head_dim, int length, Device device) -> (Tensor, Tensor)",
        tags=_register.TAGS,
    )

    def split(settings):
        return tuple(tuple(setting.split("=", 1)) for setting in settings)

    def tables(name, settings, head_dim, length, device):
        return _tables(name, split(settings), head_dim, length, torch.device(device))

    def fake(name, settings, head_dim, length, device):
        width = len(_native.rope_tables(name, list(split(settings)), head_dim, 1)[0]) // 4
        return torch.empty(length, width, device=device), torch.empty(length, width, device=device)

    library.impl("rope_tables", tables, "CompositeExplicitAutograd")
    torch.library.register_fake("pointwise::rope_tables", fake, lib=library)
    return public.rope_tables.default


def _text(value):
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _named(rope, tables, name, interleaved, doc):
    default = "interleaved" if interleaved else "half"

    def function(
        q, k=None, position_ids=None, *, offset=0, rotary_dim=None, layout="bshd", pairs=default, rotated_lanes="lead",
        q_scale=1.0, k_scale=1.0, max_positions=None, **settings,
    ):  # fmt: skip
        if not isinstance(q, Tensor):
            raise TypeError(f"{name}(): argument 'q' (position 1) must be Tensor, not {type(q).__name__}")
        if max_positions is None:
            if position_ids is not None:
                max_positions = int(position_ids.max()) + 1 if position_ids.numel() else 1
            else:
                max_positions = offset + q.shape[{"bshd": 1, "bhsd": 2}.get(layout, 0)]
            # Few tables serve a sequence that grows; longrope goes by the length itself.
            settings.setdefault("seq_len", max_positions)
            max_positions = max(64, 1 << (max_positions - 1).bit_length())
        if rotary_dim is not None:
            settings["rotary_dim"] = rotary_dim
        if name != "rope_longrope":
            settings.pop("seq_len", None)
        chosen = sorted(f"{key}={_text(value)}" for key, value in settings.items())
        cos, sin = tables(name, chosen, q.shape[-1], max_positions, q.device)
        return rope(
            q, k, cos, sin, position_ids, offset=offset, layout=layout, pairs=pairs, rotary_dim=rotary_dim,
            rotated_lanes=rotated_lanes, q_scale=q_scale, k_scale=k_scale,
        )  # fmt: skip

    function.__name__ = name
    function.__doc__ = f"""{doc}

        q, k, `position_ids`, `layout` and the others are those of `rope`; further settings are those of Hugging Face's
        configurations (`rope_theta`, `factor`, ..). Without `position_ids` tokens stand at their index and `offset`.
        The table has a row for each position up to the greatest; `max_positions` says how many there are, and saves
        looking. Returns q and k, None for a k that is none.
        """
    return function
