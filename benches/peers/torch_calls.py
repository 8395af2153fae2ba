#!/usr/bin/env python3
"""Host time of a call in PyTorch: torch's own function, pointwise's, and torch's under `pointwise.override()`.

    python3 benches/peers/torch_calls.py [--device cuda|cpu] [--elements N]

Needs torch and the package pointwise. Prints microseconds a call, the smallest of seven runs of 2,000 calls, and the
ratio to torch's function. On a GPU the calls of a run are queued without a wait in between, so the time is the host's.
"""

import time

import script

RUNS, CALLS = 7, 2000


def microseconds(call):
    best = float("inf")
    for _ in range(RUNS):
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        best = min(best, time.perf_counter() - start)
    return best / CALLS * 1e6


def main(options):
    F = torch.nn.functional
    x = torch.randn(options.elements, device=options.device)
    w = x.clone().requires_grad_()
    grad = torch.ones_like(x)

    def step(function):
        return lambda: function(w).backward(grad, inputs=[w])

    def cleared(function):
        run = step(function)

        def call():
            w.grad = None
            run()

        return call

    print(f"torch {torch.__version__}, {options.device}, {options.elements} elements of f32")
    print(f"{'call':<34}{'torch':>8}{'pointwise':>11}{'ratio':>7}{'override':>10}{'ratio':>7}")
    rows = [
        ("silu", lambda: F.silu(x), lambda: pointwise.silu(x)),
        ("add", lambda: torch.add(x, grad), lambda: pointwise.add(x, grad)),
        ("mul by a number", lambda: torch.mul(x, 2.0), lambda: pointwise.mul(x, 2.0)),
        ("silu, requires_grad", lambda: F.silu(w), lambda: pointwise.silu(w)),
        ("silu and backward", cleared(F.silu), cleared(pointwise.silu)),
    ]
    for name, theirs, ours in rows:
        base, time_of_ours = microseconds(theirs), microseconds(ours)
        pointwise.override()
        under = microseconds(theirs)
        pointwise.override(False)
        ratios = f"{time_of_ours:>11.2f}{time_of_ours / base:>7.2f}{under:>10.2f}{under / base:>7.2f}"
        print(f"{name:<34}{base:>8.2f}{ratios}")


if __name__ == "__main__":
    # Before the packages are imported: --help needs none.
    arguments = script.parser(__doc__)
    arguments.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    arguments.add_argument("--elements", type=script.positive, default=16)
    OPTIONS = arguments.parse_args()
    torch = script.require("torch")
    pointwise = script.require("pointwise")
    if OPTIONS.device == "cuda":
        script.require_gpu(torch)
    main(OPTIONS)
