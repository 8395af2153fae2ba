"""A Llama block on two GPUs, patched with pointwise: equal to the unsharded one, and where the time goes.

    python python/tools/two_gpus.py [--device cuda] [--tokens N] [--plain]

Two processes run it, with NCCL, or with gloo and a narrow block with `--device cpu`. The block is transformers' where
that is installed, and else (or with `--plain`) one in this file of the same modules. It is sharded in three ways:

  TP      tensor parallel: `parallelize_module` with ColwiseParallel and RowwiseParallel
  FSDP2   `fully_shard`: parameters and the batch
  CP      context parallel: each rank has the first and the last chunk of the sequence that are left, by position ids;
          keys and values are gathered by DTensor

Each way is checked in float32 against the unsharded block of torch alone, results and gradients, and its collectives
are counted: with pointwise there must be no more than without. Then a step, forward and backward, is timed in bfloat16,
without pointwise and with: by CUDA events, and by the profiler in classes of kernels. Kernels of NCCL overlap with
others, and wait for the other GPU, so the classes do not add up to the step.
"""

import argparse
import collections
import faulthandler
import os
import re
import socket
import sys
import time
import traceback

WORLD, BATCH, CALLS = 2, 2, 10
WIDE = dict(hidden_size=4096, intermediate_size=14336, num_attention_heads=32, num_key_value_heads=8)
NARROW = dict(hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2)
WAYS = ("unsharded", "TP", "FSDP2", "CP")
# How far results and gradients in float32 may be from the unsharded, of their norm: sums in another order.
BOUND = 1e-4
# Kernels by their names. pointwise's are plain words, where torch's are templates of C++.
NCCL = re.compile(r"nccl\w*Kernel")
OURS = re.compile(r"^(unary|binary|ternary|select|gradients|convert|formula|rope)_\w+$")
PRODUCTS = re.compile(r"gemm|gemv|nvjet|cutlass|xmma|cublas|splitk|flash|fmha|attention|cudnn", re.IGNORECASE)
CLASSES = ("products", "pointwise", "other", "NCCL")


class Context:
    """The state that attention reads: the mesh of context parallelism, if it is on, and the places of this rank's tokens."""

    mesh = places = None


def attend(q, k, v):
    """Causal attention of [batch, heads, sequence, lanes], where keys and values may lie on all ranks."""
    # Each head of keys for the queries' heads that it serves: not every kernel of attention does so itself.
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (gathered(k), gathered(v)))
    if Context.mesh is None:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    places = DTensor.from_local(Context.places, Context.mesh, [Shard(0)], run_check=False).full_tensor()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=Context.places[:, None] >= places[None, :])


def gathered(x):
    """Keys or values of all ranks. Gradients of them are summed over ranks."""
    if Context.mesh is None:
        return x
    sharded = DTensor.from_local(x.contiguous(), Context.mesh, [Shard(2)], run_check=False)
    return sharded.full_tensor(grad_placements=[Partial()])


def imports():
    """The packages, as globals: after the arguments are parsed, since --help needs none."""
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch import nn
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor, Partial, Shard, init_device_mesh
    from torch.distributed.tensor.debug import CommDebugMode
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    import pointwise

    globals().update(locals())


def of_transformers(sizes, tokens):
    """A Llama model of transformers with one layer, or None without transformers."""
    try:
        import transformers
    except ImportError:
        return None
    if not torch.cuda.is_available():
        # transformers asks CUDA for its stream, which not every build of torch survives.
        torch.cuda.is_current_stream_capturing = lambda: False

    def attention(module, query, key, value, mask, **_):
        return attend(query, key, value).transpose(1, 2).contiguous(), None

    transformers.AttentionInterface.register("gathered", attention)
    config = transformers.LlamaConfig(
        **sizes, num_hidden_layers=1, vocab_size=32, bos_token_id=1, eos_token_id=2, pad_token_id=0,
        max_position_embeddings=tokens, attn_implementation="gathered",
    )  # fmt: skip
    return transformers.LlamaModel(config)


