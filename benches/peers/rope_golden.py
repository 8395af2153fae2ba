#!/usr/bin/env python3
"""Writes what HF transformers computes for RoPE, for the tests to compare with.

Needs: transformers 5.17, torch (any build; everything runs on the CPU), numpy.
Run:   python3 benches/peers/rope_golden.py [OUT]      (OUT: a folder; default tests/golden)

  rope_frequencies.json  for many config.json texts: inv_freq (f32 bits, hex) and the attention factor, from the model's
                         own rotary embedding, which calls modeling_rope_utils.ROPE_INIT_FUNCTIONS.
  rope_apply.json        for six models: cos and sin tables and the outputs of the model's own apply_rotary_pos_emb, f32.

The f32 bits of inv_freq depend on torch's CPU `pow`: on its vector width (32 elements a block with AVX-512, 16 with AVX2)
in about one element of a hundred, by one ULP. Run it where `cpu_capability` in the output says AVX512.
"""

import json
import math
import pathlib

import script

if __name__ == "__main__":
    # Before the packages are imported: --help needs none.
    parser = script.parser(__doc__)
    parser.add_argument("out", nargs="?", type=pathlib.Path, default="tests/golden")
    OPTIONS = parser.parse_args()
np = script.require("numpy")
torch = script.require("torch")
transformers = script.require("transformers")
from transformers import AutoConfig  # noqa: E402
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS  # noqa: E402

POSITIONS = [0, 1, 40, 2047, 4095, 4097, 131071, 1048575, 8191]  # not sorted on purpose


def hex_bits(tensor):
    """f32 values as hexadecimal bit patterns, eight digits each, row-major."""
    return tensor.detach().contiguous().float().numpy().astype("<f4").view("<u4").ravel().astype(">u4").tobytes().hex()


def lcg_input(shape, seed):
    """Inputs that a test can make again exactly: k / 256 with k in -512..511, from a 32-bit linear congruence."""
    count, state, out = math.prod(shape), seed, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out.append(((state >> 22) - 512) / 256.0)
    return torch.tensor(out, dtype=torch.float32).reshape(shape)


def spread(n, first, last):
    """A list of divisors like a LongRoPE model's: rising, with two digits after the point."""
    return [round(first * (last / first) ** (i / max(n - 1, 1)), 2) for i in range(n)]


def llama(head_dim, theta, reach, scaling=None, **more):
    return {
        "model_type": "llama",
        "hidden_size": 32 * head_dim,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": head_dim,
        "max_position_embeddings": reach,
        "rope_theta": theta,
        "rope_scaling": scaling,
        **more,
    }


def llama3(factor):
    return {
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    }


PHI35 = {
    "model_type": "phi3",
    "hidden_size": 3072,
    "num_attention_heads": 32,
    "num_key_value_heads": 32,
    "max_position_embeddings": 131072,
    "original_max_position_embeddings": 4096,
    "rope_theta": 10000.0,
    "rope_scaling": {"type": "longrope", "short_factor": spread(48, 1.0, 3.0), "long_factor": spread(48, 1.08, 65.0)},
}
DEEPSEEK_V3 = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "max_position_embeddings": 163840,
    "rope_theta": 10000,
    "rope_scaling": {
        "beta_fast": 32,
        "beta_slow": 1,
        "factor": 40,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 4096,
        "type": "yarn",
    },
}
GPT_OSS = {
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "max_position_embeddings": 131072,
    "rope_theta": 150000,
    "rope_scaling": {
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "factor": 32.0,
        "original_max_position_embeddings": 4096,
        "rope_type": "yarn",
        "truncate": False,
    },
}
GPT_J = {"model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_positions": 2048, "rotary_dim": 64}
QWEN25 = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "max_position_embeddings": 32768,
    "rope_theta": 1000000.0,
}
YARN4 = {"factor": 4.0, "original_max_position_embeddings": 32768, "type": "yarn"}
GEMMA4 = {
    "model_type": "gemma4_text",
    "hidden_size": 2560,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "head_dim": 256,
    "global_head_dim": 512,
    "num_hidden_layers": 6,
    "max_position_embeddings": 131072,
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
        "full_attention": {"rope_type": "proportional", "rope_theta": 1000000.0, "partial_rotary_factor": 0.25},
    },
}
GEMMA3 = {
    "model_type": "gemma3_text",
    "hidden_size": 2560,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "num_hidden_layers": 6,
    "max_position_embeddings": 131072,
    "rope_theta": 1000000.0,
    "rope_local_base_freq": 10000.0,
    "rope_scaling": {"factor": 8.0, "rope_type": "linear"},
}

