"""How many instructions the kernels execute for each byte they move, and how fast they move it: NVIDIA's profiler `ncu`
on single launches of `pointwise run`, and a copy of as many bytes by events.

    python3 roofline.py ./pointwise > docs/data/roofline.csv

2^26 elements. A line has an op, an element type, the bytes that the op reads and writes, the instructions of all
threads, nanoseconds, and the clock in MHz. The book draws them (`book/src/roofline.rs`). Needs a GPU, torch, safetensors
and ncu.
"""
import csv
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import script

if __name__ == "__main__":
    # Before the packages are imported: --help needs none.
    OPTIONS = script.parity(__doc__)
torch = script.require("torch")
safetensors = script.require("safetensors.torch")

COUNT = 1 << 26
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f8e4m3": torch.float8_e4m3fn}
# How many times a tensor of COUNT elements is read or written.
PASSES = (
    dict.fromkeys(
        "neg relu exp log sqrt rsqrt reciprocal sin cos erf log1p expm1 gelu gelu_tanh silu sigmoid tanh elu softplus mish "
        "dropout".split(),
        2,
    )
    | dict.fromkeys(("silu_and_mul", "gelu_and_mul"), 1.5)
    | dict.fromkeys("add mul div remainder pow".split(), 3)
    | {"lerp": 4}
)
SETTINGS = {"dropout": ["--set", "p=0.5", "--set", "seed=1"]}
METRICS = ["smsp__inst_executed.sum", "gpu__time_duration.sum", "smsp__cycles_elapsed.avg.per_second"]


def copy(x):
    """Nanoseconds of a copy."""
    y, times = torch.empty_like(x), []
    for _ in range(21):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.zeros(1 << 28, device=x.device)  # empties the level-2 cache
        begin.record()
        y.copy_(x)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e6)
    return statistics.median(times)


def profile(command, log):
    """The metrics of each kernel that a command launches."""
    ncu = ["ncu", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base", "--log-file", log]
    done = subprocess.run([*ncu, "--metrics", ",".join(METRICS), *command], capture_output=True, text=True)
    lines = [line for line in log.read_text().splitlines() if line.startswith('"')]
    rows = [row for row in csv.DictReader(lines) if row["ID"]]
    if not rows:
        sys.exit(f"error: ncu shows no kernel of `{' '.join(map(str, command))}`: {done.stderr}{log.read_text()}")
    return [[float(row[metric].replace(",", "")) for metric in METRICS] for row in rows]


def main():
    script.require_gpu(torch)
    print(f"# {script.gpu(torch)}, PyTorch {torch.__version__}, {time.strftime('%Y-%m-%d')}")
    print("op,dtype,bytes,instructions,ns,mhz")
    with tempfile.TemporaryDirectory() as folder:
        one, more, target, log = (Path(folder, name) for name in ("one", "more", "out", "log"))
        for kind, dtype in TYPES.items():
            a, b, weight = (torch.randn(COUNT).mul_(2).to(dtype) for _ in range(3))
            safetensors.save_file({"x": a}, one)
            safetensors.save_file({"a": a, "b": b, "weight": weight}, more)
            size = COUNT * a.element_size()
            print(f"copy,{kind},{2 * size},0,{copy(a.cuda()):.0f},", flush=True)
            torch.cuda.empty_cache()
            for op, passes in PASSES.items():
                source = more if passes > 2 else one
                command = [OPTIONS.pointwise, "run", op, source, "-o", target, "--device", "cuda", *SETTINGS.get(op, [])]
                for warps, ns, clock in profile(command, log):
                    line = f"{op},{kind},{passes * size:.0f},{32 * warps:.0f},{ns:.0f},{clock / 1e6:.0f}"
                    print(line, flush=True)


if __name__ == "__main__":
    script.run(main)
