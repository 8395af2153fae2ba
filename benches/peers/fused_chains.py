"""Times chains of ops of real models, eager, compiled by inductor and by pointwise, cold, beside a copy of the same bytes:

    python3 fused_chains.py [--chain NAME]... [--dtype NAME] [--rows N] [--json FILE]

Also the seconds from `torch.compile` to the first result of each, and the largest difference from float64."""
import argparse
import json
import math
import time

import script

DTYPES = ("bf16", "f16", "f32")


def chains(torch):
    """The chains by name: a function, and its operands: `x` is rows by columns, `p` that of positive numbers, `r` one row, `c` one column."""
    F = torch.nn.functional

    def rms_norm(x, w, eps=1e-6):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype) * w

    def add_rms_norm(x, y, w):
        total = x + y
        return rms_norm(total, w), total

    def clipped(g, u):
        g, u = g.clamp(max=7.0), u.clamp(-7.0, 7.0)
        return (u + 1) * (g * torch.sigmoid(g * 1.702))

    def moments(p, g, m, v):
        m, v = m + (g - m) * 0.1, v + (g * g - v) * 0.001
        return p - 1e-3 * m / (v.sqrt() + 1e-8), m, v

    def twelve(a, b, u):
        t = F.gelu(torch.sigmoid(torch.tanh(a + b) * u) + a, approximate="tanh") * u
        return F.silu(torch.exp(torch.erf(F.softplus(t)))) + a

    return {
        "swiglu": (lambda g, u: F.silu(g) * u, "xx"),
        "geglu": (lambda g, u: F.gelu(g) * u, "xx"),
        "geglu_tanh": (lambda g, u: F.gelu(g, approximate="tanh") * u, "xx"),
        "swiglu_clipped": (clipped, "xx"),
        "bias_gelu": (lambda x, b: F.gelu(x + b), "xr"),
        "bias_gelu_gate_residual": (lambda x, b, g, r: r + F.gelu(x + b) * g, "xrxx"),
        "squared_relu": (lambda x: F.relu(x).square(), "x"),
        "softcap": (lambda x: torch.tanh(x / 50.0) * 50.0, "x"),
        "quick_gelu": (lambda x: x * torch.sigmoid(1.702 * x), "x"),
        "mish_residual": (lambda x, y: y + F.mish(x), "xx"),
        "modulate": (lambda x, scale, shift: x * (1 + scale) + shift, "xrr"),
        "gated_residual": (lambda x, y, g: x + y * torch.sigmoid(g), "xxr"),
        "column_scale": (lambda x, c, r: x * c + r, "xcr"),
        "lerp_states": (lambda h, n, z: n + z * (h - n), "xxx"),
        "moments": (moments, "xxxp"),
        "twelve": (twelve, "xrx"),
        "rms_norm": (rms_norm, "xr"),
        "add_rms_norm": (add_rms_norm, "xxr"),
        "layer_norm": (lambda x, w, b: F.layer_norm(x, w.shape, w, b), "xrr"),
        "add_layer_norm": (lambda x, y, w, b: F.layer_norm(x + y, w.shape, w, b), "xxrr"),
        "softmax_scaled": (lambda x: torch.softmax(x * 0.125, -1), "x"),
        "softmax_masked": (lambda x, m: torch.softmax(x * 0.125 + m, -1), "xx"),
        "dropout_residual": (lambda x, y: y + F.dropout(x, 0.1), "xx"),
        "gelu_dropout_residual": (lambda x, b, y: y + F.dropout(F.gelu(x + b), 0.1), "xrx"),
        "softmax_dropout": (lambda x: F.dropout(torch.softmax(x * 0.125, -1), 0.1), "x"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--chain", action="append")
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--rows", type=int, default=16384)
    parser.add_argument("--columns", type=int, default=4096)
    parser.add_argument("--json")
    options = parser.parse_args()
    torch = script.require("torch")
    script.require_gpu(torch)
    from timing import Timer
    from torch_rows import DTYPES as types
    timer, dtype, rows = Timer(), types[options.dtype], []
    matrix = (options.rows, options.columns)
    shapes = {"x": matrix, "p": matrix, "r": (options.columns,), "c": (options.rows, 1)}
    for name, (function, kinds) in chains(torch).items():
        if options.chain and name not in options.chain:
            continue
        make = {"p": torch.rand}
        operands = [make.get(kind, torch.randn)(shapes[kind], device="cuda").to(dtype) for kind in kinds]
        wanted = function(*[it.double() for it in operands])
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        results = sum(math.prod(it.shape) for it in wanted)
        size = (sum(it.numel() for it in operands) + results) * operands[0].element_size()
        source = torch.empty(size // 2, dtype=torch.uint8, device="cuda")
        target = torch.empty_like(source)
        row = {"chain": name, "bytes": size, "copy": timer.measure(lambda: target.copy_(source), warm=False)["cold_us"]}
        del source, target
        calls = {"eager": function}
        for backend in ("inductor", "pointwise"):
            torch._dynamo.reset()
            begin = time.perf_counter()
            calls[backend] = torch.compile(function, backend=backend, dynamic=False)
            try:
                calls[backend](*operands)
                torch.cuda.synchronize()
                row[f"{backend}_first_s"] = round(time.perf_counter() - begin, 3)
            except Exception as error:  # the others are still worth knowing
                print(f"# {name} {backend}: {str(error).splitlines()[0][:200]}")
                del calls[backend]
        for way, call in calls.items():
            got = call(*operands)
            got = got if isinstance(got, tuple) else (got,)
            if "dropout" not in name:  # each way draws a mask of its own
                row[f"{way}_error"] = max(float((a.double() - b).abs().max()) for a, b in zip(got, wanted))
            row[way] = timer.measure(lambda: call(*operands), warm=False)["cold_us"]
        shown = "  ".join(f"{way} {row[way]:8.1f}" for way in calls)
        share = row["pointwise"] / row["inductor"] if {"pointwise", "inductor"} <= calls.keys() else float("nan")
        print(f"{name:24} copy {row['copy']:8.1f}  {shown}  of inductor's {share:.3f}", flush=True)
        rows.append(row)
        del operands, wanted, calls
    shares = [row["pointwise"] / row["inductor"] for row in rows if "pointwise" in row and "inductor" in row]
    if shares:
        mean = math.exp(sum(map(math.log, shares)) / len(shares))
        print(f"# {torch.cuda.get_device_name()}: {len(shares)} chains, of inductor's time {mean:.3f} by geometric mean, at most {max(shares):.3f}")
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "dtype": options.dtype, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
