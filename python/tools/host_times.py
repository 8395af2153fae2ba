"""Times of a call, torch's and pointwise's: `python host_times.py [cpu|cuda] [--elements N ..] [--only WORD] [--json FILE]`.

Of 16 elements it is the host's time. The two take turns in short runs, and of each the least run counts, in microseconds:
what else the machine does makes a run longer, never shorter. On the CPU one thread computes. On a GPU launches are queued,
and waited for outside of the time.
"""

import argparse
import json
import time

import pointwise
import torch
import torch.nn.functional as F


def least(functions, args, device, seconds):
    """Microseconds of a call of each function."""
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            functions[0](*args)
        took = time.perf_counter() - start
        if took > 2e-4:
            break
        count *= 2
    best = [float("inf")] * len(functions)
    end, turns = time.perf_counter() + seconds, 0
    while turns < 20 or time.perf_counter() < end:
        for k, f in enumerate(functions):
            start = time.perf_counter()
            for _ in range(count):
                f(*args)
            best[k] = min(best[k], time.perf_counter() - start)
            if device == "cuda":
                torch.cuda.synchronize()
        turns += 1
    return [b / count * 1e6 for b in best]


def rows(device, elements):
    """(name, torch's function, pointwise's, arguments) of each call."""
    x = torch.randn(elements, device=device)
    g = x.clone().requires_grad_()
    half, mask, out = x.half(), x > 0, torch.empty_like(x)
    brain, double, whole = x.bfloat16(), x.double(), torch.arange(elements, device=device, dtype=torch.int32)
    square = torch.randn(max(elements // 256, 4), min(elements // 4, 256), device=device)
    row, wide = square[0].clone(), torch.randn(4, elements // 2, device=device)
    low, high = x - 1, x + 1
    swiglu = (lambda a: F.silu(a[:, : a.shape[1] // 2]) * a[:, a.shape[1] // 2 :], pointwise.silu_and_mul, (wide,))
    names = [
        ("silu", F.silu, "silu", (x,)),
        ("mul", torch.mul, "mul", (x, x)),
        ("add", torch.add, "add", (x, x)),
        ("add, alpha", lambda x, y: torch.add(x, y, alpha=2), lambda x, y: pointwise.add(x, y, alpha=2), (x, x)),
        ("mul by a number", torch.mul, "mul", (x, 2.5)),
        ("pow by a number", torch.pow, "pow", (x, 2.0)),
        ("mul of a number", lambda x: 2.5 * x, lambda x: pointwise.mul(2.5, x), (x,)),
        ("gt a number", torch.gt, "gt", (x, 0.5)),
        ("relu_", torch.relu_, "relu_", (x.clone(),)),
        ("mul_", lambda x, y: x.mul_(y), "mul_", (x.clone(), torch.ones_like(x))),
        ("mul_ by a number", lambda x: x.mul_(1.0), lambda x: pointwise.mul_(x, 1.0), (x.clone(),)),
        ("relu, inplace", lambda x: F.relu(x, inplace=True), lambda x: pointwise.relu(x, inplace=True), (x.clone(),)),
        ("exp, out=", lambda x: torch.exp(x, out=out), lambda x: pointwise.exp(x, out=out), (x,)),
        ("mul, out=", lambda x: torch.mul(x, x, out=out), lambda x: pointwise.mul(x, x, out=out), (x,)),
        ("mul by a number, out=", lambda x: torch.mul(x, 2, out=out), lambda x: pointwise.mul(x, 2, out=out), (x,)),
        ("mul, f32 and f16", torch.mul, "mul", (x, half)),
        ("mul, f32 and i32", torch.mul, "mul", (x, whole)),
        ("mul, i32 by 2.5", torch.mul, "mul", (whole, 2.5)),
        ("exp, i32", torch.exp, "exp", (whole,)),
        ("add a row", torch.add, "add", (square, row)),
        ("clamp", torch.clamp, "clamp", (x, -1, 1)),
        ("clamp, min", lambda x: torch.clamp(x, min=0), lambda x: pointwise.clamp(x, min=0), (x,)),
        ("clamp by tensors", torch.clamp, "clamp", (x, low, high)),
        ("clamp_", lambda x: x.clamp_(-1, 1), lambda x: pointwise.clamp_(x, -1, 1), (x.clone(),)),
        ("masked_fill", torch.masked_fill, "masked_fill", (x, mask, 2.5)),
        ("masked_fill_", lambda x, m: x.masked_fill_(m, 2.5), lambda x, m: pointwise.masked_fill_(x, m, 2.5), (x.clone(), mask)),
        ("where", torch.where, "where", (mask, x, x)),
        ("gelu", F.gelu, "gelu", (x,)),
        ("div", torch.div, "div", (x, x)),
        ("round", torch.round, "round", (x,)),
        ("relu, bf16", torch.relu, "relu", (brain,)),
        ("mul, bf16", torch.mul, "mul", (brain, brain)),
        ("silu, with grad", F.silu, "silu", (g,)),
        ("mul, with grad", torch.mul, "mul", (g, g)),
        ("mul by a number, grad", torch.mul, "mul", (g, 2.5)),
        ("clamp, with grad", torch.clamp, "clamp", (g, -1, 1)),
        ("torch.ops, silu", torch.ops.aten.silu, torch.ops.pointwise.silu, (x,)),
        ("torch.ops, mul", torch.ops.aten.mul, torch.ops.pointwise.mul, (x, x)),
        ("silu_and_mul", *swiglu),
        ("rms_norm", lambda x, w: F.rms_norm(x, w.shape), "rms_norm", (square, row)),
        ("softmax", lambda x: F.softmax(x, -1), "softmax", (square,)),
    ]
    if device == "cpu":
        names += [("add, f64", torch.add, "add", (double, double)), ("mul, f64", torch.mul, "mul", (double, double))]
        names += [("sqrt, f64", torch.sqrt, "sqrt", (double,)), ("mul by a number, f64", torch.mul, "mul", (double, 2.5))]
        names += [("relu, f64", torch.relu, "relu", (double,)), ("add a number, f64", torch.add, "add", (double, 1.5))]
    for name, theirs, ours, args in names:
        yield name, theirs, getattr(pointwise, ours) if isinstance(ours, str) else ours, args


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device", nargs="?", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--elements", type=int, nargs="+", default=[16])
    parser.add_argument("--seconds", type=float, default=0.3, help="of each row")
    parser.add_argument("--only", default="", help="rows with this word")
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    device, found = options.device, []
    name = torch.cuda.get_device_name() if device == "cuda" else f"the CPU ({torch.backends.cpu.get_cpu_capability()})"
    print(f"torch {torch.__version__} on {name}, us a call")
    for elements in options.elements:
        print(f"{elements:<24d}{'torch':>9s}{'pointwise':>11s}{'ratio':>7s}")
        for name, theirs, ours, args in rows(device, elements):
            if options.only in name:
                a, b = least((theirs, ours), args, device, options.seconds)
                found.append({"call": name, "elements": elements, "torch": a, "pointwise": b})
                print(f"{name:24s}{a:9.2f}{b:11.2f}{b / a:7.2f}", flush=True)
        if options.only:
            continue
        print("under override()")
        for name, theirs, _, args in list(rows(device, elements))[:5]:

            def under(*args, theirs=theirs):
                return theirs(*args)

            a = least((theirs,), args, device, options.seconds)[0]
            pointwise.override()
            b = least((theirs,), args, device, options.seconds)[0]
            pointwise.override(False)
            print(f"{name:24s}{a:9.2f}{b:11.2f}{b / a:7.2f}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
