"""Ops on DTensors, and models with them sharded: equal to what one process gives, and without communication.

Two processes run every check, with gloo on the CPU or with NCCL on two GPUs (`--device cuda`).
"""

import os
import socket
import traceback

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import pointwise
from pointwise import _distributed, _native, _spec
from pointwise._torch_ops import CALLS
from reference import shapes

WORLD = 2


def _quiet(run):
    """Runs without communication. Returns the results."""
    with CommDebugMode() as comm:
        result = run()
    assert comm.get_total_counts() == 0, dict(comm.get_comm_counts())
    return result


def _sharded(tensor, mesh, place, grad=False):
    made = distribute_tensor(tensor.detach(), mesh, [place])
    return made.requires_grad_() if grad and tensor.is_floating_point() else made


def _equal(ours, whole):
    ours = ours.full_tensor() if isinstance(ours, DTensor) else ours
    torch.testing.assert_close(ours, whole, rtol=1e-6, atol=1e-6, equal_nan=True)


def _operands(op, device):
    made = []
    for operand in op.operands:
        shape = shapes(op, (4, 6, 4))[operand.domain]
        if operand.dtype == "int64":
            made.append(torch.randint(0, 4, shape, device=device))
        elif operand.is_bool:
            made.append(torch.rand(shape, device=device) > 0.5)
        elif "float32" in op.dtypes:
            made.append(torch.rand(shape, device=device) + 0.5)
        else:
            made.append(torch.randint(1, 9, shape, device=device))
    return made


def every_op(mesh, device):
    """Each op, by each dimension it can be sharded by, forward and backward."""
    tried = 0
    for name, calls in CALLS.items():
        op = calls.op
        if not op.operands or op.random:
            continue
        operands = _operands(op, device)
        params = [param.default for param in op.params]
        leaves = [x.clone().requires_grad_() if x.is_floating_point() else x for x in operands]
        gradient = op.backward is not None and not name.endswith("_backward")
        whole = calls.call(*leaves, *params)
        results = whole if isinstance(whole, tuple) else (whole,)
        if gradient:
            results[0].sum().backward()
        for dim in range(3 if op.is_of_elements else 2):
            channel = Shard(0) if dim == 1 else Replicate()
            places = [channel if operand.domain == "channel" else Shard(dim) for operand in op.operands]
            mine = [_sharded(x, mesh, place, gradient) for x, place in zip(operands, places)]
            got = _quiet(lambda: calls.call(*mine, *params))
            got = got if isinstance(got, tuple) else (got,)
            for one, two in zip(got, results):
                assert one.placements == (Shard(dim),), (name, dim, one.placements)
                _equal(one.detach(), two.detach())
            if gradient:
                _quiet(lambda: got[0].sum().backward())
                for one, two in zip(mine, leaves):
                    if two.is_floating_point():
                        _equal(one.grad, two.grad)
            tried += 1
    assert tried > 2 * len(CALLS)


def broadcast(mesh, device):
    """A bias that is whole, or sharded with the columns; its gradient is a sum over ranks."""
    x, bias = torch.randn(4, 6, device=device, requires_grad=True), torch.randn(6, device=device, requires_grad=True)
    want = pointwise.mul(pointwise.silu(x), bias)
    want.sum().backward()
    for of_x, of_bias in ((Shard(0), Replicate()), (Shard(1), Shard(0))):
        mine, my_bias = _sharded(x, mesh, of_x, True), _sharded(bias, mesh, of_bias, True)
        got = _quiet(lambda: pointwise.mul(pointwise.silu(mine), my_bias))
        assert got.placements == (of_x,)
        _equal(got, want)
        _quiet(lambda: got.sum().backward())
        assert my_bias.grad.placements == (Partial() if of_bias == Replicate() else Shard(0),)
        _equal(my_bias.grad, bias.grad)
        _equal(mine.grad, x.grad)
    number = _quiet(lambda: pointwise.mul(mine.detach(), 2.5))
    _equal(number, x.detach() * 2.5)


