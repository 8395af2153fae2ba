#!/usr/bin/env python3
"""Times what PyTorch users run for RoPE, on the shapes of `benches/src/bin/rope.rs`: eager, torch.compile, Liger.

Needs: torch with CUDA; liger-kernel for its rows (left out without it).
Run:   python3 benches/peers/rope_torch.py [--tokens N]... [--dtype bf16|f16|f32]... [--json FILE]

Bytes are 2 (q + k). Times are medians of events around single calls, with a copy of the same bytes beside each.
"""

import argparse
import json
import statistics

import torch

MODELS = {"llama-8b": (32, 8, 128), "llama-70b": (64, 8, 128), "phi-3.5": (32, 32, 96), "gpt-oss": (64, 8, 64)}
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def eager(q, k, cos, sin):
    """HF's apply_rotary_pos_emb for [batch, heads, sequence, head_dim]."""
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin


def microseconds(work, repeats=21):
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e3)
    return statistics.median(times)


def peers():
    found = {"eager": eager, "compile": torch.compile(eager, dynamic=False)}
    try:
        from liger_kernel.ops.rope import LigerRopeFunction

        found["liger"] = lambda q, k, cos, sin: LigerRopeFunction.apply(q, k, cos, sin)
    except ImportError:
        print("# no liger-kernel: its rows are left out")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, action="append")
    parser.add_argument("--dtype", choices=list(DTYPES), action="append")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows, found = [], peers()
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}")
    for name, (q_heads, k_heads, dim) in MODELS.items():
        for tokens in arguments.tokens or [1, 16, 512, 4096, 8192, 32768]:
            for dtype in arguments.dtype or list(DTYPES):
                kind = DTYPES[dtype]
                # A BSHD buffer seen as BHSD, as models have it.
                q, k = (
                    torch.randn(1, tokens, heads, dim, device="cuda", dtype=kind).transpose(1, 2)
                    for heads in (q_heads, k_heads)
                )
                inverse = 500000.0 ** (-torch.arange(0, dim, 2, device="cuda", dtype=torch.float32) / dim)
                angles = torch.arange(tokens, device="cuda", dtype=torch.float32)[:, None] * inverse
                angles = torch.cat((angles, angles), dim=-1)[None]
                cos, sin = angles.cos().to(kind), angles.sin().to(kind)
                source = torch.randn(tokens * (q_heads + k_heads) * dim, device="cuda", dtype=kind)
                target = torch.empty_like(source)
                copy = microseconds(lambda: target.copy_(source))
                for peer, work in found.items():
                    time = microseconds(lambda: work(q, k, cos, sin))
                    row = {"model": name, "tokens": tokens, "dtype": dtype, "peer": peer, "us": time, "copy_us": copy}
                    rows.append(row)
                    share = f"{copy / time:.3f} of the copy's {copy:.2f} us"
                    print(f"{name:10} {tokens:6} {dtype:4} {peer:8} {time:9.2f} us  {share}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"device": torch.cuda.get_device_name(), "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
