#!/usr/bin/env python3
"""Makes the golden files: what PyTorch computes for the ops of pointwise, for `tests/tests/golden.rs` to compare with.

    python3 tests/golden/make.py [--device cuda|cpu] [--out DIR] [--group RE]

Needs torch and safetensors. The files in the repository come from CUDA.

Format. One safetensors file a group. Its metadata has one key, `golden`, a JSON object: `format` (1), `torch`,
`device` (`cpu` or the GPU's name), `refused` (the cases that PyTorch has no kernel for: nothing to compare) and
`cases`, a list of objects:

    name      what the case is called: op, element types, form
    op        pointwise's name of the op; `OP_backward` for gradients; `to` for conversions
    params    the parameters that are not left at their default
    inputs    the operands in call order: a tensor's name, {"float": x}, {"int": x}, {"bool": x} for a number (x may
              be the string "inf", "-inf" or "nan"), or null for one left out. Gradients take the result's first.
    outputs   names of PyTorch's results: one, or for gradients one for each operand
    exact     names of float64 results on the same inputs, or null where the result is not a float

Inputs, parameters and numbers are rounded to the type that PyTorch computes in before the float64 result is made, so
that rounding them is no error. Tensors of the same contents are stored once.
"""
import argparse
import hashlib
import json
import math
import re
import sys
import zlib
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches/peers"))
import torch_functions  # noqa: E402
from torch_functions import function  # noqa: E402

TYPES = {
    torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int8: "i8", torch.int16: "i16",
    torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8", torch.bool: "bool",
}
FLOATS = [torch.float32, torch.float16, torch.bfloat16]
INTS = [torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8]
INF, NAN = math.inf, math.nan
SPECIAL = [
    0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.5, 3.0, -3.0, 6.0, -6.0, 0.1, -0.1, 2.0,
    -2.0, 20.0, 20.000002, -20.0, 5.75, -5.75, 13.2, -13.2, 88.72284, 88.72285, -87.33655, -103.97208, -104.0, 11.09,
    -17.4, 1e-3, -1e-3, 1e-7, -1e-7, 0.99999994, -0.99999994, 3.1415927, 1.5707964, 1e5, 1e10, -1e10, 8388608.5,
    16777217.0, 2.9998, 99.996, 1234.565, -0.00567,
]
PAIRS = [
    (1.0, 0.1), (1e20, 3.0), (-1e-45, 1.0), (3.4028235e38, 0.1), (3.4028235e38, -3.4028235e38), (-2.0, 1.0),
    (2.0, -1.0), (-1.0, INF), (1.0, -INF), (-2.0, 0.5), (-2.0, 3.0), (-2.0, -3.0), (-0.0, -1.0), (-0.0, -2.0),
    (-0.0, 3.0), (-0.0, 0.5), (-INF, 0.5), (-INF, 3.0), (-INF, -3.0), (0.5, INF), (0.5, -INF), (2.0, INF), (2.0, -INF),
    (-1.0, INF), (-1.0, -INF), (1.0, NAN), (NAN, 0.0), (7.0, 2.0), (-7.0, 2.0), (7.0, -2.0), (2.9998, 1.0),
    (5.9999, 2.0), (10.0, 10.0),
]
OTHERS = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, 2.0, -0.5, 3.0]


def rounded(value):
    """A parameter as the f32 that PyTorch's kernels take it as."""
    if not isinstance(value, float):
        return value
    return torch.tensor(value, dtype=torch.float64).float().item()