def norms(mesh, device):
    """A weight that is whole; rows that are sharded along themselves are gathered first."""
    x = torch.randn(4, 6, 8, device=device, requires_grad=True)
    residual = torch.randn(6, 8, device=device, requires_grad=True)
    weight = torch.randn(8, device=device, requires_grad=True)
    y, s = pointwise.add_rms_norm(x, residual, weight)
    (y.square().sum() + s.sum()).backward()
    for of_x, of_residual in ((Shard(0), Replicate()), (Shard(1), Shard(0))):
        leaves = [_sharded(t, mesh, p, True) for t, p in ((x, of_x), (residual, of_residual), (weight, Replicate()))]
        got = _quiet(lambda: pointwise.add_rms_norm(*leaves))
        for one, two in zip(got, (y, s)):
            assert one.placements == (of_x,)
            _equal(one.detach(), two.detach())
        (got[0].square().sum() + got[1].sum()).backward()
        assert leaves[2].grad.placements == (Partial(),)
        for mine, whole in zip(leaves, (x, residual, weight)):
            _equal(mine.grad, whole.grad)
    # A weight of its own for each row of a rank.
    weights = torch.randn(4, 1, 8, device=device, requires_grad=True)
    want = pointwise.rms_norm(x.detach(), weights)
    want.square().sum().backward()
    mine, theirs = _sharded(x.detach(), mesh, Shard(0), False), _sharded(weights, mesh, Shard(0), True)
    got = pointwise.rms_norm(mine, theirs)
    _equal(got.detach(), want.detach())
    got.square().sum().backward()
    _equal(theirs.grad, weights.grad)
    for f, g in ((pointwise.softmax, lambda x: x.softmax(-1)), (pointwise.sum, lambda x: x.sum(-1))):
        mine = _sharded(x, mesh, Shard(2), True)
        with CommDebugMode() as comm:
            got = f(mine)
        assert comm.get_total_counts() > 0
        _equal(got.detach(), g(x).detach())
        x.grad = None
        g(x).square().sum().backward()
        got.square().sum().backward()
        _equal(mine.grad, x.grad)


def sums(mesh, device):
    """Sums over ranks stay such sums under add, sub and neg; other ops need the sum first."""
    x = torch.randn(4, 6, device=device) + dist.get_rank()
    part = DTensor.from_local(x, mesh, [Partial()])
    whole = part.full_tensor()
    got = _quiet(lambda: pointwise.neg(pointwise.sub(pointwise.add(part, part, alpha=2), part)))
    assert got.placements == (Partial(),)
    _equal(got, -(whole + 2 * whole - whole))
    # A number is added once, not by each rank.
    _equal(pointwise.add(part, 1.0), whole + 1)
    with CommDebugMode() as comm:
        _equal(pointwise.silu(part), nn.functional.silu(whole))
    assert comm.get_total_counts() > 0


def public_rules(mesh, device):
    """The rules by which elementwise ops go where torch's own is not to be had."""
    _distributed.register("pointwise", _spec.parse(_native.describe()), private=False)
    DTensor._op_dispatcher.sharding_propagator.propagate_op_sharding.cache.cache_clear()
    broadcast(mesh, device)
    sums(mesh, device)
    every_op(mesh, device)


def rope(mesh, device):
    """By heads (tensor parallel), by batch, and by sequence with sharded tables; in each layout."""
    for layout, order in (("bshd", "bshd"), ("bhsd", "bhsd"), ("sbhd", "sbhd")):
        sizes = {"b": 2, "s": 8, "d": 16}
        q, k = (torch.randn([{**sizes, "h": h}[c] for c in order], device=device, requires_grad=True) for h in (4, 2))
        cos, sin = torch.randn(8, 8, device=device), torch.randn(8, 8, device=device)
        want = pointwise.rope(q, k, cos, sin, layout=layout)
        (want[0].sum() + want[1].square().sum()).backward()
        for axis, tables in (("h", Replicate()), ("b", Replicate()), ("s", Shard(0))):
            place = Shard(order.index(axis))
            mine = [_sharded(x, mesh, place, True) for x in (q, k)]
            rows = [_sharded(x, mesh, tables) for x in (cos, sin)]
            got = _quiet(lambda: pointwise.rope(*mine, *rows, layout=layout))
            for one, two in zip(got, want):
                assert one.placements == (place,)
                _equal(one, two)
            _quiet(lambda: (got[0].sum() + got[1].square().sum()).backward())
            _equal(mine[0].grad, q.grad)
            _equal(mine[1].grad, k.grad)
            _equal(_quiet(lambda: pointwise.rope(mine[0], None, *rows, layout=layout)[0]), want[0])
    # One head of k, which both ranks have, and tables that are longer than the sequence.
    k = torch.randn(8, 2, 1, 16, device=device)
    cos, sin = torch.randn(20, 8, device=device), torch.randn(20, 8, device=device)
    want = pointwise.rope(q, k, cos, sin, layout="sbhd", offset=3)
    mine, my_k = _sharded(q, mesh, Shard(2)), _sharded(k, mesh, Replicate())
    rows = [_sharded(x, mesh, Replicate()) for x in (cos, sin)]
    got = _quiet(lambda: pointwise.rope(mine, my_k, *rows, layout="sbhd", offset=3))
    assert got[1].placements == (Replicate(),)
    _equal(got[0], want[0])
    _equal(got[1], want[1])
    # By sequence these need communication, and are right.
    rows = [_sharded(x, mesh, Shard(0)) for x in (cos, sin)]
    got = pointwise.rope(_sharded(q, mesh, Shard(0)), _sharded(k, mesh, Shard(0)), *rows, layout="sbhd", offset=3)
    _equal(got[0], want[0])


