"""PyTorch's times for the work of `benches/benches/cpu.rs`: ops on the CPU, on one thread and on two.

    python3 torch_cpu.py [--json FILE] [--op RE] [--type RE]

The least of many single calls counts: what else the machine does makes a call longer, never shorter. `out=` where
PyTorch has it, so that no allocation is timed; the functions of torch.nn.functional have none, and neither has the
rotary embedding, which is that of Hugging Face's transformers, with cosines and sines made beforehand.
"""

import json
import math
import re
import sys
import time

import script

if __name__ == "__main__":
    # Before PyTorch is imported: --help needs none.
    parser = script.parser(__doc__)
    parser.add_argument("--json", type=script.output)
    parser.add_argument("--op", type=script.pattern, default=".*")
    parser.add_argument("--type", type=script.pattern, default=".*")
    OPTIONS = parser.parse_args()
torch = script.require("torch")
F = torch.nn.functional
import torch_functions  # noqa: E402

SIZES = [1 << 16, 1 << 22]
THREADS = [1, 2]
COLUMNS = 1024
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "i32": torch.int32}
OUT = [
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "abs",
    "neg",
    "reciprocal",
    "sign",
    "sin",
    "cos",
    "floor",
    "ceil",
    "round",
    "trunc",
    "erf",
    "log1p",
    "expm1",
    "sigmoid",
    "tanh",
    "logical_not",
    "bitwise_not",
    "nan_to_num",
]
FUNCTIONS = {
    name: torch_functions.function(name)
    for name in (
        "relu gelu gelu_tanh silu leaky_relu elu selu hardswish hardsigmoid hardtanh softplus mish isnan isinf isfinite"
    ).split()
}
FUNCTIONS["dropout"] = lambda x: F.dropout(x, 0.5, training=True)


def works(dtype, n):
    """(name, elements of the result, the work) of every benchmark."""

    def values(*shape):
        return (torch.rand(shape) * 16 - 8).to(dtype)

    x, other, third, y = (values(n) for _ in range(4))
    truth = torch.empty(n, dtype=torch.bool)
    for name in OUT:
        op, target = getattr(torch, name), truth if name == "logical_not" else y
        yield name, n, lambda op=op, target=target: op(x, out=target)
    yield "clamp", n, lambda: torch.clamp(x, -math.inf, math.inf, out=y)
    yield "round_decimals", n, lambda: torch.round(x, decimals=0, out=y)
    for name, op in FUNCTIONS.items():
        yield name, n, lambda op=op: op(x)
    for name in ["add", "mul", "div", "maximum", "eq"]:
        op, target = getattr(torch, name), truth if name == "eq" else y
        yield name, n, lambda op=op, target=target: op(x, other, out=target)
    condition = other > 0
    yield "where", n, lambda: torch.where(condition, x, other, out=y)
    yield "lerp", n, lambda: torch.lerp(x, other, third, out=y)
    matrix, row, result = values(n // COLUMNS, COLUMNS), values(COLUMNS), values(n // COLUMNS, COLUMNS)
    yield "add_row", n, lambda: torch.add(matrix, row, out=result)
    wide = values(n // COLUMNS, 2 * COLUMNS)
    gate, value = wide[:, :COLUMNS], wide[:, COLUMNS:]
    yield "silu_and_mul", n, lambda: torch.mul(F.silu(gate), value, out=result)
    q, k = (values(1, n // 4096, heads, 128).transpose(1, 2) for heads in (24, 8))
    cos, sin = (values(1, 1, n // 4096, 128) for _ in range(2))
    yield "rope", n, lambda: rope(q, k, cos, sin)


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def rope(q, k, cos, sin):
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def least(work, warm_up=0.02, seconds=0.15, calls=20):
    """Nanoseconds of the fastest call."""
    end = time.perf_counter() + warm_up
    while time.perf_counter() < end:
        work()
    times, end = [], time.perf_counter() + seconds
    while len(times) < calls or time.perf_counter() < end:
        start = time.perf_counter_ns()
        work()
        times.append(time.perf_counter_ns() - start)
    return min(times)


def main():
    options, rows = OPTIONS, []
    print(f"# torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}")
    for kind, dtype in TYPES.items():
        if not re.fullmatch(options.type, kind):
            continue
        for n in SIZES:
            for name, elements, work in works(dtype, n):
                if not re.fullmatch(options.op, name):
                    continue
                for threads in THREADS:
                    torch.set_num_threads(threads)
                    try:
                        ns = least(work)
                    except (RuntimeError, TypeError):
                        break  # PyTorch has no such op for this type
                    rows.append({"op": name, "dtype": kind, "n": elements, "threads": threads, "ns": ns})
                    print(f"{name:16} {kind:5} {n:8} {threads} threads {ns / elements:8.4f} ns/element", flush=True)
    if not rows:
        sys.exit(f"error: no row of an op {options.op} in a type {options.type} ({', '.join(TYPES)})")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"torch": torch.__version__, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    with torch.inference_mode():
        script.run(main)
