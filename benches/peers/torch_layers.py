#!/usr/bin/env python3
"""What pointwise saves in a layer of six models of Hugging Face: eager, under `override()`, after `patch()`, both; compiled by inductor
(`inductor`), by pointwise (`compiled`), and by pointwise after `patch()` (`patched`).

    python3 benches/peers/torch_layers.py [--model NAME]... [--way WAY]... [--case CASE]... [--tokens N] [--batch N] [--check]

Needs torch with CUDA, transformers and the package pointwise. One decoder layer of each model, with random weights and
the width of the model that is named, in bf16:

  prefill  a sequence of N tokens, forward
  train    the same forward and backward, for the models of `TRAIN`
  decode   a token for each of a batch, with a cache of 1,024 positions, as a CUDA graph

Prints microseconds of the GPU: all kernels of a call, and those that are elementwise (no matrix product, attention,
reduction, sort or gather, by the kernel's name); of decode the time between two replays. Times are means of 20 calls
after a warm-up, by PyTorch's profiler; of decode 200 replays between two events. `--check` runs each case once on the
CPU with narrow models, and times nothing.
"""

import contextlib
import re

import script

CALLS, REPLAYS = 20, 200
CONTEXT = 1024
TRAIN = {"Llama"}
# The models' widths: heads, heads of keys, width, and the width of the MLP.
MODELS = {
    "Llama": ("Llama 3.1 8B", dict(hidden_size=4096, intermediate_size=14336, heads=32, kv_heads=8)),
    "Qwen3": ("Qwen3 8B", dict(hidden_size=4096, intermediate_size=12288, heads=32, kv_heads=8, head_dim=128)),
    "Gemma2": ("Gemma 2 9B", dict(hidden_size=3584, intermediate_size=14336, heads=16, kv_heads=8, head_dim=256)),
    "Phi3": ("Phi-3 mini", dict(hidden_size=3072, intermediate_size=8192, heads=32, kv_heads=32)),
    "GPTJ": ("GPT-J 6B", dict(hidden_size=4096, heads=16, rotary_dim=64)),
    "DeepseekV3": (
        "DeepSeek-V3, 8 of its experts",
        dict(
            hidden_size=7168, intermediate_size=18432, heads=128, kv_heads=128, moe_intermediate_size=2048,
            n_routed_experts=8, num_experts_per_tok=4, n_group=2, topk_group=1, kv_lora_rank=512, q_lora_rank=1536,
            qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, first_k_dense_replace=0,
        ),
    ),
}  # fmt: skip
NARROW = dict(
    hidden_size=64, intermediate_size=96, heads=4, kv_heads=2, moe_intermediate_size=32, kv_lora_rank=16,
    q_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8, head_dim=16, rotary_dim=8,
)  # fmt: skip
# Kernels that are not elementwise, by what their names have.
OTHERS = re.compile(
    r"gemm|gemv|nvjet|cutlass|xmma|cublas|splitk|flash|fmha|attention|cudnn|softmax|reduce|sort|topk|scan|histogram"
    r"|embedding|index|gather|scatter|memcpy|memset|fill|arange|triu|tril|rng|distribution|layer_?norm",
    re.IGNORECASE,
)
CASES = ("prefill", "train", "decode")
WAYS = ("eager", "override", "patch", "both", "inductor", "compiled", "patched")


