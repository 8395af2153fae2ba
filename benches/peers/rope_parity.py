#!/usr/bin/env python3
"""`pointwise run rope_...` on files made by HF transformers, against the models' own apply_rotary_pos_emb.

    python3 benches/peers/rope_parity.py ./pointwise [cuda|cpu]

For six models: q, k and position ids, the first and last of each power of two below 1,048,576 and 2,000 drawn from all,
go through a safetensors file and the command, with the model's config.json. In f32 the result must lie within three
units in the last place of HF's (docs/rope.md says why not one), measured at the size of what is summed, |x1| + |x2|
times the attention factor: a rotation cancels, and HF's own result is no closer to the exact one. In f16 and bf16, where
HF rounds thrice and the command once, the command's distance from float64 may not be larger than HF's.

HF's tables are made on the CPU, whose frequencies the command has bit for bit; the rotation runs on the device. Needs
torch, transformers 5.17, safetensors.
"""

import json
import sys
import tempfile
from pathlib import Path

import script

if __name__ == "__main__":
    # Before the packages are imported: --help needs none.
    OPTIONS = script.parity(__doc__)
torch = script.require("torch")
transformers = script.require("transformers")
safetensors = script.require("safetensors.torch")
from rope_golden import APPLY, config_of, rotary_of  # noqa: E402

DIGITS = {torch.float32: 23, torch.float16: 10, torch.bfloat16: 7}
OPS = {"half": "rope_neox", "interleaved": "rope_non_neox", "interleaved_to_half": "rope_neox"}
REACH = 1 << 20
# Units in the last place between results in f32.
APART = 3.0


def positions():
    generator = torch.Generator().manual_seed(11)
    edges = [0, 1] + [p for bit in range(1, 20) for p in ((1 << bit) - 1, 1 << bit)] + [REACH - 1]
    drawn = torch.randint(0, REACH, (2000,), generator=generator)
    return torch.cat((torch.tensor(edges), drawn)).to(torch.int64)


def model(name, text, pairs, ids):
    """The function that rotates q and k, their layout, the lanes that rotate, and the tables of cosines and sines in f32."""
    if name.startswith("gpt-j"):
        from transformers.models.gptj import modeling_gptj as module

        table = module.create_sinusoidal_positions(REACH, text["rotary_dim"])[ids]
        sin, cos = torch.split(table[None], text["rotary_dim"] // 2, dim=-1)
        apply = lambda q, k, cos, sin: tuple(module.apply_rotary_pos_emb(x, sin, cos) for x in (q, k))
        return apply, "bshd", text["rotary_dim"], cos, sin
    rotary, module = rotary_of(config_of(text))
    cos, sin = rotary(torch.zeros(1, dtype=torch.float32), ids[None])
    apply = module.apply_rotary_pos_emb
    if pairs == "interleaved_to_half":
        apply = module.apply_rotary_pos_emb_interleave
    return apply, "bhsd", 2 * rotary.inv_freq.shape[0], cos, sin


def exact(x, pairs, cos, sin):
    """The rotation in float64 by f32 tables of half the lanes, and the size of what is summed."""
    half, x = cos.shape[-1], x.double()
    x1, x2 = (x[..., :half], x[..., half:]) if pairs == "half" else (x[..., 0::2], x[..., 1::2])
    y1, y2 = x1 * cos - x2 * sin, x2 * cos + x1 * sin
    size = (x1.abs() + x2.abs()) * (cos * cos + sin * sin).sqrt()
    if pairs == "interleaved":
        return torch.stack((y1, y2), -1).flatten(-2), torch.stack((size, size), -1).flatten(-2)
    return torch.cat((y1, y2), -1), torch.cat((size, size), -1)


def ulps(difference, size, dtype):
    """The largest difference, in units in the last place of the sizes."""
    exponent = torch.floor(torch.log2(size.clamp(min=2.0**-14)))
    return (difference.abs() / torch.exp2(exponent - DIGITS[dtype])).max().item()


def main():
    command, device = OPTIONS.pointwise, OPTIONS.device
    if device == "cuda":
        script.require_gpu(torch)
    # A position times a frequency must not go through TF32.
    torch.set_float32_matmul_precision("highest")
    on = torch.cuda.get_device_name(0) if device == "cuda" else torch.backends.cpu.get_cpu_capability()
    print(f"transformers {transformers.__version__}, torch {torch.__version__}, {on}")
    ids, failures, checked = positions(), [], 0
    with tempfile.TemporaryDirectory() as folder:
        source, target, config = (Path(folder, name) for name in ("in.safetensors", "out.safetensors", "config.json"))
        for name, text, pairs in APPLY:
            apply, layout, lanes, cos, sin = model(name, text, pairs, ids)
            config.write_text(json.dumps(text))
            half_cos, half_sin = cos[..., : lanes // 2].double(), sin[..., : lanes // 2].double()
            wide = (lambda x: x[:, :, None]) if layout == "bshd" else (lambda x: x[:, None])
            for dtype in DIGITS:
                generator = torch.Generator().manual_seed(5)
                tensors = {}
                for key, heads in (("q", 4), ("k", 2)):
                    shape = (1, len(ids), heads, lanes) if layout == "bshd" else (1, heads, len(ids), lanes)
                    tensors[key] = torch.randn(shape, generator=generator).to(dtype)
                safetensors.save_file({**tensors, "position_ids": ids}, source)
                settings = {"config": config, "layout": layout, "pairs": pairs}
                arguments = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
                script.call([command, "run", OPS[pairs], source, "-o", target, "--device", device, *arguments])
                ours = safetensors.load_file(target)
                moved = [x.to(device) for x in (tensors["q"], tensors["k"], cos.to(dtype), sin.to(dtype))]
                theirs = dict(zip(("q", "k"), apply(*moved)))
                for key, x in tensors.items():
                    reference, size = exact(x, pairs, wide(half_cos), wide(half_sin))
                    our, their = ours[key].double(), theirs[key].double().cpu()
                    apart = ulps(our - their, size, dtype)
                    our_error, their_error = (ulps(y - reference, size, dtype) for y in (our, their))
                    equal = (our == their).double().mean().item()
                    wrong = apart > APART if dtype == torch.float32 else our_error > their_error
                    label = f"{name:13} {str(dtype)[6:]:8} {key}"
                    checked += 1
                    failures += [label] * wrong
                    print(
                        f"{label} ulp apart {apart:.2f}, equal {equal:.1%}; from float64: pointwise {our_error:.2f}, "
                        f"HF {their_error:.2f}{'  WRONG' if wrong else ''}",
                        flush=True,
                    )
    print(f"{checked} results compared at {len(ids)} positions up to {REACH - 1}, {len(failures)} failed: {failures}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    script.run(main)
