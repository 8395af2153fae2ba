#!/usr/bin/env python3
"""Largest errors of ops on rows by the rows' length, of the package and of PyTorch, against PyTorch's op in float64:

    python3 benches/peers/row_accuracy.py [--op NAME]... [--dtype NAME]... [--device cuda|cpu] [--json FILE]

2^22 elements for each op, type and length, at least two rows: normal ones of standard deviation 4, weights of deviation 1; for
sums their magnitudes, as a sum that cancels says nothing. `far` are rows of mean 10^6. An error is in units in the last place
(ULP) of the exact result; of `layer_norm`, whose results cancel, in those of 1 where a result is smaller. The table is for
Markdown: ours, PyTorch's. Needs torch and the package pointwise."""

import json
import math

import script

LENGTHS = (16, 128, 1024, 4097, 16_384, 131_072, 1_048_576)
DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16"}
ELEMENTS = 1 << 22


def cases(torch, pointwise):
    """Each op's name: how its rows are made of normal numbers, ours, PyTorch's, the magnitude below which ULP are those of it."""
    F = torch.nn.functional

    def normal(x):
        return x * 4

    def far(x):
        return x * 4 + 1e6

    def norm(function):
        return lambda x, weight, bias: function(x, x.shape[-1:], weight, bias)

    def labels(x):
        return torch.arange(x.shape[0], device=x.device) % x.shape[-1]

    layer_norm = norm(F.layer_norm)
    return {
        "rms_norm": (normal, lambda x, w, _: pointwise.rms_norm(x, w, eps=1e-6), lambda x, w, _: F.rms_norm(x, x.shape[-1:], w, 1e-6), 0),
        "layer_norm": (normal, pointwise.layer_norm, layer_norm, 1),
        "layer_norm, far": (far, pointwise.layer_norm, layer_norm, 1),
        "l2_normalize": (normal, lambda x, *_: pointwise.l2_normalize(x), lambda x, *_: F.normalize(x, dim=-1), 0),
        "softmax": (normal, lambda x, *_: pointwise.softmax(x), lambda x, *_: torch.softmax(x, -1), 0),
        "log_softmax": (normal, lambda x, *_: pointwise.log_softmax(x), lambda x, *_: torch.log_softmax(x, -1), 0),
        "logsumexp": (normal, lambda x, *_: pointwise.logsumexp(x), lambda x, *_: torch.logsumexp(x, -1), 0),
        "cross_entropy": (
            normal,
            lambda x, *_: pointwise.cross_entropy(x, labels(x)),
            lambda x, *_: F.cross_entropy(x, labels(x), reduction="none"),
            0,
        ),
        "sum": (abs, lambda x, *_: pointwise.sum(x), lambda x, *_: x.sum(-1), 0),
        "mean": (abs, lambda x, *_: pointwise.mean(x), lambda x, *_: x.mean(-1), 0),
        "var": (normal, lambda x, *_: pointwise.var(x), lambda x, *_: x.var(-1), 0),
        "var, far": (far, lambda x, *_: pointwise.var(x), lambda x, *_: x.var(-1), 0),
    }


def largest_error(torch, got, exact, least):
    """In ULP of the exact result; infinite where one is a number and the other is none."""
    about = torch.finfo(got.dtype)
    size = exact.abs().clamp(min=max(least, about.tiny), max=about.max)
    # eps is the distance of 1 from the next number.
    ulp = torch.exp2(torch.floor(torch.log2(size))) * about.eps
    got = got.double()
    rounded = exact.to(getattr(torch, str(about.dtype))).double()
    off = torch.where(got == rounded, (rounded - exact).abs().nan_to_num(0.0, 0.0), (got - exact).abs())
    off = torch.where(got.isnan() & exact.isnan(), 0.0, off / ulp)
    return off.nan_to_num(math.inf, math.inf).max().item()


def measure(torch, case, dtype, length, device):
    """Ours and PyTorch's largest error."""
    make, ours, theirs, least = case
    torch.manual_seed(length)
    rows = max(2, ELEMENTS // length)
    x = make(torch.randn(rows, length, dtype=torch.float64, device=device)).to(dtype)
    weight, bias = (torch.randn(length, device=device).to(dtype) for _ in range(2))
    exact = theirs(x.double(), weight.double(), bias.double())
    return [largest_error(torch, function(x, weight, bias), exact, least) for function in (ours, theirs)]


def main():
    parser = script.parser(__doc__)
    parser.add_argument("--op", action="append")
    parser.add_argument("--dtype", action="append", choices=DTYPES)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--json", type=script.output)
    options = parser.parse_args()
    torch = script.require("torch")
    pointwise = script.require("pointwise")
    if options.device == "cuda":
        script.require_gpu(torch)
        print(f"{script.gpu(torch)}, PyTorch {torch.__version__}\n")
    all_cases = cases(torch, pointwise)
    if unknown := [name for name in options.op or () if name not in all_cases]:
        parser.error(f"no op {unknown[0]!r}: there are {', '.join(map(repr, all_cases))}")
    print("| op | type | " + " | ".join(f"{length:,}" for length in LENGTHS) + " |")
    print("|---|---|" + "---|" * len(LENGTHS))
    figures = []
    for name in options.op or all_cases:
        for kind in options.dtype or DTYPES:
            if name.endswith("far") and kind != "f32":
                continue
            row = [measure(torch, all_cases[name], getattr(torch, DTYPES[kind]), length, options.device) for length in LENGTHS]
            print(f"| `{name}` | {kind} | " + " | ".join(f"{ours:.3g}, {theirs:.3g}" for ours, theirs in row) + " |", flush=True)
            figures.append({"op": name, "type": kind, "errors": dict(zip(LENGTHS, row))})
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    script.run(main)