def model_of(name, check, device):
    """A model of one layer."""
    words = {**MODELS[name][1]}
    if check:
        words |= {key: NARROW[key] for key in words if key in NARROW}
        if name == "DeepseekV3":
            words["kv_heads"] = words["heads"]
    heads, kv_heads = words.pop("heads"), words.pop("kv_heads", None)
    if name == "GPTJ":
        words = {"n_embd": words["hidden_size"], "n_layer": 1, "n_head": heads, "rotary_dim": words["rotary_dim"]}
    else:
        words |= {"num_hidden_layers": 1, "num_attention_heads": heads, "num_key_value_heads": kv_heads}
    # Tokens that no vocabulary of this size has are refused.
    words |= {"vocab_size": 1024, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    attention = "eager" if name == "GPTJ" else "sdpa"  # GPT-J's code has no other
    config = getattr(transformers, f"{name}Config")(**words, attn_implementation=attention)
    if name == "DeepseekV3":
        config._experts_implementation = "grouped_mm" if device == "cuda" else "batched_mm"
    torch.manual_seed(0)
    with torch.device(device):
        return getattr(transformers, f"{name}ForCausalLM")(config).to(torch.bfloat16).eval()


@contextlib.contextmanager
def way_of(way, model):
    """Runs a model in one of the ways."""
    with contextlib.ExitStack() as stack:
        if way in ("patch", "both", "patched"):
            stack.enter_context(pointwise.patch(model))
        if way in ("override", "both"):
            pointwise.override()
            stack.callback(pointwise.override, False)
        if way in ("inductor", "compiled", "patched"):
            torch._dynamo.reset()
            model.base_model.compile(backend="inductor" if way == "inductor" else "pointwise", dynamic=False)
            stack.callback(setattr, model.base_model, "_compiled_call_impl", None)
        yield


def gpu_time(call):
    """Microseconds of the GPU that a call takes: of all kernels, of the elementwise, and how many these are."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, acc_events=True) as profile:
        for _ in range(CALLS):
            call()
        torch.cuda.synchronize()
    kernels = [e for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    every = sum(e.device_time for e in kernels)
    elementwise = [e for e in kernels if not OTHERS.search(e.name)]
    names = {}
    for e in elementwise:
        names[e.name] = names.get(e.name, 0) + e.device_time / CALLS
    times = every / CALLS, sum(e.device_time for e in elementwise) / CALLS, len(elementwise) / CALLS
    return times, names


def decode(model, batch, device):
    """A function that makes a token: each call writes to the next place of the cache."""
    ids = torch.randint(3, 1000, (batch, 1), device=device)
    cache = transformers.StaticCache(config=model.config, max_cache_len=CONTEXT)
    places = torch.arange(CONTEXT // 2, CONTEXT // 2 + 1, device=device)
    words = {"past_key_values": cache, "position_ids": places.expand(batch, 1), "cache_position": places}

    def call():
        return model(ids, use_cache=True, **words).logits

    return call


def replay_time(call):
    """Microseconds between two replays of a graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(10):
        graph.replay()
    begin.record()
    for _ in range(REPLAYS):
        graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / REPLAYS


def cases(name, model, tokens, device):
    """The calls whose kernels are timed."""
    ids = torch.randint(3, 1000, (1, tokens), device=device)

    def prefill():
        with torch.no_grad():
            return model.base_model(ids, use_cache=False)[0]

    def train():
        model.zero_grad(set_to_none=True)
        model.base_model(ids, use_cache=False)[0].float().square().mean().backward()

    return {"prefill": prefill, **({"train": train} if name in TRAIN else {})}


def main(options):
    device = "cpu" if options.check else "cuda"
    tokens, batch = (16, 2) if options.check else (options.tokens, options.batch)
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, pointwise {pointwise.__version__}")
    if not options.check:
        print(f"{torch.cuda.get_device_name()}, bf16, {tokens} tokens, decode of a batch of {batch}")
        print(f"{'us of the GPU':<32}{'all':>10}{'elementwise':>13}{'kernels':>9}{'of eager':>10}")
    for name in options.model or MODELS:
        model = model_of(name, options.check, device)
        wanted = options.case or CASES
        for case, call in cases(name, model, tokens, device).items():
            base = None
            if case not in wanted:
                continue
            for way in options.way or WAYS:
                with way_of(way, model):
                    if options.check:
                        call()
                        continue
                    (every, elementwise, count), names = gpu_time(call)
                base = base or elementwise
                title = f"{name} {case} {way}"
                row = f"{every:>10.1f}{elementwise:>13.1f}{count:>9.1f}{elementwise / base:>10.2f}"
                print(f"{title:<32}{row}", flush=True)
                if options.kernels:
                    for kernel, time in sorted(names.items(), key=lambda row: -row[1])[:12]:
                        print(f"    {time:>8.1f}  {kernel[:140]}")
        for way in (options.way or WAYS) if "decode" in wanted else ():
            with way_of(way, model), torch.no_grad():
                call = decode(model, batch, device)
                if options.check:
                    call()
                    continue
                try:
                    print(f"{name + ' decode ' + way:<32}{replay_time(call):>10.1f}", flush=True)
                except RuntimeError as error:
                    # What waits for the GPU, as some experts' code does, cannot be captured.
                    print(f"{name + ' decode ' + way:<32} not captured: {str(error).splitlines()[0]}", flush=True)
                    torch.cuda.synchronize()
        del model
        print(f"# {name}: {MODELS[name][0]}", flush=True)


if __name__ == "__main__":
    # Before the packages are imported: --help needs none.
    arguments = script.parser(__doc__)
    arguments.add_argument("--model", action="append", choices=list(MODELS))
    arguments.add_argument("--way", action="append", choices=WAYS)
    arguments.add_argument("--case", action="append", choices=CASES)
    arguments.add_argument("--tokens", type=script.positive, default=2048)
    arguments.add_argument("--batch", type=script.positive, default=16)
    arguments.add_argument("--check", action="store_true", help="run each case once on the CPU, and time nothing")
    arguments.add_argument("--kernels", action="store_true", help="list the elementwise kernels that take longest")
    OPTIONS = arguments.parse_args()
    torch = script.require("torch")
    transformers = script.require("transformers")
    pointwise = script.require("pointwise")
    if not OPTIONS.check:
        script.require_gpu(torch)
    main(OPTIONS)
