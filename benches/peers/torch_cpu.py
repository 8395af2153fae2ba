"""PyTorch's times for the work of `benches/benches/cpu.rs`: ops on the CPU, on one thread and on two, medians.

    python3 torch_cpu.py [--json FILE] [--op RE]

`out=` where PyTorch has it, so that no allocation is timed; the functions of torch.nn.functional have none, and
neither has the rotary embedding, which is that of Hugging Face's transformers, with cosines and sines made beforehand.
"""

import argparse
import json
import math
import re
import statistics
import time

import torch
import torch.nn.functional as F

N = 1024
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
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
    "nan_to_num",
]
OTHER = {
    "round_decimals": lambda x, y: torch.round(x, decimals=0, out=y),
    "relu": lambda x, y: F.relu(x),
    "gelu": lambda x, y: F.gelu(x),
    "gelu_tanh": lambda x, y: F.gelu(x, approximate="tanh"),
    "silu": lambda x, y: F.silu(x),
    "leaky_relu": lambda x, y: F.leaky_relu(x),
    "elu": lambda x, y: F.elu(x),
    "selu": lambda x, y: F.selu(x),
    "hardswish": lambda x, y: F.hardswish(x),
    "hardsigmoid": lambda x, y: F.hardsigmoid(x),
    "hardtanh": lambda x, y: F.hardtanh(x),
    "softplus": lambda x, y: F.softplus(x),
    "mish": lambda x, y: F.mish(x),
    "isnan": lambda x, y: torch.isnan(x),
    "isinf": lambda x, y: torch.isinf(x),
    "isfinite": lambda x, y: torch.isfinite(x),
    "clamp": lambda x, y: torch.clamp(x, -math.inf, math.inf, out=y),
}


def works(dtype):
    """(name, elements of the result, the work) of every benchmark."""
    x = (torch.rand(N, N) * 16 - 8).to(dtype)
    y = torch.empty_like(x)
    row = (torch.rand(N) * 16 - 8).to(dtype)
    wide = (torch.rand(N, 2 * N) * 16 - 8).to(dtype)
    for name in OUT:
        op, target = getattr(torch, name), torch.empty(N, N, dtype=torch.bool) if name == "logical_not" else y
        yield name, x.numel(), lambda op=op, target=target: op(x, out=target)
    for name, op in OTHER.items():
        yield name, x.numel(), lambda op=op: op(x, y)
    for name in ["add", "mul", "div"]:
        op = getattr(torch, name)
        yield name, x.numel(), lambda op=op: op(x, row, out=y)
    yield "silu_and_mul", x.numel(), lambda: torch.mul(F.silu(wide[:, :N]), wide[:, N:], out=y)
    q, k = ((torch.rand(1, 128, heads, 128) * 16 - 8).to(dtype).transpose(1, 2) for heads in (32, 8))
    cos, sin = ((torch.rand(1, 1, 128, 128) * 2 - 1).to(dtype) for _ in range(2))
    yield "rope", q.numel() + k.numel(), lambda: rope(q, k, cos, sin)


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def rope(q, k, cos, sin):
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def nanoseconds(work, warm_up=0.1, seconds=0.5, least=11):
    """The median of single runs, and the fastest."""
    end = time.perf_counter() + warm_up
    while time.perf_counter() < end:
        work()
    times, end = [], time.perf_counter() + seconds
    while len(times) < least or time.perf_counter() < end:
        start = time.perf_counter_ns()
        work()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times), min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json")
    parser.add_argument("--op", default=".*")
    options = parser.parse_args()
    rows = []
    print(f"# torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}")
    for threads in [1, 2]:
        torch.set_num_threads(threads)
        for kind, dtype in TYPES.items():
            for name, n, work in works(dtype):
                if not re.fullmatch(options.op, name):
                    continue
                ns, fastest = nanoseconds(work)
                rows.append({"op": name, "dtype": kind, "threads": threads, "ns": ns, "fastest_ns": fastest})
                print(f"{name:16} {kind:5} {threads} threads {ns / 1e3:9.1f} us  {n / ns:6.2f} elements/ns", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"torch": torch.__version__, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    with torch.inference_mode():
        main()
