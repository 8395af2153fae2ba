#!/usr/bin/env python3
"""Seconds from `torch.compile` to the first result, by inductor and by pointwise: a Llama of 32 layers, and a chain of ten ops.

    python3 compile_start.py [--what WHAT]... [--backend BACKEND]... [--cold] [--layers N] [--hidden N] [--json FILE]

Each figure is of a process of its own: `cold` with empty caches (inductor's, Triton's and the driver's), `warm` with those that the
cold one has left. `dynamo` is the time with the backend `eager`, which compiles nothing."""

import json
import os
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


def main(options):
    rows = []
    for what in options.what or WHAT:
        for backend in options.backend or BACKENDS:
            with tempfile.TemporaryDirectory() as folder:
                caches = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton", "CUDA_CACHE_PATH": "cuda"}
                environment = os.environ | {name: os.path.join(folder, path) for name, path in caches.items()}
                for cache in ("cold",) if options.cold else ("cold", "warm"):
                    words = [sys.executable, __file__, "--one", what, backend, "--layers", str(options.layers)]
                    words += ["--hidden", str(options.hidden)]
                    text = subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout
                    row = {"what": what, "backend": backend, "cache": cache, **json.loads(text.splitlines()[-1])}
                    print(f"{what:6} {backend:10} {cache}: {row['first']:7.2f} s", flush=True)
                    rows.append(row)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    arguments = script.parser(__doc__)
    arguments.add_argument("--what", action="append", choices=WHAT)
    arguments.add_argument("--backend", action="append", choices=BACKENDS)
    arguments.add_argument("--cold", action="store_true", help="with empty caches alone")
    arguments.add_argument("--layers", type=script.positive, default=32)
    arguments.add_argument("--hidden", type=script.positive, default=2048)
    arguments.add_argument("--json")
    arguments.add_argument("--one", nargs=2, help="one figure in this process")
    OPTIONS = arguments.parse_args()
    if OPTIONS.one:
        one(*OPTIONS.one, OPTIONS.layers, OPTIONS.hidden)
    else:
        main(OPTIONS)