# name, config.json, layer type, sequence length (0: not given)
CASES = [
    ("llama-3.1-8b", llama(128, 500000.0, 131072, llama3(8.0)), None, 0),
    ("llama-3.2-1b", llama(64, 500000.0, 131072, llama3(32.0)), None, 0),
    ("llama-3.2-3b", llama(128, 500000.0, 131072, llama3(32.0)), None, 0),
    ("codellama-7b", llama(128, 1000000.0, 16384), None, 0),
    ("smollm2-1.7b", llama(64, 130000.0, 8192), None, 0),
    ("mistral-like", {**llama(128, 1000000.0, 32768), "model_type": "mistral"}, None, 0),
    ("linear-4", llama(80, 10000.0, 16384, {"type": "linear", "factor": 4.0}), None, 0),
    ("linear-3", llama(96, 10000.0, 16384, {"type": "linear", "factor": 3.0}), None, 0),
    ("dynamic-4096", llama(128, 10000.0, 4096, {"rope_type": "dynamic", "factor": 2.0}), None, 0),
    ("dynamic-8192", llama(128, 10000.0, 4096, {"rope_type": "dynamic", "factor": 2.0}), None, 8192),
    ("dynamic-16384", llama(128, 10000.0, 4096, {"rope_type": "dynamic", "factor": 2.0}), None, 16384),
    ("qwen2.5-7b", QWEN25, None, 0),
    ("qwen2.5-7b-yarn", {**QWEN25, "rope_scaling": YARN4}, None, 0),
    ("qwen3-yarn", {**llama(128, 1000000.0, 131072, YARN4), "model_type": "qwen3"}, None, 0),
    (
        "ministral-3",
        llama(
            128,
            None,
            262144,
            None,
            rope_parameters={
                "rope_type": "yarn",
                "rope_theta": 1000000.0,
                "factor": 16.0,
                "original_max_position_embeddings": 16384,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
            },
        ),
        None,
        0,
    ),
    ("yarn-null-betas", llama(128, 10000.0, 65536, {**YARN4, "beta_fast": None, "beta_slow": 0, "mscale": 0.7}), None, 0),
    ("yarn-mscales", llama(64, 10000.0, 65536, {**YARN4, "mscale": 0.7, "mscale_all_dim": 0.4}), None, 0),
    ("yarn-null-factor", llama(64, 10000.0, 131072, {**YARN4, "factor": None}), None, 0),
    ("yarn-given-af", llama(64, 10000.0, 131072, {**YARN4, "attention_factor": 1.25}), None, 0),
    ("gpt-oss", GPT_OSS, None, 0),
    ("deepseek-v3", DEEPSEEK_V3, None, 0),
    ("phi-3.5-short", PHI35, None, 0),
    ("phi-3.5-at-L", PHI35, None, 4096),
    ("phi-3.5-past-L", PHI35, None, 4097),
    ("phi-2", {"model_type": "phi", "hidden_size": 2560, "num_attention_heads": 32, "partial_rotary_factor": 0.4,
               "max_position_embeddings": 2048, "rope_theta": 10000.0}, None, 0),
    ("pythia-6.9b", {"model_type": "gpt_neox", "hidden_size": 4096, "num_attention_heads": 32, "rotary_pct": 0.25,
                     "rotary_emb_base": 10000, "max_position_embeddings": 2048}, None, 0),
    ("gpt-neox-20b", {"model_type": "gpt_neox", "hidden_size": 6144, "num_attention_heads": 64, "rotary_pct": 0.25,
                      "rotary_emb_base": 10000, "max_position_embeddings": 2048}, None, 0),
    ("stablelm-3b", {"model_type": "stablelm", "hidden_size": 2560, "num_attention_heads": 32,
                     "partial_rotary_factor": 0.25, "max_position_embeddings": 4096, "rope_theta": 10000}, None, 0),
    ("glm-4-9b", {"model_type": "glm", "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 2,
                  "head_dim": 128, "partial_rotary_factor": 0.5, "max_position_embeddings": 131072,
                  "rope_theta": 10000.0}, None, 0),
    ("qwen3-next", {"model_type": "qwen3_next", "hidden_size": 2048, "num_attention_heads": 16, "head_dim": 256,
                    "num_key_value_heads": 2, "max_position_embeddings": 262144, "rope_theta": 10000000,
                    "partial_rotary_factor": 0.25}, None, 0),
    ("falcon-7b", {"model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71, "rope_theta": 10000.0,
                   "max_position_embeddings": 2048}, None, 0),
    ("gemma-7b", {"model_type": "gemma", "hidden_size": 3072, "num_attention_heads": 16, "head_dim": 256,
                  "max_position_embeddings": 8192, "rope_theta": 10000.0}, None, 0),
    ("gemma-3-full", GEMMA3, "full_attention", 0),
    ("gemma-3-sliding", GEMMA3, "sliding_attention", 0),
    ("gemma-4-full", GEMMA4, "full_attention", 0),
    ("gemma-4-sliding", GEMMA4, "sliding_attention", 0),
]