def context(mesh, device):
    """Context parallelism: by offsets of local tensors, and balanced, by the ids of positions."""
    q, k = (torch.randn(2, 8, h, 16, device=device, requires_grad=True) for h in (4, 2))
    cos, sin = torch.randn(8, 8, device=device), torch.randn(8, 8, device=device)
    want = pointwise.rope(q, k, cos, sin)
    (want[0].square().sum() + want[1].square().sum()).backward()
    rank, own = dist.get_rank(), 8 // WORLD
    mine = [x.detach()[:, rank * own : (rank + 1) * own].clone().requires_grad_() for x in (q, k)]
    got = _quiet(lambda: pointwise.rope(*mine, cos, sin, offset=rank * own))
    _equal(got[0], want[0][:, rank * own : (rank + 1) * own])
    # Balanced: a rank has the first and the last chunk that are left, as causal attention wants it.
    order = torch.tensor([0, 1, 6, 7, 2, 3, 4, 5], device=device)
    rows = [_sharded(x, mesh, Replicate()) for x in (cos, sin)]
    for ids in (order, order.expand(2, 8).contiguous()):
        mine = [_sharded(x[:, order], mesh, Shard(1), True) for x in (q, k)]
        my_ids = _sharded(ids, mesh, Shard(ids.dim() - 1))
        got = _quiet(lambda: pointwise.rope(*mine, *rows, my_ids))
        for one, two in zip(got, want):
            assert one.placements == (Shard(1),)
            _equal(one, two[:, order])
        _quiet(lambda: (got[0].square().sum() + got[1].square().sum()).backward())
        for one, two in zip(mine, (q, k)):
            _equal(one.grad, two.grad[:, order])
    # Tables with a row for each token.
    rows = [x.expand(2, 8, 8)[:, order].contiguous() for x in (cos, sin)]
    rows = [_sharded(x, mesh, Shard(1)) for x in rows]
    got = _quiet(lambda: pointwise.rope(*mine, *rows))
    _equal(got[0], want[0][:, order])


class Block(nn.Module):
    """A gated MLP behind a rotation."""

    def __init__(self):
        super().__init__()
        self.gate, self.up = nn.Linear(16, 32, bias=False), nn.Linear(16, 32, bias=False)
        self.down = nn.Linear(32, 16, bias=False)
        angles = torch.arange(8)[:, None] * torch.tensor([1.0, 0.5, 0.1, 0.01])
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, x):
        rotated, _ = pointwise.rope(x.view(2, 8, 2, 8), None, self.cos, self.sin)
        x = rotated.reshape(2, 8, 16)
        return self.down(pointwise.silu_and_mul_pair(self.gate(x), self.up(x)))


def models(mesh, device):
    """FSDP2 and tensor parallelism, with and without torch.compile."""

    def made():
        torch.manual_seed(1)
        return Block().to(device)

    x = torch.randn(2, 8, 16, device=device)
    whole = made()
    want = whole(x)
    want.square().sum().backward()
    for way in ("FSDP2", "TP", "TP of DTensors", "FSDP2 compiled", "TP compiled"):
        model = made()
        if way.startswith("FSDP2"):
            fully_shard(model, mesh=mesh)
        else:
            column = ColwiseParallel(use_local_output=way != "TP of DTensors")
            parallelize_module(model, mesh, {"gate": column, "up": column, "down": RowwiseParallel()})
        run = torch.compile(model, fullgraph=way == "TP compiled") if "compiled" in way else model
        got = run(x)
        _equal(got, want)
        got.square().sum().backward()
        for one, two in zip(model.parameters(), whole.parameters()):
            torch.testing.assert_close(one.grad.full_tensor(), two.grad, rtol=1e-5, atol=1e-5)


