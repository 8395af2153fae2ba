#!/usr/bin/env python3
"""Times what PyTorch users run for RoPE, on the shapes of `benches/src/bin/rope_bandwidth`.

    python3 benches/peers/rope_torch.py [--model NAME]... [--tokens N]... [--dtype bf16|f16|f32]... [--json FILE]

  eager    the model's own code in HF transformers 5.17: apply_rotary_pos_emb, with the split and the concatenation
           around it where not all lanes rotate
  compile  the same under torch.compile
  liger    Liger's kernel, where it is installed and all lanes rotate

Needs torch with CUDA and transformers. Tables of cosines and sines are made outside of what is timed. Times are medians
of CUDA events around single calls, cold (the L2 cache overwritten before each) and warm; the device sleeps while the
host enqueues. A copy of the same bytes stands beside each row.
"""

import importlib
import json

import script

# HF's module, heads of q and of k, lanes, lanes that rotate.
MODELS = {
    "llama-8b": ("llama", 32, 8, 128, 128),
    "llama-70b": ("llama", 64, 8, 128, 128),
    "deepseek-v3": ("deepseek_v3", 128, 128, 192, 64),
    "phi-3.5": ("phi3", 32, 32, 96, 96),
    "gpt-j": ("gptj", 16, 16, 256, 64),
    "gpt-oss": ("gpt_oss", 64, 8, 64, 64),
    "qwen2.5-7b": ("qwen2", 28, 4, 128, 128),
}

if __name__ == "__main__":
    # Before the packages are imported: --help needs none.
    parser = script.parser(__doc__)
    parser.add_argument("--model", action="append", choices=list(MODELS))
    parser.add_argument("--tokens", type=script.positive, action="append")
    parser.add_argument("--dtype", action="append", choices=["bf16", "f16", "f32"])
    parser.add_argument("--json", type=script.output)
    OPTIONS = parser.parse_args()
torch = script.require("torch")
transformers = script.require("transformers")
from timing import Timer  # noqa: E402

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


def hf(name):
    """q, k, cos, sin to q, k as the model's attention does it: BHSD views, GPT-J BSHD."""
    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    if name == "gptj":
        apply = module.apply_rotary_pos_emb

        def one(x, cos, sin):
            rotated = apply(x[..., : 2 * cos.shape[-1]], sin, cos)
            return torch.cat((rotated, x[..., 2 * cos.shape[-1] :]), dim=-1)

        return lambda q, k, cos, sin: (one(q, cos, sin), one(k, cos, sin))
    if name == "deepseek_v3":
        apply = module.apply_rotary_pos_emb_interleave

        def both(q, k, cos, sin):
            rest = q.shape[-1] - cos.shape[-1]
            q_turned, k_turned = apply(q[..., rest:], k[..., rest:], cos, sin)
            return torch.cat((q[..., :rest], q_turned), dim=-1), torch.cat((k[..., :rest], k_turned), dim=-1)

        return both
    return module.apply_rotary_pos_emb


def liger():
    try:
        from liger_kernel.ops.rope import LigerRopeFunction
    except Exception as error:  # one that is there in part may fail in any way
        print(f"# no liger-kernel ({type(error).__name__}: {error}): its rows are left out")
        return None
    return lambda q, k, cos, sin: LigerRopeFunction.apply(q, k, cos, sin)


def inputs(name, tokens, dtype):
    module, q_heads, k_heads, dim, rotary = MODELS[name]
    # A BSHD buffer seen as BHSD, as models have it.
    q, k = (torch.randn(1, tokens, heads, dim, device="cuda", dtype=dtype) for heads in (q_heads, k_heads))
    if module != "gptj":
        q, k = q.transpose(1, 2), k.transpose(1, 2)
    inverse = 500000.0 ** (-torch.arange(0, rotary, 2, device="cuda", dtype=torch.float32) / rotary)
    angles = torch.arange(tokens, device="cuda", dtype=torch.float32)[:, None] * inverse
    if module not in ("gptj", "gpt_oss"):
        angles = torch.cat((angles, angles), dim=-1)
    angles = angles[None]
    return q, k, angles.cos().to(dtype), angles.sin().to(dtype)


def against(row, copy, state):
    time = row[f"{state}_us"]
    return f"{state} {time:9.2f} us, {copy[f'{state}_us'] / time:.3f} of the copy"


def main():
    script.require_gpu(torch)
    arguments = OPTIONS
    timer, out, liger_rope = Timer(), [], liger()
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}, transformers {transformers.__version__}")
    for name in arguments.model or list(MODELS):
        try:
            apply = hf(MODELS[name][0])
        except (ImportError, AttributeError) as error:
            print(f"{name:12} is not in this version of transformers: {error}")
            continue
        for dtype in arguments.dtype or ["bf16", "f32"]:
            for tokens in arguments.tokens or [1, 512, 4096, 8192, 32768]:
                torch._dynamo.reset()
                q, k, cos, sin = inputs(name, tokens, DTYPES[dtype])
                calls = {"eager": apply, "compile": torch.compile(apply, dynamic=False)}
                if liger_rope and MODELS[name][3] == MODELS[name][4] and cos.shape[-1] == MODELS[name][3]:
                    calls["liger"] = liger_rope
                source = torch.empty(q.numel() + k.numel(), device="cuda", dtype=DTYPES[dtype]).normal_()
                target = torch.empty_like(source)
                copy = timer.measure(lambda: target.copy_(source))
                for peer, call in calls.items():
                    row = {"model": name, "tokens": tokens, "dtype": dtype, "peer": peer, "copy": copy}
                    try:
                        row.update(timer.measure(lambda: call(q, k, cos, sin)))
                    except Exception as error:  # one peer that fails must not cost the others their figures
                        row["error"] = f"{type(error).__name__}: {error}"[:300]
                        print(f"{name:12} {tokens:6} {dtype:4} {peer:8} {row['error']}")
                    else:
                        label = f"{name:12} {tokens:6} {dtype:4} {peer:8}"
                        print(f"{label} {against(row, copy, 'cold')} {against(row, copy, 'warm')}", flush=True)
                    out.append(row)
    if arguments.json:
        about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
        with open(arguments.json, "w") as file:
            json.dump({**about, "transformers": transformers.__version__, "rows": out}, file, indent=1)


if __name__ == "__main__":
    script.run(main)
