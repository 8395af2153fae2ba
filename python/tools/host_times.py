"""Host time of a call, torch's and pointwise's: `python host_times.py [cpu|cuda]`.

The least of many short runs, in microseconds; on a GPU launches are queued, and waited for outside of the time.
"""

import sys
import time

import pointwise
import torch
import torch.nn.functional as F

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda" if torch.cuda.is_available() else "cpu"


def least(f, *args, runs=200, calls=100):
    """Microseconds of a call."""
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        for _ in range(calls):
            f(*args)
        best = min(best, time.perf_counter() - start)
        if DEVICE == "cuda":
            torch.cuda.synchronize()
    return best / calls * 1e6


def main():
    torch.set_num_threads(1)
    x = torch.randn(16, device=DEVICE)
    g = x.clone().requires_grad_()
    wide = torch.randn(4, 32, device=DEVICE)
    half, mask, out = x.half(), x > 0, torch.empty_like(x)
    rows = [
        ("silu", F.silu, pointwise.silu, (x,)),
        ("silu, with grad", F.silu, pointwise.silu, (g,)),
        ("mul", torch.mul, pointwise.mul, (x, x)),
        ("mul, with grad", torch.mul, pointwise.mul, (g, g)),
        ("mul by a number", torch.mul, pointwise.mul, (x, 2.5)),
        ("add", torch.add, pointwise.add, (x, x)),
        ("relu_", torch.relu_, pointwise.relu_, (x.clone(),)),
        ("exp, out=", lambda x: torch.exp(x, out=out), lambda x: pointwise.exp(x, out=out), (x,)),
        ("mul, two types", torch.mul, pointwise.mul, (x, half)),
        ("clamp", torch.clamp, pointwise.clamp, (x, -1, 1)),
        ("masked_fill", torch.masked_fill, pointwise.masked_fill, (x, mask, 2.5)),
        ("torch.ops", torch.ops.aten.silu, torch.ops.pointwise.silu, (x,)),
        ("silu_and_mul", lambda a: F.silu(a[:, :16]) * a[:, 16:], pointwise.silu_and_mul, (wide,)),
    ]
    print(f"torch {torch.__version__} on {torch.cuda.get_device_name() if DEVICE == 'cuda' else 'the CPU'}, us a call")
    print(f"{'':20s}{'torch':>8s}{'pointwise':>10s}{'ratio':>7s}")
    for name, theirs, ours, args in rows:
        a, b = least(theirs, *args), least(ours, *args)
        print(f"{name:20s}{a:8.2f}{b:10.2f}{b / a:7.2f}")
    print("under override()")
    for name, theirs, _, args in rows[:5]:
        a = least(theirs, *args)
        pointwise.override()
        b = least(theirs, *args)
        pointwise.override(False)
        print(f"{name:20s}{a:8.2f}{b:10.2f}{b / a:7.2f}")


if __name__ == "__main__":
    main()