def plain(sizes, tokens):
    """A model of the same modules and names."""
    width, inner, heads, kv_heads = sizes.values()
    lanes = width // heads

    def linear(a, b):
        return nn.Linear(a, b, bias=False)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.q_proj, self.o_proj = linear(width, width), linear(width, width)
            self.k_proj, self.v_proj = linear(width, kv_heads * lanes), linear(width, kv_heads * lanes)

        def forward(self, x, cos, sin):
            batch, tokens, _ = x.shape
            q, k, v = (
                p(x).view(batch, tokens, -1, lanes).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj)
            )
            q, k = apply_rotary_pos_emb(q, k, cos, sin)
            return self.o_proj(attend(q, k, v).transpose(1, 2).reshape(batch, tokens, -1))

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate_proj, self.up_proj = linear(width, inner), linear(width, inner)
            self.down_proj = linear(inner, width)
            self.act_fn = nn.SiLU()

        def forward(self, x):
            return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.self_attn, self.mlp = Attention(), MLP()
            self.input_layernorm, self.post_attention_layernorm = nn.RMSNorm(width), nn.RMSNorm(width)

        def forward(self, x, cos, sin):
            x = x + self.self_attn(self.input_layernorm(x), cos, sin)
            return x + self.mlp(self.post_attention_layernorm(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([Layer()])

        def forward(self, inputs_embeds, position_ids, use_cache=False):
            rates = 10000 ** -(torch.arange(0, lanes, 2, device=inputs_embeds.device) / lanes)
            angles = position_ids[..., None] * rates
            angles = torch.cat((angles, angles), -1)
            x = inputs_embeds
            for layer in self.layers:
                x = layer(x, angles.cos().to(x.dtype), angles.sin().to(x.dtype))
            return (x,)

    return Model()


def apply_rotary_pos_emb(q, k, cos, sin):
    """The rotation of halves, as torch's ops do it."""

    def rotated(x):
        half = x.shape[-1] // 2
        return x * cos[:, None] + torch.cat((-x[..., half:], x[..., :half]), -1) * sin[:, None]

    return rotated(q), rotated(k)


class Run:
    """A model in one of the ways, on this rank, with its part of the input."""

    def __init__(self, way, mesh, options, dtype):
        sizes = NARROW if options.device == "cpu" else WIDE
        torch.manual_seed(0)
        with torch.device(options.device):
            made = None if options.plain else of_transformers(sizes, options.tokens)
            self.model = (plain(sizes, options.tokens) if made is None else made).to(dtype)
            x = torch.randn(BATCH, options.tokens, sizes["hidden_size"]).to(dtype)
            ids = torch.arange(options.tokens).expand(BATCH, -1)
        # Each rank has the same numbers, as CUDA's generators are alike; else nothing is equal below.
        self.kind, self.way, rank = type(self.model).__module__.partition(".")[0], way, dist.get_rank()
        chunks = torch.arange(options.tokens, device=options.device).chunk(2 * WORLD)
        self.order = [torch.cat((chunks[r], chunks[-1 - r])) for r in range(WORLD)]
        self.mesh = Context.mesh = mesh if way == "CP" else None
        self.places = Context.places = self.order[rank]
        if way == "TP":
            plan = {f"layers.*.{name}_proj": ColwiseParallel() for name in ("self_attn.[qkv]", "mlp.gate", "mlp.up")}
            plan |= {f"layers.*.{name}_proj": RowwiseParallel() for name in ("self_attn.o", "mlp.down")}
            parallelize_module(self.model, mesh, plan)
        elif way == "FSDP2":
            for layer in self.model.layers:
                fully_shard(layer, mesh=mesh)
            fully_shard(self.model, mesh=mesh)
            x, ids = x.chunk(WORLD)[rank], ids.chunk(WORLD)[rank]
        elif way == "CP":
            x, ids = x[:, self.places], ids[:, self.places]
        self.x, self.ids = x.contiguous(), ids.contiguous()

    def step(self):
        """Forward and backward. Returns the result."""
        self.model.zero_grad(set_to_none=True)
        y = self.model(inputs_embeds=self.x, position_ids=self.ids, use_cache=False)[0]
        # Not of y alone: a norm at the end leaves nothing of the gradient of its squares.
        (y.float() - self.x.float()).square().mean().backward()
        if self.way == "CP":
            # Each rank has the gradients of its own tokens' loss.
            for parameter in self.model.parameters():
                if parameter.grad is not None:
                    dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
                    parameter.grad /= WORLD
        return y.detach()

    def whole(self, y):
        """The result and the gradients as the unsharded block has them."""
        if self.way in ("FSDP2", "CP"):
            parts = [torch.empty_like(y) for _ in range(WORLD)]
            dist.all_gather(parts, y.contiguous())
            if self.way == "FSDP2":
                y = torch.cat(parts)
            else:
                y = torch.empty_like(torch.cat(parts, 1))
                for places, part in zip(self.order, parts):
                    y[:, places] = part
        named = {name: p.grad for name, p in self.model.named_parameters() if p.grad is not None}
        grads = {name: g.full_tensor() if isinstance(g, DTensor) else g for name, g in named.items()}
        return {"result": y, **grads}


def farthest(ours, theirs):
    """The largest distance of tensors, of their norms, and its name."""
    assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
    far = {key: ((ours[key] - theirs[key]).double().norm() / theirs[key].double().norm()).item() for key in theirs}
    name = max(far, key=lambda key: far[key] if far[key] == far[key] else float("inf"))
    return far[name], name


def check(mesh, options):
    """Compares each way with the unsharded block. Returns lines about it, and the failures."""
    lines, failed, want = [], [], None
    for way in WAYS:
        counts = {}
        for patched in (False, True):
            run = Run(way, mesh, options, torch.float32)
            patch = pointwise.patch(run.model) if patched else None
            if patched and len(patch.replaced) != 2:
                failed.append(f"{way}: patch() replaced {patch.replaced}, kept {patch.kept}")
            with CommDebugMode() as comm:
                y = run.step()
            counts[patched] = {str(key).rpartition(".")[2]: n for key, n in comm.get_comm_counts().items() if n}
            got = run.whole(y)
            want = got if want is None else want
            far, name = farthest(got, want)
            ok = far <= BOUND and counts[patched] == counts[False]
            title = f"{way}, {'pointwise' if patched else 'torch alone'}"
            line = f"{title:<24}{far:>10.1e}  {name.replace('layers.0.', ''):<36}{counts[patched] or ''}"
            lines.append(line + ("" if ok else "   WRONG"))
            if not ok:
                failed.append(line)
            kind = run.kind
            del run, patch, y, got
    return kind, lines, failed


def class_of(name):
    """The class of a kernel of the GPU."""
    if NCCL.search(name):
        return "NCCL"
    return "pointwise" if OURS.match(name) else "products" if PRODUCTS.search(name) else "other"


def class_on_cpu(name):
    """The class of what the profiler sees on a CPU, by the names of ops."""
    if re.match(r"c10d::|gloo:|_c10d_functional::", name):
        return "NCCL"
    if name.startswith("pointwise"):
        return "pointwise"
    return "products" if re.search(r"mm$|attention", name) else "other"


def timed(run, options):
    """Milliseconds of a step, and by class, and the kernels of each class."""
    is_cuda = options.device == "cuda"
    for _ in range(3):
        run.step()
    dist.barrier()
    if is_cuda:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
    start = time.perf_counter()
    for _ in range(CALLS):
        run.step()
    if is_cuda:
        end.record()
        end.synchronize()
        step = begin.elapsed_time(end) / CALLS
    else:
        step = (time.perf_counter() - start) * 1e3 / CALLS
    dist.barrier()
    activity = torch.profiler.ProfilerActivity.CUDA if is_cuda else torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[activity], acc_events=True) as profile:
        for _ in range(CALLS):
            run.step()
        if is_cuda:
            torch.cuda.synchronize()
    times, counts, names = collections.Counter(), collections.Counter(), collections.Counter()
    for event in profile.events():
        on_gpu = event.device_type == torch.autograd.DeviceType.CUDA
        # Names that torch gives to stretches of time span kernels.
        if on_gpu != is_cuda or event.is_user_annotation:
            continue
        which = class_of(event.name) if is_cuda else class_on_cpu(event.name)
        spent = (event.device_time if is_cuda else event.self_cpu_time_total) / 1e3 / CALLS
        times[which] += spent
        counts[which] += 1
        names[which, event.name] += spent
    return step, times, {key: count // CALLS for key, count in counts.items()}, names


def measure(mesh, options):
    """Lines of times."""
    lines = [f"{'ms a step':<24}{'step':>9}" + "".join(f"{name:>16}" for name in CLASSES)]
    for way in WAYS:
        for patched in (False, True):
            run = Run(way, mesh, options, torch.bfloat16)
            if patched:
                pointwise.patch(run.model)
            step, times, counts, names = timed(run, options)
            title = f"{way}, {'pointwise' if patched else 'torch alone'}"
            cells = "".join(f"{times[name]:>9.2f} ({counts.get(name, 0):>4})" for name in CLASSES)
            lines.append(f"{title:<24}{step:>9.2f}{cells}")
            if options.kernels:
                most = sorted(names.items(), key=lambda row: -row[1])[:16]
                lines += [f"    {spent:>8.3f}  {which:<10}{name[:120]}" for (which, name), spent in most]
            del run
            if options.device == "cuda":
                torch.cuda.empty_cache()
    return lines


def process(rank, options, port, messages):
    """One of the two."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    faulthandler.enable()
    # Where a process waits that would be ended for it.
    faulthandler.dump_traceback_later(max(options.timeout - 5, 1), exit=True)
    try:
        imports()
        torch.set_num_threads(1)
        # Matrix products in float32 are to be of float32.
        torch.backends.cuda.matmul.allow_tf32 = False
        own = {}
        if options.device == "cuda":
            torch.cuda.set_device(rank)
            own["device_id"] = torch.device("cuda", rank)
        dist.init_process_group("nccl" if own else "gloo", rank=rank, world_size=WORLD, **own)
        mesh = init_device_mesh(options.device, (WORLD,))
        kind, lines, failed = check(mesh, options)
        if rank == 0:
            where = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
            block = "transformers' block" if kind == "transformers" else "a plain block"
            head = f"torch {torch.__version__}, {WORLD} x {where}, {block}, batch {BATCH}, {options.tokens} tokens"
            head += f"\n\nfloat32: farthest from the unsharded, of its norm (at most {BOUND:.0e}), and collectives"
            messages.put("\n".join([head, *lines]))
        if failed:
            raise AssertionError("\n".join(failed))
        lines = measure(mesh, options)
        if rank == 0:
            messages.put("\n".join(["\nbfloat16, forward and backward, in brackets how many kernels", *lines]))
        dist.barrier()
        dist.destroy_process_group()
        faulthandler.cancel_dump_traceback_later()
    except BaseException:
        messages.put(f"rank {rank}:\n{traceback.format_exc()}")
        sys.stdout.flush()
        # Not by way of NCCL's destructors, which wait for the other rank.
        time.sleep(1)
        os._exit(1)


def main(options):
    import torch
    import torch.multiprocessing as mp

    if options.device == "cuda" and torch.cuda.device_count() < WORLD:
        sys.exit(f"error: torch sees {torch.cuda.device_count()} GPUs, this needs {WORLD}")
    if options.tokens % (2 * WORLD):
        sys.exit(f"error: --tokens must be a multiple of {2 * WORLD}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = mp.get_context("spawn")
    messages = context.SimpleQueue()
    ranks = [context.Process(target=process, args=(r, options, port, messages), daemon=True) for r in range(WORLD)]
    for rank in ranks:
        rank.start()
    until = time.monotonic() + options.timeout
    while True:
        alive = [rank.is_alive() for rank in ranks]
        while not messages.empty():
            print(messages.get(), flush=True)
        broken = any(rank.exitcode for rank in ranks)
        if not any(alive) or broken or time.monotonic() > until:
            break
        time.sleep(0.2)
    # The other one waits for a rank that is gone; it has a moment to say why it ended, if it did.
    for rank in ranks:
        rank.join(5)
        rank.kill()
        rank.join()
    while not messages.empty():
        print(messages.get(), flush=True)
    codes = [rank.exitcode for rank in ranks]
    print("all equal" if codes == [0] * WORLD else f"failed: exit codes {codes}")
    return int(codes != [0] * WORLD)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--tokens", type=int, help="tokens of a sequence: 2048, on the CPU 16")
    parser.add_argument("--plain", action="store_true", help="the block of this file, also where transformers is there")
    parser.add_argument("--kernels", action="store_true", help="list the kernels that take longest")
    parser.add_argument("--timeout", type=int, default=500, help="seconds until the processes are ended")
    chosen = parser.parse_args()
    chosen.tokens = chosen.tokens or (2048 if chosen.device == "cuda" else 16)
    sys.exit(main(chosen))