class Group:
    """The cases of one file."""

    def __init__(self, name, device):
        self.name, self.device = name, device
        self.tensors, self.names, self.cases, self.refused = {}, {}, [], []

    def store(self, tensor):
        """The name of a tensor in the file."""
        tensor = tensor.detach().cpu().contiguous()
        data = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        key = (str(tensor.dtype), tuple(tensor.shape), hashlib.sha256(data).digest())
        if key not in self.names:
            self.names[key] = f"t{len(self.names)}"
            self.tensors[self.names[key]] = tensor.clone()
        return self.names[key]

    def operand(self, operand):
        """An operand as the file's JSON has it."""
        if operand is None:
            return None
        if isinstance(operand, torch.Tensor):
            return self.store(operand)
        kind = type(operand).__name__
        if isinstance(operand, float) and not math.isfinite(operand):
            operand = str(operand)
        return {kind: operand}

    def add(self, form, op, call, operands, params=None, exact=None):
        """A case: `call(*operands, **params)` on the device, and `exact` (or `call`) of it in float64."""
        params = params or {}
        kinds = "-".join(TYPES[x.dtype] for x in operands if isinstance(x, torch.Tensor))
        name = "/".join(filter(None, (op, kinds, form)))
        on_device = [x.to(self.device) if isinstance(x, torch.Tensor) else x for x in operands]
        try:
            outputs = call(*on_device, **params)
        except (RuntimeError, NotImplementedError, TypeError) as error:
            self.refused.append({"name": name, "why": str(error).splitlines()[0][:120]})
            return
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        references = [None] * len(outputs)
        if any(output.dtype in FLOATS for output in outputs):
            common = next(output.dtype for output in outputs if output.dtype in FLOATS)
            wide = [wider(x, common, op) for x in on_device]
            references = (exact or call)(*wide, **{name: rounded(value) for name, value in params.items()})
            references = references if isinstance(references, tuple) else (references,)
        self.cases.append({
            "name": name, "op": op, "params": params, "inputs": [self.operand(x) for x in operands],
            "outputs": [self.store(x) for x in outputs],
            "exact": [None if r is None else self.store(r.double()) for r in references],
        })

    def save(self, folder):
        names = [case["name"] for case in self.cases]
        assert len(set(names)) == len(names), sorted(name for name in set(names) if names.count(name) > 1)
        device = torch.cuda.get_device_name(0) if self.device == "cuda" else "cpu"
        about = {"format": 1, "torch": torch.__version__, "device": device, "refused": self.refused}
        about["cases"] = self.cases
        # One key: with more, their order would differ from run to run.
        metadata = {"golden": json.dumps(about, separators=(",", ":"), allow_nan=False)}
        path = Path(folder, f"{self.name}.safetensors")
        save_file(self.tensors, path, metadata)
        print(f"{path}: {len(self.cases)} cases, {len(self.refused)} refused, {path.stat().st_size} bytes")


def wider(operand, common, op):
    """An operand in float64, rounded to the type of the result, which PyTorch converts it to. Masks stay."""
    if not isinstance(operand, torch.Tensor):
        return rounded(operand)
    is_mask = operand.dtype == torch.bool and op.startswith(("where", "masked"))
    return operand if is_mask or op == "cross_entropy" and operand.dtype == torch.int64 else operand.to(common).double()


def generator(seed):
    return torch.Generator().manual_seed(zlib.crc32(str(seed).encode()))


def extremes(dtype):
    """The ends of a float type's range."""
    info = torch.finfo(dtype)
    least = info.smallest_normal * info.eps
    return [info.max, -info.max, info.smallest_normal, -info.smallest_normal, least, -least]


def wide(dtype, n, seed):
    """Any bits."""
    if dtype == torch.float32:
        return torch.randint(-(2**31), 2**31 - 1, (n,), generator=generator(seed), dtype=torch.int32).view(dtype)
    return torch.randint(-(2**15), 2**15, (n,), generator=generator(seed), dtype=torch.int16).view(dtype)


