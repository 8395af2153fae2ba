#!/usr/bin/env python3
"""Seconds from `torch.compile` to the first result, by inductor and by pointwise: a Llama of 32 layers, and a chain of ten ops.

    python3 compile_start.py [--what WHAT]... [--backend BACKEND]... [--cold] [--runs N] [--apart] [--layers N] [--hidden N] [--json FILE]

Each figure is of a process of its own: `cold` with empty caches (inductor's, Triton's and the driver's), `warm` with those that a
cold one has left. `dynamo` is the time with the backend `eager`, which compiles nothing. Of `--runs` runs the median is printed,
and the least and the most. `--apart` runs the rows at the same time, each on cores of its own."""

import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import script

WHAT = ("chain", "llama")
BACKENDS = ("dynamo", "inductor", "pointwise")


def chain(x, b, g):
    import torch
    F = torch.nn.functional
    t = torch.tanh(x + b) * g
    return F.silu(torch.sigmoid(t) * x + F.gelu(t, approximate="tanh")) * 0.5 + x


def one(what, backend, layers, hidden):
    """Seconds to the first result in this process."""
    import torch
    if what == "llama":
        import transformers
        config = transformers.LlamaConfig(
            hidden_size=hidden, intermediate_size=3 * hidden, num_hidden_layers=layers, num_attention_heads=hidden // 64,
            num_key_value_heads=hidden // 256, vocab_size=1024, attn_implementation="sdpa",
        )
        with torch.device("cuda"):
            model = transformers.LlamaModel(config).to(torch.bfloat16).eval()
        ids = torch.randint(3, 1000, (1, 128), device="cuda")
        call, operands = lambda ids: model(ids, use_cache=False)[0], (ids,)
    else:
        call, operands = chain, tuple(torch.randn(1024, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    with torch.no_grad():
        begin = time.perf_counter()
        call(*operands)
        torch.cuda.synchronize()
        eager = time.perf_counter() - begin
        begin = time.perf_counter()
        compiled = torch.compile(call, backend="eager" if backend == "dynamo" else backend)
        compiled(*operands)
        torch.cuda.synchronize()
        print(json.dumps({"eager": eager, "first": time.perf_counter() - begin}))


def first(what, backend, options, cores):
    """The rows of a backend: each of a process that runs alone on these cores."""
    rows = []
    for run in range(options.runs):
        with tempfile.TemporaryDirectory() as folder:
            caches = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton", "CUDA_CACHE_PATH": "cuda"}
            environment = os.environ | {name: os.path.join(folder, path) for name, path in caches.items()}
            words = [sys.executable, __file__, "--one", what, backend, "--layers", str(options.layers)]
            words += ["--hidden", str(options.hidden), "--cores", ",".join(map(str, cores))]
            for cache in ("cold",) if options.cold else ("cold", "warm"):
                done = subprocess.run(words, env=environment, capture_output=True, text=True)
                if done.returncode:
                    sys.exit(f"error: {what} {backend} {cache}: {done.stderr[-2000:]}")
                rows.append({"what": what, "backend": backend, "cache": cache, **json.loads(done.stdout.splitlines()[-1])})
                print(f"# {what} {backend} {cache}, run {run + 1}: {rows[-1]['first']:.2f} s", flush=True)
    return rows


def main(options):
    pairs = [(what, backend) for what in options.what or WHAT for backend in options.backend or BACKENDS]
    cores = sorted(os.sched_getaffinity(0))
    size = len(cores) // len(pairs)
    if options.apart and size == 0:
        sys.exit(f"error: {len(pairs)} rows need as many cores, but there are {len(cores)}: leave --apart out")
    parts = [cores[k * size : (k + 1) * size] if options.apart else cores for k in range(len(pairs))]
    with concurrent.futures.ThreadPoolExecutor(len(pairs) if options.apart else 1) as pool:
        made = list(pool.map(lambda pair, part: first(*pair, options, part), pairs, parts))
    print(f"{'s to the first result':<24}{'cold':>8}{'(least, most)':>18}{'warm':>8}{'(least, most)':>18}")
    for (what, backend), rows in zip(pairs, made):
        line = f"{what + ' ' + backend:<24}"
        for cache in ("cold",) if options.cold else ("cold", "warm"):
            times = sorted(row["first"] for row in rows if row["cache"] == cache)
            line += f"{statistics.median(times):>8.2f}{f'({times[0]:.2f}, {times[-1]:.2f})':>18}"
        print(line, flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"cores": parts, "rows": sum(made, [])}, file, indent=1)


if __name__ == "__main__":
    arguments = script.parser(__doc__)
    arguments.add_argument("--what", action="append", choices=WHAT)
    arguments.add_argument("--backend", action="append", choices=BACKENDS)
    arguments.add_argument("--cold", action="store_true", help="with empty caches alone")
    arguments.add_argument("--runs", type=script.positive, default=1)
    arguments.add_argument("--apart", action="store_true", help="all rows at the same time")
    arguments.add_argument("--layers", type=script.positive, default=32)
    arguments.add_argument("--hidden", type=script.positive, default=2048)
    arguments.add_argument("--json")
    arguments.add_argument("--one", nargs=2, help="one figure in this process")
    arguments.add_argument("--cores", help="the cores of this process")
    OPTIONS = arguments.parse_args()
    if OPTIONS.cores:
        os.sched_setaffinity(0, map(int, OPTIONS.cores.split(",")))
    if OPTIONS.one:
        one(*OPTIONS.one, OPTIONS.layers, OPTIONS.hidden)
    else:
        main(OPTIONS)