def config_of(text):
    """The config class as HF reads it from a config.json with this content."""
    fields = {key: value for key, value in json.loads(json.dumps(text)).items() if key != "model_type"}
    return AutoConfig.for_model(text["model_type"], **fields)


def rotary_of(config):
    """The model's own rotary embedding module."""
    import importlib

    name = type(config).__name__.removesuffix("Config").removesuffix("Text")
    package = type(config).__module__.rsplit(".", 1)
    module = importlib.import_module(f"{package[0]}.{package[1].replace('configuration_', 'modeling_')}")
    exact = [getattr(module, f"{stem}RotaryEmbedding", None) for stem in (name, name + "Text")]
    return next(found for found in exact if found is not None)(config), module


def frequencies(text, layer_type, seq_len):
    config = config_of(text)
    rotary, _ = rotary_of(config)
    prefix = f"{layer_type}_" if layer_type else ""
    inv_freq = getattr(rotary, f"{prefix}inv_freq")
    scaling = getattr(rotary, f"{prefix}attention_scaling")
    if seq_len:
        kind = config.rope_parameters["rope_type"]
        inv_freq, scaling = ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), seq_len=seq_len)
    return inv_freq, float(scaling)


def all_frequencies():
    out = []
    for name, text, layer_type, seq_len in CASES:
        inv_freq, scaling = frequencies(text, layer_type, seq_len)
        out.append({
            "name": name,
            "layer_type": layer_type,
            "seq_len": seq_len,
            "attention_factor": scaling,
            "inv_freq": hex_bits(inv_freq),
            "config": text,
        })
    return out


def apply_case(name, text, pairs):
    """One model's tables and rotation: q [1, 2, S, rot], k [1, 1, S, rot] (GPT-J: [1, S, H, rot])."""
    ids = torch.tensor([POSITIONS], dtype=torch.int64)
    rows = len(POSITIONS)
    if name == "gpt-j":
        from transformers.models.gptj import modeling_gptj as module

        rot = text["rotary_dim"]
        table = module.create_sinusoidal_positions(max(POSITIONS) + 1, rot)
        sin, cos = torch.split(table[ids], rot // 2, dim=-1)
        q, k = lcg_input((1, rows, 2, rot), 1), lcg_input((1, rows, 1, rot), 2)
        q_out, k_out = (module.apply_rotary_pos_emb(x, sin, cos).transpose(1, 2) for x in (q, k))
        layout = "bshd"
    else:
        config = config_of(text)
        rotary, module = rotary_of(config)
        cos, sin = rotary(torch.zeros(1, dtype=torch.float32), ids)
        half = rotary.inv_freq.shape[0]
        rot = 2 * half
        q, k = lcg_input((1, 2, rows, rot), 1), lcg_input((1, 1, rows, rot), 2)
        apply = module.apply_rotary_pos_emb
        if pairs == "interleaved_to_half":
            apply = module.apply_rotary_pos_emb_interleave
        q_out, k_out = apply(q, k, cos, sin)
        cos, sin = cos[..., :half], sin[..., :half]
        layout = "bhsd"
    return {
        "name": name,
        "pairs": pairs,
        "input_layout": layout,
        "rotary_dim": rot,
        "q_heads": 2,
        "k_heads": 1,
        "cos": hex_bits(cos),
        "sin": hex_bits(sin),
        "q_out_bhsd": hex_bits(q_out),
        "k_out_bhsd": hex_bits(k_out),
        "config": text,
    }


APPLY = [
    ("llama-3.1-8b", llama(128, 500000.0, 131072, llama3(8.0)), "half"),
    ("qwen2.5-7b", QWEN25, "half"),
    ("phi-3.5-mini", PHI35, "half"),
    ("deepseek-v3", DEEPSEEK_V3, "interleaved_to_half"),
    ("gpt-j-6b", GPT_J, "interleaved"),
    ("gpt-oss-120b", GPT_OSS, "half"),
]


def main():
    out = OPTIONS.out
    out.mkdir(parents=True, exist_ok=True)
    about = {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }
    # Position ids in f32 times frequencies must not go through TF32 or a reduced-precision matmul.
    torch.set_float32_matmul_precision("highest")
    apply = [apply_case("gpt-j" if name == "gpt-j-6b" else name, text, pairs) for name, text, pairs in APPLY]
    files = {
        "rope_frequencies.json": {**about, "cases": all_frequencies()},
        "rope_apply.json": {**about, "positions": POSITIONS, "seeds": {"q": 1, "k": 2}, "cases": apply},
    }
    for name, content in files.items():
        text = json.dumps(content, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n"
        (out / name).write_text(text)
        print(f"{out / name}: {len(text)} bytes")


if __name__ == "__main__":
    script.run(main)