def floats(dtype, n, seed=1):
    """Special values, then values of usual size, then any bits: `n` in all."""
    special = torch.tensor(extremes(dtype) + SPECIAL, dtype=torch.float64).to(dtype)
    more = n - len(special)
    usual = (torch.randn(more - more // 3, generator=generator(seed)) * 4).to(dtype)
    return torch.cat([special, usual, wide(dtype, more // 3, seed)])


def pairs(dtype, n, seed=2):
    """Special values with each other, pairs that formulas treat apart, then random ones."""
    ends = extremes(dtype)[:3] + extremes(dtype)[4:5]
    grid = [(a, b) for a in OTHERS + ends for b in OTHERS + ends]
    fixed = torch.tensor(grid + PAIRS, dtype=torch.float64).to(dtype)
    more = n - len(fixed)
    usual = (torch.randn((more, 2), generator=generator(seed)) * 4).to(dtype)
    usual[::5] = wide(dtype, 2 * len(usual[::5]), seed).view(-1, 2)
    # Positive bases, near ones, and equal pairs.
    usual[1::5, 0] = usual[1::5, 0].abs()
    usual[2::10, 1] = usual[2::10, 0]
    both = torch.cat([fixed, usual])
    return both[:, 0].contiguous(), both[:, 1].contiguous()


def ints(dtype, n, seed=3):
    """Extremes, small numbers, then any."""
    if dtype == torch.bool:
        return torch.randint(0, 2, (n,), generator=generator(seed)).bool()
    info = torch.iinfo(dtype)
    fixed = [0, 1, 2, 3, 5, 7, info.max, info.min, info.max - 1, info.min + 1]
    fixed += [] if dtype == torch.uint8 else [-1, -2, -3, -7]
    small = torch.randint(-9 if info.min else 0, 10, ((n - len(fixed)) // 2,), generator=generator(seed), dtype=dtype)
    rest = n - len(fixed) - len(small)
    any_bits = torch.randint(info.min, info.max, (rest,), generator=generator(seed), dtype=dtype)
    return torch.cat([torch.tensor(fixed, dtype=dtype), small, any_bits])


def values(dtype, n, seed=1):
    return floats(dtype, n, seed) if dtype in FLOATS else ints(dtype, n, seed)


def int_pairs(dtype, n, seed=4):
    """All pairs of the first values, then random pairs."""
    x = ints(dtype, 2 * n, seed)
    first = min(12, n)
    grid = torch.cartesian_prod(x[:first], x[:first])
    order = torch.randperm(2 * n, generator=generator(seed))
    return torch.cat([grid[:, 0], x[order[:n]]]), torch.cat([grid[:, 1], x[order[n:]]])


# In float64 torch's own gelu cancels in the negative tail: these forms do not.
def gelu_exact(x):
    return 0.5 * x * torch.special.erfc(-x * 0.5**0.5)


def gelu_tanh_exact(x):
    return x * torch.sigmoid((8 / math.pi) ** 0.5 * (x + 0.044715 * x**3))


# Functions of the same gradients, which in torch's formulas cancel in float64.
def sigmoid_exact(x):
    return torch.where(x > 0, -torch.sigmoid(-x), torch.sigmoid(x))


def tanh_exact(x):
    return 2 * sigmoid_exact(2 * x)


GRADIENT_EXACT = {"expm1": torch.exp, "sigmoid": sigmoid_exact, "tanh": tanh_exact}


# Ops in the order of their cases. Some have an exact function, or sets of parameters.
UNARY = dict.fromkeys(
    "exp log sqrt rsqrt abs neg reciprocal sign sin cos floor ceil round trunc erf log1p expm1 relu gelu gelu_tanh "
    "silu sigmoid tanh leaky_relu elu selu hardswish hardsigmoid hardtanh softplus mish logical_not bitwise_not isnan "
    "isinf isfinite nan_to_num clamp round_decimals".split(), ()
) | {
    "gelu": (gelu_exact,), "gelu_tanh": (gelu_tanh_exact,), "leaky_relu": (None, {"negative_slope": 0.2}),
    "elu": (None, {"alpha": 1.25}), "hardtanh": (None, {"min_val": -0.75, "max_val": 2.5}),
    "softplus": (None, {"beta": 2.0, "threshold": 5.0}),
    "nan_to_num": (None, {"nan": 1.5, "posinf": 100.0, "neginf": -100.0}),
    "clamp": (None, {"min": -0.75, "max": 2.5}, {"min": 0.5}, {"max": 0.5}, {"min": 2.0, "max": -1.0}),
    "round_decimals": (None, {"decimals": 2}, {"decimals": -1}, {"decimals": 3}),
}
UNARY = {op: (function(op), *more) for op, more in UNARY.items()}
INT_PARAMS = {
    "hardtanh": ({"min_val": -2, "max_val": 3},), "clamp": ({"min": -2, "max": 3}, {"min": 1}, {"max": 1}),
    "nan_to_num": ({"nan": 1.0, "posinf": 2.0, "neginf": 3.0},), "round_decimals": ({"decimals": 2},),
}
U8_PARAMS = {"hardtanh": ({"min_val": 2, "max_val": 30},), "clamp": ({"min": 2, "max": 30}, {"min": 9}, {"max": 9})}
PARAMS = {torch.uint8: U8_PARAMS, torch.bool: {}}
ALPHAS = {"alpha": 1.4142135}, {"alpha": -2}
BINARY = {
    op: (function(op), *(ALPHAS if op in ("add", "sub") else ()))
    for op in "add sub mul div div_trunc floor_divide remainder pow maximum minimum".split()
}
COMPARISON = {op: function(op) for op in "eq ne gt lt ge le logical_and logical_or".split()}
BITWISE = {op: function(op) for op in "bitwise_and bitwise_or bitwise_xor".split()}
DIVIDES = {"div_trunc", "floor_divide", "remainder"}
REAL = "exp log sqrt rsqrt reciprocal sin cos erf log1p expm1 sigmoid tanh".split()


def form_of(params):
    return ",".join(f"{name}={value}" for name, value in params.items())


def unary(group):
    for op, (call, *rest) in UNARY.items():
        exact, sets = (rest or [None])[0], list(rest[1:])
        for dtype in (*FLOATS, *INTS, torch.bool):
            given = sets if dtype in FLOATS else PARAMS.get(dtype, INT_PARAMS).get(op, ())
            # Real functions of integers promote: in their own file.
            if dtype not in FLOATS and op in REAL:
                continue
            defaults = [] if op == "clamp" else [{}]
            for params in (*defaults, *given):
                x = values(dtype, 128 if dtype in FLOATS else 32)
                group.add(form_of(params), op, call, [x], params, exact)


def operand_pairs(op, dtype, n):
    if dtype in FLOATS:
        return pairs(dtype, n)
    a, b = int_pairs(dtype, n // 4)
    if op in DIVIDES:
        # CUDA leaves a quotient by zero open, and the smallest number by -1 is a fault on some processors.
        keep = b != 0
        if dtype not in (torch.uint8, torch.bool):
            keep &= (b != -1) | (a != torch.iinfo(dtype).min)
        a, b = a[keep], b[keep]
    return a, b


def binary(group):
    for op, (call, *sets) in BINARY.items():
        for dtype in (*FLOATS, *INTS, torch.bool):
            if op == "div" and dtype not in FLOATS:
                continue
            a, b = operand_pairs(op, dtype, 288)
            if sets and dtype not in FLOATS:
                # A bool sum takes no factor but 0 and 1.
                sets_here = [] if dtype == torch.bool else [{"alpha": 3 if dtype == torch.uint8 else -2}]
            else:
                sets_here = sets
            for params in ({}, *sets_here):
                group.add(form_of(params), op, call, [a, b], params)


def comparison(group):
    for op, call in COMPARISON.items():
        for dtype in (*FLOATS, *INTS, torch.bool):
            group.add("", op, call, list(operand_pairs(op, dtype, 240)))


def bitwise(group):
    for op, call in BITWISE.items():
        for dtype in (*INTS, torch.bool):
            group.add("", op, call, list(operand_pairs(op, dtype, 240)))


def scalar(group):
    """An operand that is a number, of no higher category than the tensor's type."""
    whole = (2, -3, 1)
    for dtype in (*FLOATS, torch.int32, torch.int64, torch.uint8):
        x = values(dtype, 96 if dtype in FLOATS else 24, 5)
        for op, (call, *_) in BINARY.items():
            if op in ("maximum", "minimum") or op == "div" and dtype not in FLOATS:
                continue
            numbers = (0.3, 2.0, -3.0, 0.5, 3, -1.5, 0.0) if dtype in FLOATS else whole
            if dtype == torch.uint8 or op == "pow" and dtype in INTS:
                numbers = tuple(number for number in numbers if number > 0)
            for number in numbers:
                group.add(f"number={number}", op, call, [x, number])
            if op == "sub":
                continue
            if op in ("div", "pow") and dtype in FLOATS:
                group.add("number=2.5 first", op, lambda a, b, call=call: call(torch.full_like(b, a), b), [2.5, x])
        for op, call in COMPARISON.items():
            if not op.startswith("logical"):
                for number in (0.3, -1.5, 0.0, 2) if dtype in FLOATS else whole:
                    if number >= 0 or dtype != torch.uint8:
                        group.add(f"number={number}", op, call, [x, number])
        mask = ints(torch.bool, len(x), 6)
        for number in (-100.0, INF, 0.1) if dtype in FLOATS else (7, 0):
            group.add(f"number={number}", "masked_fill", torch.masked_fill, [x, mask, number])
        group.add("number", "where", torch.where, [mask, x, 3.0 if dtype in FLOATS else 3])
        if dtype in FLOATS:
            y = values(dtype, 96, 7)
            for weight in (0.3, 0.5, 0.7, -1.5):
                group.add(f"weight={weight}", "lerp", torch.lerp, [x, y, weight])


def ternary(group):
    for dtype in FLOATS:
        n = 256
        a, b = pairs(dtype, n, 8)
        weight = floats(dtype, n, 9)[torch.randperm(n, generator=generator(10))]
        weight[: n // 2] = torch.rand(n // 2, generator=generator(11)).to(dtype)
        group.add("", "lerp", torch.lerp, [a, b, weight])
    for dtype in (*FLOATS, *INTS):
        n = 256 if dtype in FLOATS else 64
        low, high = pairs(dtype, n, 12) if dtype in FLOATS else int_pairs(dtype, n, 12)
        x = values(dtype, len(low), 13)[torch.randperm(len(low), generator=generator(14))]
        group.add("", "clamp_tensor", torch.clamp, [x, low, high])
        group.add("min", "clamp_bounds", torch.clamp, [x, low, None])
        group.add("max", "clamp_bounds", torch.clamp, [x, None, high])
    for dtype in (*FLOATS, *INTS, torch.bool):
        n = 96 if dtype in FLOATS else 40
        x, y = values(dtype, n, 15), values(dtype, n, 16)
        mask = ints(torch.bool, n, 17)
        group.add("", "where", torch.where, [mask, x, y])
        group.add("0-dim", "masked_fill", torch.masked_fill, [x, mask, y[n // 2].clone()])


def prelu(group):
    for dtype in FLOATS:
        x = floats(dtype, 96, 18)
        group.add("one", "prelu", F.prelu, [x, torch.tensor([0.25], dtype=dtype)])
        weight = torch.tensor([0.1, -0.3, 0.0, 1.5, 2.0, 0.01, -1.0, 0.7], dtype=dtype)
        group.add("channel", "prelu", F.prelu, [x[torch.randperm(96, generator=generator(19))].view(3, 8, 4), weight])


GATED = {
    op: (function(op), exact and torch_functions.gated(exact))
    for op, exact in (("silu_and_mul", None), ("gelu_and_mul", gelu_exact), ("gelu_tanh_and_mul", gelu_tanh_exact))
}


def gated(group):
    for op, (call, exact) in GATED.items():
        for dtype in FLOATS:
            x = torch.cat([floats(dtype, 96, 20).view(4, 24), floats(dtype, 96, 21).flip(0).view(4, 24)], dim=1)
            group.add("", op, call, [x.contiguous()], None, exact)


def broadcast(group):
    forms = {
        "row": ((5, 8), (8,)), "column": ((5, 8), (5, 1)), "outer": ((5, 1), (1, 8)), "scalar": ((5, 8), ()),
        "scalar first": ((), (5, 8)), "both": ((2, 1, 4), (3, 1)), "channel": ((2, 3, 2, 2), (3, 1, 1)),
        "inner": ((4, 1), (2, 4, 5)), "zero": ((0, 4), (1, 4)), "single": ((1, 1), (3, 5)), "0-dim": ((), ()),
    }
    ops = {op: call for op, (call, *_) in BINARY.items()} | COMPARISON

    def shaped(dtype, shape, seed):
        n = math.prod(shape)
        return values(dtype, 96, seed)[torch.randperm(96, generator=generator(seed))][-n:].reshape(shape) if n else \
            torch.empty(shape, dtype=dtype)

    for form, (left, right) in forms.items():
        for op, call in ops.items():
            others = (torch.float16, torch.int32) if op in ("add", "eq", "maximum") else ()
            for dtype in (torch.float32, *others):
                a, b = shaped(dtype, left, 22), shaped(dtype, right, 23)
                group.add(form, op, call, [a, b])
        for op, call in BITWISE.items():
            group.add(form, op, call, [shaped(torch.int32, left, 24), shaped(torch.int32, right, 25)])
    three = {
        "3-way": ((2, 1, 1), (1, 3, 1), (1, 1, 4)), "rows": ((3, 4), (4,), (3, 1)), "first": ((3, 1), (3, 4), ()),
        "two": ((4,), (2, 3, 1), (3, 4)), "0-dim": ((), (), ()), "zero": ((1, 4), (0, 4), (4,)),
    }
    for form, shapes in three.items():
        for dtype in (torch.float32, torch.bfloat16):
            a, b, c = (shaped(dtype, shape, 26 + i) for i, shape in enumerate(shapes))
            group.add(form, "lerp", torch.lerp, [a, b, c])
            group.add(form, "clamp_tensor", torch.clamp, [a, b, c])
            mask = shaped(torch.bool, shapes[0], 29)
            group.add(form, "where", torch.where, [mask, b, c])
            group.add(form, "masked_fill", torch.masked_fill, [b, mask, 2.5])


def promotion(group):
    every = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, *FLOATS]
    some = [torch.bool, torch.uint8, torch.int32, torch.float16, torch.bfloat16, torch.float32]
    ops = {op: call for op, (call, *_) in BINARY.items()} | COMPARISON | BITWISE

    def operands(op, left, right):
        a = values(left, 96, 30)[-9:] if left in FLOATS else ints(left, 24, 30)[:9]
        b = values(right, 96, 31)[-9:] if right in FLOATS else ints(right, 24, 31)[:9].roll(4, 0)
        if op in DIVIDES or op == "div":
            b = torch.where(b == 0, torch.ones((), dtype=right), b)
        return [a, b]

    for op, call in ops.items():
        types = every if op in ("add", "mul", "eq", "maximum") else some
        for left in types:
            for right in types:
                # The same integers divide into floats.
                if left != right or op == "div" and left not in FLOATS:
                    group.add("", op, call, operands(op, left, right))
    # A tensor without dimensions, or a number, changes the type only if its category is higher.
    for op in ("add", "mul", "div", "lt", "pow"):
        for left in some:
            x = values(left, 96, 32)[-9:] if left in FLOATS else ints(left, 24, 32)[:9]
            for right in some:
                if left != right:
                    zero_dim = torch.tensor(True if right == torch.bool else 3, dtype=right)
                    group.add("0-dim", op, ops[op], [x, zero_dim])
                    if op != "pow":
                        group.add("0-dim first", op, ops[op], [zero_dim, x])
            for number in (True, 3, 2.5):
                if not (left in FLOATS and isinstance(number, float)):
                    group.add(f"number={number}", op, ops[op], [x, number])
    for left, right in ((torch.float16, torch.float32), (torch.int32, torch.float16), (torch.uint8, torch.int64)):
        a, b = operands("where", left, right)
        mask = ints(torch.bool, 9, 33)
        group.add("", "where", torch.where, [mask, a, b])
        group.add("", "clamp_tensor", torch.clamp, [a, b, b + 2])
        group.add("", "lerp", torch.lerp, [a, b, b])
    for op in (*REAL, "gelu", "silu"):
        call, *rest = UNARY[op]
        for dtype in (torch.int32, torch.int64, torch.uint8, torch.bool):
            group.add("", op, call, [ints(dtype, 24, 34)[:20]], None, (rest or [None])[0])


def prelu_gradients(grad, x, weight):
    """Those of F.prelu before the weight's are summed: a weight for each element."""
    shape = (1, -1, *(1 for _ in x.shape[2:])) if len(weight) > 1 else (1,) * x.dim()
    return gradient(torch._prelu_kernel)(grad, x, weight.view(shape).expand_as(x).contiguous())


def gradient(call):
    """The gradients of `call` for the operands that are floats, from the result's gradient, as a function."""

    def backward(grad, *operands, **params):
        leaves = [
            x.detach().clone().requires_grad_(x.dtype.is_floating_point) if isinstance(x, torch.Tensor) else x
            for x in operands
        ]
        wanted = [x for x in leaves if isinstance(x, torch.Tensor) and x.requires_grad]
        result = call(*leaves, **params)
        if not result.requires_grad:
            raise RuntimeError("no gradient")
        found = torch.autograd.grad(result, wanted, grad, allow_unused=True)
        return tuple(torch.zeros_like(x) if g is None else g for g, x in zip(found, wanted))

    return backward


def gradients(group):
    def add(form, op, call, operands, params=None, exact=None):
        first = next(x for x in operands if isinstance(x, torch.Tensor) and x.dtype in FLOATS)
        shape = call(*operands, **(params or {})).shape
        grad = torch.randn(shape, generator=generator(op)).to(first.dtype)
        if grad.dim() == 1:
            grad[::17] = 0
        group.add(form, f"{op}_backward", gradient(call), [grad, *operands], params, exact and gradient(exact))

    for dtype in FLOATS:
        x = floats(dtype, 112, 35)
        for op, (call, *rest) in UNARY.items():
            if op in ("logical_not", "bitwise_not", "isnan", "isinf", "isfinite"):
                continue
            exact, sets = GRADIENT_EXACT.get(op, (rest or [None])[0]), rest[1:]
            # What the result of these depends on, the gradient does not.
            sets = () if op in ("nan_to_num", "round_decimals") else sets[:2]
            for params in (*([] if op == "clamp" else [{}]), *sets):
                add(form_of(params), op, call, [x], params, exact)
        a, b = pairs(dtype, 260, 36)
        keep = torch.cat([torch.arange(0, 229, 3), torch.arange(229, 260)])
        a, b = a[keep], b[keep]
        for op, (call, *sets) in BINARY.items():
            for params in ({}, *sets[:1]):
                add(form_of(params), op, call, [a, b], params)
        weight = torch.rand(len(a), generator=generator(37)).to(dtype)
        mask = ints(torch.bool, len(a), 38)
        add("", "lerp", torch.lerp, [a, b, weight])
        add("", "where", torch.where, [mask, a, b])
        add("", "clamp_tensor", torch.clamp, [floats(dtype, len(a), 39), a, b])
        add("", "masked_fill", torch.masked_fill, [a, mask, 2.5])
        y = floats(dtype, 96, 40)
        grad = torch.randn(96, generator=generator(41)).to(dtype)
        channels = [0.1, -0.3, 0.0, 1.5, 2.0, 0.01, -1.0, 0.7]
        for form, shape, weight in ("one", (96,), [0.25]), ("channel", (3, 8, 4), channels):
            weight = torch.tensor(weight, dtype=dtype)
            group.add(form, "prelu_backward", prelu_gradients, [grad.view(shape), y.view(shape), weight])
        for op, (call, exact) in GATED.items():
            packed = torch.cat([floats(dtype, 96, 42).view(4, 24), floats(dtype, 96, 43).flip(0).view(4, 24)], dim=1)
            add("", op, call, [packed.contiguous()], None, exact)


def fp8(group):
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        TYPES[dtype] = "f8e4m3" if dtype == torch.float8_e4m3fn else "f8e5m2"
        codes = torch.arange(256, dtype=torch.int16).to(torch.uint8).view(dtype)
        group.add("to f32", "to", lambda x: x.float(), [codes], None, lambda x: x)
        table = codes.float()
        finite = table[torch.isfinite(table)].unique()
        ties = (finite[1:] + finite[:-1]) / 2
        top = finite.max() * torch.tensor([1.02, 1.0357, 1.0358, 1.05, 1.0714, 1.0715, 1.2, 4.0])
        ends = [0.0, -0.0, INF, -INF, NAN, 1e-30, -1e-30, 448.0, 464.0, 464.1, 480.0, 61440.0, 61439.0, 65504.0]
        x = torch.cat([
            torch.tensor(ends), ties, torch.nextafter(ties, ties * 2 + 1), torch.nextafter(ties, ties * 0), top, -top,
            torch.randn(64, generator=generator(44)) * 40,
        ])
        group.add(f"to {TYPES[dtype]}", "to", lambda x, dtype=dtype: x.to(dtype), [x], None)


def slopes(heads):
    """Press et al. 2022, as their published code has them."""
    power = 2 ** math.floor(math.log2(heads))
    first = [2.0 ** (-8.0 * (h + 1) / power) for h in range(power)]
    return first + [2.0 ** (-8.0 * (h + 1) / (2 * power)) for h in range(0, 2 * (heads - power), 2)]


def encodings(group):
    """Compositions: PyTorch has no such op. In f32 (float64 for the exact result), rounded to the type."""

    def case(op, params, make):
        for dtype in FLOATS:
            group.cases.append({
                "name": f"{op}/{TYPES[dtype]}/{form_of(params)}", "op": op, "params": params, "inputs": [],
                "outputs": [group.store(make(torch.float32).to(dtype))], "exact": [group.store(make(torch.float64))],
            })

    def alibi(heads, length):
        def make(dtype):
            at = torch.arange(length, device=group.device, dtype=dtype)
            slope = torch.tensor(slopes(heads), device=group.device, dtype=dtype)
            return 0.0 - slope[:, None, None] * (at[:, None] - at[None, :]).abs()

        return make

    def sinusoidal(length, dim):
        def make(dtype):
            rates = 10000.0 ** (-torch.arange(0, dim, 2, device=group.device, dtype=dtype) / dim)
            angles = torch.arange(length, device=group.device, dtype=dtype)[:, None] * rates
            return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)

        return make

    for heads, length in ((4, 9), (12, 6)):
        case("alibi", {"num_heads": heads, "seq_len": length}, alibi(heads, length))
    for length, dim in ((12, 8), (3, 32)):
        case("sinusoidal", {"seq_len": length, "d_model": dim}, sinusoidal(length, dim))


def losses(x, labels, **params):
    return F.cross_entropy(x, labels, reduction="none", **params)


ROWS = {
    "rms_norm": lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-6),
    "layer_norm": lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
    "l2_normalize": lambda x: F.normalize(x, dim=-1),
    "softmax": lambda x: torch.softmax(x, -1),
    "log_softmax": lambda x: torch.log_softmax(x, -1),
    "logsumexp": lambda x: torch.logsumexp(x, -1),
    "masked_softmax": lambda x, mask: torch.softmax(x.masked_fill(mask, -INF), -1),
    "sum": lambda x: x.sum(-1),
    "mean": lambda x: x.mean(-1),
    "amax": lambda x: x.amax(-1),
    "amin": lambda x: x.amin(-1),
    "var": lambda x: x.var(-1),
}


def rows(group):
    """Rows of usual numbers, of a large mean, with infinities, of minus infinities alone, and with NaN."""
    for dtype in FLOATS:
        for count, length in ((2, 1), (2, 37), (1, 256), (1, 1025)):
            shape, seed = (count, length), f"{count} {length}"
            usual = torch.randn(shape, generator=generator(seed)) * 2
            weight, bias = (torch.randn(length, generator=generator(seed + of)).to(dtype) for of in "wb")
            mask = torch.rand(shape, generator=generator(seed + "m")) < 0.3
            kinds = {"": usual, "mean": usual + 100, "large": usual * (2e4 if dtype != torch.float16 else 8)}
            if length > 1000:
                kinds = {"": usual}
            elif length > 1:
                for name, value in (("inf", INF), ("none", -INF), ("nan", NAN)):
                    kinds[name] = usual.clone()
                    kinds[name][:, length // 2] = value
                kinds["none"][0] = -INF
            for kind, x in kinds.items():
                more = {"rms_norm": [weight], "layer_norm": [weight, bias], "masked_softmax": [mask]}
                for op, call in ROWS.items():
                    if op == "var" and length == 1:
                        continue
                    # PyTorch's norms of a row with an infinity have other values on each of its ways.
                    if op == "rms_norm" and kind in ("inf", "none"):
                        continue
                    # What cancels with a bias in f32 has no bound in units of the result.
                    if op == "layer_norm" and dtype == torch.float32:
                        continue
                    form = f"{count}x{length}" + kind
                    group.add(form, op, call, [x.to(dtype), *more.get(op, [])])
                labels = torch.randint(0, length, (count,), generator=generator(seed + "l"))
                labels[-1] = -100
                for params in ({}, {"label_smoothing": 0.125}):
                    form = f"{count}x{length}{kind}" + "-smooth" * bool(params)
                    group.add(form, "cross_entropy", losses, [x.to(dtype), labels], params)


GROUPS = (
    unary, binary, comparison, bitwise, scalar, ternary, prelu, gated, broadcast, promotion, gradients, fp8, encodings,
    rows,
)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--out", default=Path(__file__).resolve().parent)
    parser.add_argument("--group", default=".*", metavar="RE")
    options = parser.parse_args()
    Path(options.out).mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    for fill in GROUPS:
        if re.fullmatch(options.group, fill.__name__):
            group = Group(fill.__name__, options.device)
            fill(group)
            group.save(options.out)


if __name__ == "__main__":
    main()
