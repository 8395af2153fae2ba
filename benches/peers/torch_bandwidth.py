"""PyTorch's times for the unary ops, by the method of `benches/src/bin/bandwidth.rs`: medians of CUDA events around single
launches, cold by size, on values between -8 and 8, next to a copy of the same bytes.

    python3 torch_bandwidth.py [--n ELEMENTS] [--compile OP,OP,...] [--json FILE]

`out=` variants or in-place targets are used where PyTorch has them, so that no allocation is timed (PyTorch's allocator
would serve it from its cache in any case). `--compile` also times torch.compile's kernel for these ops.
"""
import argparse
import json

import torch
import torch.nn.functional as F

UNARY = {
    "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "abs": torch.abs, "neg": torch.neg,
    "reciprocal": torch.reciprocal, "sign": torch.sign, "sin": torch.sin, "cos": torch.cos, "floor": torch.floor,
    "ceil": torch.ceil, "round": torch.round, "trunc": torch.trunc, "erf": torch.erf, "log1p": torch.log1p,
    "expm1": torch.expm1, "relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "leaky_relu": F.leaky_relu, "elu": F.elu,
    "selu": F.selu, "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid, "hardtanh": F.hardtanh,
    "softplus": F.softplus, "mish": F.mish, "logical_not": torch.logical_not, "isnan": torch.isnan,
    "isinf": torch.isinf, "isfinite": torch.isfinite, "nan_to_num": torch.nan_to_num,
    "clamp": lambda x: torch.clamp(x, -0.75, 2.5),
}
TYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def median_ms(work, warm_up=2, repeats=9):
    for _ in range(warm_up):
        work()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeats)]
    for start, end in events:
        start.record()
        work()
        end.record()
    torch.cuda.synchronize()
    return sorted(start.elapsed_time(end) for start, end in events)[repeats // 2]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--n", type=int, default=1 << 28)
    arguments.add_argument("--compile", default="")
    arguments.add_argument("--json")
    options = arguments.parse_args()
    compiled = set(filter(None, options.compile.split(",")))
    rows = []
    print(f"# torch {torch.__version__}, {torch.cuda.get_device_name(0)}, {options.n} elements, cold")
    for type_name, dtype in TYPES.items():
        x = (torch.rand(options.n, device="cuda") * 16 - 8).to(dtype)
        target = torch.empty_like(x)
        copy = median_ms(lambda: target.copy_(x))
        copied = 2 * x.nbytes / copy / 1e6
        for name, op in UNARY.items():
            variants = [("torch", op)]
            if name in compiled:
                variants.append(("torch.compile", torch.compile(op, dynamic=False)))
            for peer, call in variants:
                moved = x.nbytes + call(x).nbytes
                ms = median_ms(lambda: call(x))
                share = moved / ms / 1e6 / copied
                print(f"{name:14} {type_name:5} {peer:14} {ms:8.4f} ms  {share:.3f} of the copy's {copied:.1f} GB/s")
                rows.append({"op": name, "dtype": type_name, "peer": peer, "ms": ms, "share": share})
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"torch": torch.__version__, "device": torch.cuda.get_device_name(0), "n": options.n, "rows": rows}, file)


if __name__ == "__main__":
    main()
