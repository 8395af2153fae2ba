#!/usr/bin/env python3
"""Times a layer of six models of Hugging Face, to show how much pointwise saves: eager, under `override()`, after `patch()`, both;
compiled by inductor (`inductor`), by pointwise (`compiled`), and by pointwise after `patch()` (`patched`).

    python3 benches/peers/torch_layers.py [--model NAME]... [--way WAY]... [--case CASE]... [--tokens N] [--batch N] [--json FILE]
                                          [--check | --fill]

Needs torch with CUDA, transformers and the package pointwise. One decoder layer of each model, with random weights and
the width of the model that is named, in bf16:

  prefill  a sequence of N tokens, forward
  padded   the same of four sequences of N / 4 tokens and less, with a mask of padding
  train    forward and backward of a sequence of N tokens, without embedding and loss, for the models of `TRAIN`
  trained  the same of the padded sequences
  decode   a token for each of a batch, with a cache of 1,024 positions, as a CUDA graph

Prints microseconds of the GPU: all kernels of a call, those between matrix products and attention (by the kernel's name), how
many these are, and their share of eager's and of inductor's; of decode the kernels' time, the time from step to step, and the
step's share. A compiled step runs in the mode reduce-overhead; others are captured and replayed. Times are means of 20 calls
after a warm-up, by PyTorch's profiler; of decode 200 steps between two events. `--check` runs each case once on the CPU with
narrow models, and times nothing; `--fill` runs each once on the GPU, so that the next run finds caches filled.
"""

import contextlib
import json
import re

import script

CALLS, STEPS = 20, 200
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
# Matrix products and attention, by what kernels' names have; and kernels of compilers, whose names may have anything.
PRODUCTS = re.compile(r"gemm|gemv|nvjet|cutlass|xmma|cublas|splitk|flash|fmha|sdpa|cudnn|attention", re.IGNORECASE)
COMPILED = re.compile(r"^(triton_|fused|pointwise)")
CASES = ("prefill", "padded", "train", "trained", "decode")
WAYS = ("eager", "override", "patch", "both", "inductor", "compiled", "patched")
COMPILERS = {"inductor": "inductor", "compiled": "pointwise", "patched": "pointwise"}


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
def way_of(way, model, mode=None):
    """Runs a model in one of the ways. `mode`: that of compilers."""
    with contextlib.ExitStack() as stack:
        if way in ("patch", "both", "patched"):
            stack.enter_context(pointwise.patch(model))
        if way in ("override", "both"):
            pointwise.override()
            stack.callback(pointwise.override, False)
        if way in COMPILERS:
            torch._dynamo.reset()
            model.base_model.compile(backend=COMPILERS[way], mode=mode, dynamic=False)
            stack.callback(setattr, model.base_model, "_compiled_call_impl", None)
        yield


def gpu_time(call):
    """Microseconds of the GPU that a call takes: of all kernels, of those between products and attention, and how many these are."""
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
    between = [e for e in kernels if COMPILED.search(e.name) or not PRODUCTS.search(e.name)]
    names = {}
    for e in between:
        names[e.name] = names.get(e.name, 0) + e.device_time / CALLS
    times = every / CALLS, sum(e.device_time for e in between) / CALLS, len(between) / CALLS
    return times, names