def llama(mesh, device):
    """A patched model of Hugging Face, attention by heads and MLPs by lanes: only the sums of `o` and `down` are sent."""
    import transformers

    if device == "cpu":
        # transformers asks CUDA for its stream, which not every build of torch survives.
        torch.cuda.is_current_stream_capturing = lambda: False
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, attn_implementation="eager", pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip

    def made():
        torch.manual_seed(1)
        return transformers.LlamaForCausalLM(config).to(device)

    ids = torch.randint(3, 64, (2, 12), device=device)
    whole, sharded = made(), made()
    want = whole(ids, use_cache=False).logits
    want.square().sum().backward()
    plan = {f"model.layers.*.{name}_proj": ColwiseParallel() for name in ("self_attn.[qkv]", "mlp.gate", "mlp.up")}
    plan |= {f"model.layers.*.{name}_proj": RowwiseParallel() for name in ("self_attn.o", "mlp.down")}
    parallelize_module(sharded, mesh, plan)
    with pointwise.patch(sharded) as patched:
        assert len(patched.replaced) == 5 * config.num_hidden_layers + 1, patched
        with CommDebugMode() as comm:
            got = sharded(ids, use_cache=False).logits
        assert comm.get_total_counts() == 2 * config.num_hidden_layers, dict(comm.get_comm_counts())
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-6)
        got.square().sum().backward()
    for one, two in zip(sharded.parameters(), whole.parameters()):
        grad = one.grad.full_tensor() if isinstance(one.grad, DTensor) else one.grad
        torch.testing.assert_close(grad, two.grad, rtol=1e-4, atol=1e-5)


def override_rows(mesh, device):
    """torch's ops on rows under `override()`: by any dimension but the last, without communication, and equal."""
    from pointwise import _override_rows

    # By themselves calls on the CPU are torch's.
    _override_rows.SERVED.add(_override_rows.CPU)
    x, w, b = torch.randn(4, 6, 8, device=device), torch.randn(8, device=device), torch.randn(8, device=device)
    calls = {
        "softmax": lambda x, w, b: torch.softmax(x, -1),
        "log_softmax": lambda x, w, b: torch.log_softmax(x, -1),
        "layer_norm": lambda x, w, b: nn.functional.layer_norm(x, (8,), w, b),
        "logsumexp": lambda x, w, b: torch.logsumexp(x, -1),
    }
    with pointwise.override():
        for name, call in calls.items():
            whole = [v.clone().requires_grad_() for v in (x, w, b)]
            want = call(*whole)
            want.sin().sum().backward()
            for dim in (0, 1):
                own = [_sharded(v, mesh, Shard(dim) if v is x else Replicate(), grad=True) for v in (x, w, b)]
                before = _override_rows.Counter.calls
                got = _quiet(lambda: call(*own))
                assert _override_rows.Counter.calls == before + 1
                assert got.placements == (Shard(dim),)
                _equal(got, want)
                got.sin().sum().backward()
                for one, two in zip(own, whole):
                    if two.grad is not None:
                        torch.testing.assert_close(one.grad.full_tensor(), two.grad, rtol=1e-5, atol=1e-5)


def _process(rank, check, device, port, failures):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    if device == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group("nccl" if device == "cuda" else "gloo", rank=rank, world_size=WORLD)
    try:
        torch.manual_seed(0)
        globals()[check](init_device_mesh(device, (WORLD,)), device)
        # gloo's threads of one end the process if the other has left.
        dist.barrier()
    except Exception:
        failures.put(f"rank {rank}:\n{traceback.format_exc()}")
        raise
    finally:
        dist.destroy_process_group()


@pytest.mark.parametrize(
    "check",
    ["every_op", "broadcast", "norms", "sums", "public_rules", "rope", "context", "models", "llama", "override_rows"],
)
def test_sharded(check, device):
    if check == "llama":
        pytest.importorskip("transformers")
    if device == "cuda" and torch.cuda.device_count() < WORLD:
        pytest.skip("needs two GPUs")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = mp.get_context("spawn")
    failures = context.SimpleQueue()
    processes = [context.Process(target=_process, args=(r, check, device, port, failures)) for r in range(WORLD)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
        process.kill()
    assert failures.empty(), failures.get()
    assert [process.exitcode for process in processes] == [0] * WORLD
