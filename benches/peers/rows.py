"""The rows to time: those of workloads.csv, and `large` ones of 2^28 results for every op. Also the inputs of a row."""
import csv
import math
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import torch

DTYPES = {
    "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64, "bool": torch.bool,
    "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
}
UNARY = (
    "exp log sqrt rsqrt abs neg reciprocal sign sin cos floor ceil round round_decimals trunc erf log1p expm1 relu "
    "gelu gelu_tanh silu sigmoid tanh leaky_relu elu selu hardswish hardsigmoid hardtanh softplus mish logical_not "
    "isnan isinf isfinite nan_to_num clamp"
).split()
BINARY = (
    "add sub mul div div_trunc floor_divide remainder pow maximum minimum eq ne gt lt ge le logical_and logical_or"
).split()
BITWISE = "bitwise_and bitwise_or bitwise_xor".split()
GATED = "silu_and_mul gelu_and_mul gelu_tanh_and_mul".split()
POSITIVE = {"div", "div_trunc", "floor_divide", "remainder", "pow"}
NEAR_ONE = {"log", "sqrt", "rsqrt", "reciprocal", "log1p"}
CLASSIFY = {"isnan", "isinf", "isfinite"}


@dataclass
class Row:
    """One thing to time. `shapes` are those of the operands, or of the result where there is none."""

    key: int | str
    op: str
    dtype: str
    shapes: list[tuple[int, ...]]
    params: dict[str, str] = field(default_factory=dict)

    def number(self, name, default):
        """A parameter as a number; `default` where it is left out or None."""
        text = self.params.get(name, "None").split()[0]
        return default if text in ("None", "tensor") else float(text)

    def is_short(self):
        """True if it moves less than 4 MiB, with a result as large as the first operand."""
        elements = [math.prod(shape) for shape in self.shapes]
        return (sum(elements) + elements[0]) * DTYPES[self.dtype].itemsize < 4 << 20

    def shrunk(self, limit=4096):
        """The same row on small shapes, to check results with; equal sizes stay equal and halves stay whole."""
        sizes = sorted({size for shape in self.shapes for size in shape})
        most = max(len(shape) for shape in self.shapes)
        largest = max(8, int(limit ** (1 / most)) // 8 * 8)
        small = {size: size if size <= 2 else min(size, largest) for size in sizes}
        params = dict(self.params)
        for name in ("seq_len", "d_model", "num_heads"):
            if name in params:
                params[name] = str(small[int(params[name])])
        return Row(self.key, self.op, self.dtype, [tuple(small[s] for s in shape) for shape in self.shapes], params)


def read(path):
    """The rows of workloads.csv, their key the index of the data row."""
    with open(path, newline="") as file:
        for index, row in enumerate(csv.DictReader(file)):
            shapes = [tuple(map(int, shape.split("x"))) for shape in row["shapes"].split(";")]
            params = dict(pair.split("=", 1) for pair in row["params"].split(";") if pair)
            yield Row(index, row["op"], row["dtype"], shapes, params)


def large():
    """Every op in every type with 2^28 results. Bitwise ops take integers and bool."""
    side = 1 << 14
    square = (side, side)
    for op in (*UNARY, "dropout", *BINARY, "where", "masked_fill", "lerp", "prelu", "clamp_tensor", *GATED,
               "alibi", "sinusoidal", "rope_neox", "rope_non_neox", "rope_neox_position_ids"):
        params = {}
        if op in BINARY:
            shapes = [square] * 2
        elif op in ("where", "clamp_tensor", "lerp"):
            shapes = [square] * 3
            params = {"lerp": {"weight": "tensor"}, "clamp_tensor": {"min": "tensor", "max": "tensor"}}.get(op, {})
        elif op == "masked_fill":
            shapes, params = [square] * 2, {"value": "-100.0"}
        elif op == "prelu":
            shapes = [square, (side,)]
        elif op in GATED:
            shapes = [(side, 2 * side)]
        elif op == "alibi":
            shapes, params = [(16, 4096, 4096)], {"seq_len": "4096", "num_heads": "16"}
        elif op == "sinusoidal":
            shapes, params = [(1 << 16, 4096)], {"seq_len": "65536", "d_model": "4096"}
        elif op == "rope_neox_position_ids":
            shapes, params = [(1 << 16, 32, 128), (1 << 16,)], {"max_position": "65536"}
        elif op.startswith("rope"):
            shapes, params = [(8, 8192, 32, 128)], {"layout": "2d"}
        else:
            shapes = [square]
            params = {"clamp": {"min": "-0.5", "max": "0.5"}, "round_decimals": {"decimals": "2"}}.get(op, {})
        for dtype in ("f32", "f16", "bf16"):
            yield Row(f"large/{op}/{dtype}", op, dtype, shapes, params)
    for op in (*BITWISE, "bitwise_not"):
        for dtype in ("i32", "i64", "bool"):
            yield Row(f"large/{op}/{dtype}", op, dtype, [square] * (1 if op == "bitwise_not" else 2))


def inputs(row, device, zeros=False):
    """The tensors of a row, distributed as workloads.md says. `zeros`: only the shapes matter."""
    if row.op in ("alibi", "sinusoidal"):
        return []
    dtype = DTYPES[row.dtype]
    generator = torch.Generator(device).manual_seed(zlib.crc32(row.op.encode()))

    def uniform(shape, low, high):
        if zeros:
            return torch.zeros(shape, dtype=dtype, device=device)
        return torch.empty(shape, dtype=torch.float32, device=device).uniform_(low, high, generator=generator).to(dtype)

    def normal(shape, mean=0.0):
        if zeros:
            return torch.zeros(shape, dtype=dtype, device=device)
        return torch.empty(shape, dtype=torch.float32, device=device).normal_(mean, generator=generator).to(dtype)

    def mask(shape):
        if zeros:
            return torch.zeros(shape, dtype=torch.bool, device=device)
        return torch.empty(shape, dtype=torch.float32, device=device).uniform_(generator=generator) < 0.5

    first, *others = row.shapes
    if row.op.startswith("rope"):
        return rope_inputs(row, normal(first), device, zeros)
    if row.dtype == "bool":
        return [mask(shape) for shape in row.shapes]
    if not dtype.is_floating_point:
        most = 1024 if row.op == "bitwise_not" else 1000
        if zeros:
            return [torch.zeros(shape, dtype=dtype, device=device) for shape in row.shapes]
        draw = {"dtype": dtype, "device": device, "generator": generator}
        return [torch.randint(-most, most + 1, shape, **draw) for shape in row.shapes]
    if row.op in POSITIVE:
        return [uniform(shape, 0.1, 1.1) for shape in row.shapes]
    if row.op in NEAR_ONE:
        return [uniform(first, 0.5, 1.5)]
    if row.op in CLASSIFY and not zeros:
        x = normal(first)
        kind = torch.randint(0, 4, first, device=device, generator=generator, dtype=torch.uint8)
        for code, value in enumerate((float("nan"), float("inf"), -float("inf"))):
            x.masked_fill_(kind == code, value)
        return [x]
    if row.op == "where":
        return [mask(first), *map(normal, others)]
    if row.op == "masked_fill":
        value = [torch.full((), -100.0, dtype=dtype, device=device)] if "0-dim" in row.params["value"] else []
        return [normal(first), mask(others[0]), *value]
    if row.op in ("clamp", "clamp_tensor"):
        means = [-0.5] * (row.params.get("min") == "tensor") + [0.5] * (row.params.get("max") == "tensor")
        return [normal(first), *(normal(shape, mean) for shape, mean in zip(others, means))]
    if row.op == "prelu":
        return [normal(first), uniform(others[0], 0, 1)]
    if row.op == "lerp" and len(row.shapes) == 3:
        return [normal(first), normal(others[0]), uniform(others[1], 0, 1)]
    return [normal(shape) for shape in row.shapes]


def rope_inputs(row, x, device, zeros):
    """x, the cosines and sines of [positions, dim] in x's type, and the positions where the op takes them. What
    distinguishes the scaled variants is in the tables, made outside the timed call: here all have those of plain RoPE.
    """
    dim = x.shape[-1]
    ids = []
    if row.op == "rope_neox_position_ids":
        positions = int(row.number("max_position", x.shape[0]))
        generator = torch.Generator(device).manual_seed(3)
        drawn = torch.randint(0, positions, row.shapes[1], dtype=torch.int32, device=device, generator=generator)
        ids = [drawn * 0 if zeros else drawn]
    else:
        positions = x.shape[1] if x.ndim == 4 else x.shape[0]
    inverse = row.number("base", 10000.0) ** (-torch.arange(0, dim, 2, device=device, dtype=torch.float32) / dim)
    angles = torch.arange(positions, device=device, dtype=torch.float32)[:, None] * inverse
    both = angles.repeat_interleave(2, -1) if row.op == "rope_non_neox" else torch.cat((angles, angles), -1)
    return [x, both.cos().to(x.dtype), both.sin().to(x.dtype), *ids]


def default_path():
    """workloads.csv beside this script or in the folder above it."""
    here = Path(__file__).resolve().parent
    for path in (here / "workloads.csv", here.parent / "workloads.csv"):
        if path.exists():
            return path
    return None