def decode(model, batch, device):
    """A function that makes a token: each call writes to the next place of the cache, which is there."""
    ids = torch.randint(3, 1000, (batch, 1), device=device)
    cache = transformers.StaticCache(config=model.config, max_cache_len=CONTEXT)
    places = torch.arange(CONTEXT // 2, CONTEXT // 2 + 1, device=device)
    words = {"past_key_values": cache, "position_ids": places.expand(batch, 1), "cache_position": places}

    def call():
        for layer in cache.layers:
            # What a layer that sees a window counts in Python: another number is another graph.
            if hasattr(layer, "cumulative_length_int"):
                layer.cumulative_length_int = CONTEXT // 2
        torch.compiler.cudagraph_mark_step_begin()
        return model.base_model(ids, use_cache=True, **words)[0]

    call()
    return call


def captured(call):
    """A function that replays a call as a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def step_time(call):
    """Microseconds from step to step."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(10):
        call()
    begin.record()
    for _ in range(STEPS):
        call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / STEPS


def cases(name, model, tokens, device):
    """The calls whose kernels are timed."""
    ids = torch.randint(3, 1000, (1, tokens), device=device)
    several = ids.view(4, -1)
    # Padding comes first, as where models generate.
    places = torch.arange(several.shape[1], device=device)
    starts = torch.tensor([0, 1, 3, 5], device=device)[:, None] * several.shape[1] // 8
    mask = (places >= starts).long()
    known = several, mask, (places - starts).clamp(min=0)

    def inferred(ids, mask=None, positions=None):
        with torch.no_grad():
            return model.base_model(ids, attention_mask=mask, position_ids=positions, use_cache=False)[0]

    def trained(ids, mask=None, positions=None):
        # The block alone: no embedding, no loss.
        model.zero_grad(set_to_none=True)
        x, grad = states[ids.shape]
        x.grad = None
        given = {"inputs_embeds": x, "attention_mask": mask, "position_ids": positions}
        model.base_model(**given, use_cache=False)[0].backward(grad)

    width = model.config.hidden_size
    states = {
        it.shape: [torch.randn(*it.shape, width, device=device).to(torch.bfloat16).requires_grad_(k == 0) for k in range(2)]
        for it in (ids, several)
    }

    made = {"prefill": lambda: inferred(ids), "padded": lambda: inferred(*known)}
    return made | ({"train": lambda: trained(ids), "trained": lambda: trained(*known)} if name in TRAIN else {})


def share(rows, row, key):
    """A time's share of eager's and of inductor's, where these are there."""
    same = {it["way"]: it for it in rows if (it["model"], it["case"]) == (row["model"], row["case"])}
    return "".join(f"{row[key] / same[way][key]:>10.2f}" if way in same else f"{'':>10}" for way in ("eager", "inductor"))


def main(options):
    device = "cpu" if options.check else "cuda"
    tokens, batch = (16, 2) if options.check else (options.tokens, options.batch)
    is_timed = not options.check and not options.fill
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, pointwise {pointwise.__version__}")
    if is_timed:
        print(f"{script.gpu(torch)}, bf16, {tokens} tokens, decode of a batch of {batch}")
        print(f"{'us of the GPU':<32}{'all':>10}{'between':>10}{'kernels':>9}{'of eager':>10}{'inductor':>10}", flush=True)
    rows = []

    def add(row, title, times, key):
        rows.append(row)
        print(f"{title:<32}{times}{share(rows, row, key)}", flush=True)
        if options.json:
            with open(options.json, "w") as file:
                json.dump({"device": script.gpu(torch), "tokens": tokens, "batch": batch, "rows": rows}, file, indent=1)

    for name in options.model or MODELS:
        model = model_of(name, options.check, device)
        wanted = options.case or CASES
        for case, call in cases(name, model, tokens, device).items():
            for way in (options.way or WAYS) if case in wanted else ():
                with way_of(way, model):
                    if not is_timed:
                        call()
                        continue
                    (every, between, count), names = gpu_time(call)
                row = {"model": name, "case": case, "way": way, "all": every, "between": between, "kernels": count}
                add(row, f"{name} {case} {way}", f"{every:>10.1f}{between:>10.1f}{count:>9.1f}", "between")
                if options.kernels:
                    for kernel, time in sorted(names.items(), key=lambda row: -row[1])[:12]:
                        print(f"    {time:>8.1f}  {kernel[:140]}")
        for way in (options.way or WAYS) if "decode" in wanted else ():
            with torch.no_grad():
                call = decode(model, batch, device)
                with way_of(way, model, None if options.check else "reduce-overhead"):
                    if not is_timed:
                        call()
                        continue
                    try:
                        call = call if way in COMPILERS else captured(call)
                        step, ((every, _, _), _) = step_time(call), gpu_time(call)
                        row = {"model": name, "case": "decode", "way": way, "step": step, "all": every}
                        add(row, f"{name} decode {way}", f"{every:>10.1f}{step:>10.1f}{'':>9}", "step")
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
    arguments.add_argument("--fill", action="store_true", help="run each case once on the GPU, and time nothing")
    arguments.add_argument("--json", type=script.output)
    arguments.add_argument("--kernels", action="store_true", help="list the kernels between that take longest")
    OPTIONS = arguments.parse_args()
    torch = script.require("torch")
    transformers = script.require("transformers")
    pointwise = script.require("pointwise")
    if not OPTIONS.check:
        script.require_gpu(torch)
    main(OPTIONS)
