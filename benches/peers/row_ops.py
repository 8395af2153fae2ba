"""Times PyTorch's ops on rows, eager and compiled, and Triton kernels written for them, cold, beside a copy:

    python3 row_ops.py [--op NAME]... [--dtype NAME]... [--len N]... [--backward] [--json FILE]

The shapes are those of `row_bandwidth`."""
import argparse
import json

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from timing import Timer

LARGE = 1 << 27
LENGTHS = (64, 256, 1000, 1024, 4096, 4097, 5120, 8192, 16384, 32768, 65536)
FEW = (1, 16, 256, 2048)
OPS = ("rms_norm", "add_rms_norm", "layer_norm", "softmax")
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


def rms_norm(x, weight):
    return F.rms_norm(x, x.shape[-1:], weight, 1e-6)


def add_rms_norm(x, residual, weight):
    total = x + residual
    return F.rms_norm(total, x.shape[-1:], weight, 1e-6), total


def layer_norm(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias)


def softmax(x):
    return torch.softmax(x, -1)


# How many operands have all elements, and how many one for each place of a row.
OPERANDS = {"rms_norm": (1, 1), "add_rms_norm": (2, 1), "layer_norm": (1, 2), "softmax": (1, 0)}


@triton.jit
def norm_kernel(x, residual, weight, bias, y, total, n, eps, OP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    keep = at < n
    scale = 0.0
    if OP != "softmax":
        scale = tl.load(weight + at, mask=keep, other=0.0).to(tl.float32)
    value = tl.load(x + row * n + at, mask=keep, other=float("-inf") if OP == "softmax" else 0.0).to(tl.float32)
    if OP == "add_rms_norm":
        value += tl.load(residual + row * n + at, mask=keep, other=0.0).to(tl.float32)
        value = value.to(total.dtype.element_ty).to(tl.float32)
        tl.store(total + row * n + at, value.to(total.dtype.element_ty), mask=keep)
    if OP == "softmax":
        value = tl.exp(value - tl.max(value, 0))
        value = value / tl.sum(value, 0)
    elif OP == "layer_norm":
        value = tl.where(keep, value - tl.sum(value, 0) / n, 0.0)
        value = value * tl.rsqrt(tl.sum(value * value, 0) / n + eps) * scale
        value += tl.load(bias + at, mask=keep, other=0.0).to(tl.float32)
    else:
        value = value * tl.rsqrt(tl.sum(value * value, 0) / n + eps) * scale
    tl.store(y + row * n + at, value.to(y.dtype.element_ty), mask=keep)


def by_triton(op, operands):
    """A call of the kernel, whose number of warps is the fastest of four."""
    full, _ = OPERANDS[op]
    x = operands[0]
    residual = operands[1] if op == "add_rms_norm" else x
    weight = operands[full] if len(operands) > full else x
    bias = operands[full + 1] if len(operands) > full + 1 else x
    y, total = torch.empty_like(x), torch.empty_like(x)
    rows, n = x.shape
    block = triton.next_power_of_2(n)

    def call(warps):
        eps = 1e-5 if op == "layer_norm" else 1e-6
        norm_kernel[(rows,)](x, residual, weight, bias, y, total, n, eps, OP=op, BLOCK=block, num_warps=warps)

    return [lambda warps=warps: call(warps) for warps in (1, 4, 8, 16)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--op", action="append", choices=OPS)
    parser.add_argument("--dtype", action="append", choices=DTYPES)
    parser.add_argument("--len", action="append", type=int, help="rows of this length alone, 2^27 elements together")
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    timer, rows = Timer(), []
    for dtype in options.dtype or DTYPES:
        for op in options.op or OPS:
            function = globals()[op]
            few = [] if options.len else [(count, 4096) for count in FEW]
            for count, n in [(LARGE // n, n) for n in options.len or LENGTHS] + few:
                full, shared = OPERANDS[op]
                grad = options.backward
                operands = [torch.randn(count, n, dtype=DTYPES[dtype], device="cuda", requires_grad=grad) for _ in range(full)]
                operands += [torch.randn(n, dtype=DTYPES[dtype], device="cuda", requires_grad=grad) for _ in range(shared)]
                torch._dynamo.reset()
                compiled = torch.compile(function, dynamic=False)
                calls = {"eager": [lambda: function(*operands)], "compile": [lambda: compiled(*operands)]}
                if grad:
                    calls = {name: [backward(made[0], operands)] for name, made in calls.items()}
                else:
                    calls["triton"] = by_triton(op, operands)
                row = {"op": op, "dtype": dtype, "rows": count, "len": n}
                for name, variants in calls.items():
                    try:
                        for call in variants:
                            call()
                        times = [timer.measure(call, warm=False)["cold_us"] for call in variants]
                        row[name] = min(times)
                    except Exception as error:  # a block too large for Triton
                        row[name] = None
                        print(f"# {op} {dtype} {n} {name}: {str(error).splitlines()[0][:100]}")
                shown = "  ".join(f"{name} {row[name]:9.2f}" for name in calls if row[name])
                print(f"{op + ('_backward' if grad else ''):22} {dtype:4} {count:8} x {n:6}  {shown}", flush=True)
                rows.append(row)
                del operands, calls, compiled
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "rows": rows}, file, indent=1)


def backward(forward, operands):
    """A call of the gradient alone."""
    results = forward()
    results = results if isinstance(results, tuple) else (results,)
    grads = [torch.randn_like(result) for result in results]
    return lambda: torch.autograd.grad(results, operands, grads, retain_graph=True)


if __name__ == "__main__":
    main()
