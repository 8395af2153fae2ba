"""PyTorch's function of an op: the one of the same name in torch or in torch.nn.functional, but for those below. The benchmarks,
the golden files and the tests of the Python package ask here."""

import torch
import torch.nn.functional as F


def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


def gated(activation):
    """A function of a tensor whose last dimension holds gate and value."""

    def call(x):
        gate, value = x.chunk(2, dim=-1)
        return activation(gate) * value

    return call


def pair(activation):
    """A function of gate and value."""
    return lambda gate, value: activation(gate) * value


def round_decimals(x, decimals=0):
    # torch's kernel on the CPU refuses integers with decimals, be they 0.
    return torch.round(x, decimals=decimals) if decimals else torch.round(x)


# Ops without a function of their name.
OTHERS = {
    "gelu_tanh": gelu_tanh,
    "round_decimals": round_decimals,
    "div_trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "clamp_tensor": torch.clamp,
    **{f"{name}_and_mul": gated(call) for name, call in (("silu", F.silu), ("gelu", F.gelu), ("gelu_tanh", gelu_tanh))},
    **{f"{name}_and_mul_pair": pair(call) for name, call in (("silu", F.silu), ("gelu", F.gelu), ("gelu_tanh", gelu_tanh))},
}


def function(name):
    """Returns PyTorch's function of an op. Raises KeyError if there is none."""
    found = OTHERS.get(name) or getattr(torch, name, None) or getattr(F, name, None)
    if found is None:
        raise KeyError(f"no PyTorch function for {name}")
    return found
