#!/usr/bin/env python3
"""Times torch's functions on rows, eager and under `pointwise.override()`, forward and backward, by CUDA events:

    python3 benches/peers/override_rows.py [--op NAME]... [--dtype NAME]... [--len N]... [--rounds N] [--json FILE]

Eager calls and calls under `override()` take turns, cold; a figure is the median of the rounds, in microseconds. `host`
is the time that the host takes to enqueue one forward call. With `--len` the rows have these lengths, and 2^24 elements
together. Needs torch and the package pointwise, and a GPU."""

import json
import statistics

import script

SHAPES = {
    "rms_norm": [(4096, 4096), (16, 4096)],
    "layer_norm": [(4096, 4096), (16, 4096)],
    "softmax": [(4096, 4096), (16, 4096), (32, 16, 512, 512)],
    "log_softmax": [(4096, 4096), (16, 4096)],
    "logsumexp": [(4096, 4096), (16, 4096)],
}
DTYPES = {"bf16": "bfloat16", "f32": "float32"}
WAYS = ("eager", "override")


def call_of(op, x, weight, bias):
    """The function's call, and the tensors that have a gradient."""
    F = torch.nn.functional
    norm = x.shape[-1:]
    return {
        "rms_norm": (lambda: F.rms_norm(x, norm, weight, 1e-6), (x, weight)),
        "layer_norm": (lambda: F.layer_norm(x, norm, weight, bias), (x, weight, bias)),
        "softmax": (lambda: F.softmax(x, -1), (x,)),
        "log_softmax": (lambda: F.log_softmax(x, -1), (x,)),
        "logsumexp": (lambda: torch.logsumexp(x, -1), (x,)),
    }[op]


def backward_of(forward, leaves):
    """A call of the gradient alone."""
    y = forward()
    grad = torch.randn_like(y)
    return lambda: torch.autograd.grad(y, leaves, grad, retain_graph=True)


def measure(timer, op, dtype, shape, rounds):
    """The figures of a row of the table."""
    like = {"dtype": getattr(torch, DTYPES[dtype]), "device": "cuda", "requires_grad": True}
    x, weight, bias = torch.randn(shape, **like), torch.randn(shape[-1], **like), torch.randn(shape[-1], **like)
    forward, leaves = call_of(op, x, weight, bias)
    figures = {}
    for _ in range(rounds):
        for way in WAYS:
            pointwise.override(way == "override")
            with torch.no_grad():
                made = timer.measure(forward, warm=False)["cold_us"]
                host = timer.on_the_host(forward, made)
            back = timer.measure(backward_of(forward, leaves), warm=False)["cold_us"]
            for name, value in (("forward", made), ("backward", back), ("host", host)):
                figures.setdefault((name, way), []).append(value)
    pointwise.override(False)
    return {f"{name} {way}": round(statistics.median(values), 2) for (name, way), values in figures.items()}


def main(options):
    from timing import Timer

    timer, rows = Timer(), []
    print(f"torch {torch.__version__}, {script.gpu(torch)}, microseconds, cold")
    parts = ("forward", "backward", "host")
    print(f"{'op':<12}{'type':<6}{'shape':<18}" + "".join(f"{part:>10}{'override':>10}{'ratio':>7}" for part in parts))
    for op in options.op or SHAPES:
        for dtype in options.dtype or DTYPES:
            for shape in [(2**24 // n, n) for n in options.len or ()] or SHAPES[op]:
                row = measure(timer, op, dtype, shape, options.rounds)
                text = ""
                for part in parts:
                    base, ours = row[f"{part} eager"], row[f"{part} override"]
                    text += f"{base:>10.2f}{ours:>10.2f}{ours / base:>7.2f}"
                print(f"{op:<12}{dtype:<6}{' x '.join(map(str, shape)):<18}{text}", flush=True)
                rows.append({"op": op, "dtype": dtype, "shape": shape, **row})
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    # Before the packages are imported: --help needs none.
    arguments = script.parser(__doc__)
    arguments.add_argument("--op", action="append", choices=SHAPES)
    arguments.add_argument("--dtype", action="append", choices=DTYPES)
    arguments.add_argument("--len", action="append", type=script.positive)
    arguments.add_argument("--rounds", type=script.positive, default=3)
    arguments.add_argument("--json", type=script.output)
    OPTIONS = arguments.parse_args()
    torch = script.require("torch")
    script.require_gpu(torch)
    pointwise = script.require("pointwise")
    script.run(lambda: main(OPTIONS))
