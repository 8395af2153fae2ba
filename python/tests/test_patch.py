"""`patch` on Hugging Face's models, small and with random weights: as near to float64 as the original's."""

import copy
import io
import os
import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn

import pointwise

# With the package `kernels` rotations are modules, which cannot be pickled: one test turns it on.
os.environ.setdefault("USE_HUB_KERNELS", "NO")
transformers = pytest.importorskip("transformers")


@pytest.fixture(autouse=True)
def no_stream(monkeypatch):
    """transformers asks CUDA for its stream even where there is none, which not every build of torch survives."""
    if not torch.cuda.is_available():
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)


_SMALL = dict(
    vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, attn_implementation="eager", experts_implementation="batched_mm", pad_token_id=0,
    bos_token_id=1, eos_token_id=2,
)  # fmt: skip


def _config(name):
    make = getattr(transformers, f"{name}Config")
    more = {
        "Qwen3": {"head_dim": 8},
        "Gemma2": {"head_dim": 8},
        "DeepseekV3": {
            "num_key_value_heads": 4, "moe_intermediate_size": 16, "n_routed_experts": 4, "num_experts_per_tok": 2,
            "n_group": 2, "topk_group": 1, "kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 8, "v_head_dim": 8, "first_k_dense_replace": 1,
        },
    }  # fmt: skip
    if name == "GPTJ":
        return make(
            vocab_size=64, n_embd=32, n_layer=2, n_head=4, rotary_dim=4, n_positions=64, attn_implementation="eager",
            bos_token_id=1, eos_token_id=2,
        )  # fmt: skip
    return make(**{**_SMALL, **more.get(name, {})})


NORMS = {"rms_norm", "add_rms_norm"}
MODELS = {
    "Llama": {"silu_and_mul_pair", "rope", *NORMS},
    "Qwen3": {"silu_and_mul_pair", "rope", *NORMS},
    "Gemma2": {"gelu_tanh_and_mul_pair", "rope", *NORMS},
    "Phi3": {"silu_and_mul", "rope", "rms_norm"},
    "GPTJ": {"gelu_tanh", "rope"},
    "DeepseekV3": {"silu_and_mul_pair", "silu", "rope", *NORMS},
}


def _model(name, device, seed=0):
    torch.manual_seed(seed)
    model = getattr(transformers, f"{name}ForCausalLM")(_config(name)).eval().to(device)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.1)
    return model


def _run(model, ids):
    """Logits and the gradients of all parameters."""
    model.zero_grad()
    logits = model(ids, use_cache=False).logits
    logits.square().mean().backward()
    return [logits.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]


def _ratios(results, original, exact):
    """How far results are from float64, where the original's are 1, as logarithms: logits, and the gradients' mean."""

    def far(tensors):
        return torch.tensor([(x.double() - y).norm().item() + 1e-30 for x, y in zip(tensors, exact, strict=True)])

    logits, *gradients = (far(results) / far(original)).log()
    return torch.stack((logits, torch.stack(gradients).mean()))


# How often weights and tokens are drawn. What is rounded otherwise changes all that follows, so one draw's ratio is
# anything from 0.8 to 1.3. The mean of the draws is known to about 4 %.
DRAWS = 8


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_as_near_to_float64(name, dtype, device):
    ratios = []
    for seed in range(DRAWS):
        model = _model(name, device, seed).to(dtype)
        ids = torch.randint(3, 64, (2, 12), device=device)
        exact = _run(copy.deepcopy(model).double(), ids)
        original = _run(model, ids)
        modules = {n: type(m) for n, m in model.named_modules()}
        with pointwise.patch(model) as patched:
            assert {op for _, op in patched.replaced} == MODELS[name], patched
            assert patched.kept == [], patched
            ours = _run(model, ids)
        assert not all(map(torch.equal, ours, original)), "nothing ran differently"
        ratios.append(_ratios(ours, original, exact))
        # Undone: the model's own again, to the bit.
        assert {n: type(m) for n, m in model.named_modules()} == modules
        assert not any("forward" in vars(m) for m in model.modules())
        undone = _run(model, ids)
        assert torch.equal(undone[0], original[0])
        # torch's gradients of what is looked up are sums in any order on CUDA.
        assert device == "cuda" or all(map(torch.equal, undone, original))
    logits, gradients = torch.stack(ratios).mean(0).exp().tolist()
    assert logits <= 1.2 and gradients <= 1.2


@pytest.mark.parametrize("name", MODELS)
def test_compiles(name, device, request):
    """As one graph."""
    model = _model(name, device)
    ids = torch.randint(3, 64, (2, 12), device=device)
    want = model(ids, use_cache=False).logits
    with pointwise.patch(model):
        backend = "inductor" if request.config.getoption("--all") else "aot_eager"
        compiled = torch.compile(model, fullgraph=True, backend=backend)
        got = compiled(ids, use_cache=False).logits
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
    torch._dynamo.reset()


def test_only_this_model(device):
    """Another model of the class keeps its own, and both see what is loaded into them."""
    one, two = _model("Llama", device), _model("Llama", device)
    ids = torch.randint(3, 64, (1, 5), device=device)
    want = two(ids).logits
    patched = pointwise.patch(one)
    assert torch.equal(two(ids).logits, want)
    assert one.state_dict().keys() == two.state_dict().keys()
    assert pointwise.patch(one).replaced == []
    torch.testing.assert_close(one.generate(ids, max_new_tokens=4), two.generate(ids, max_new_tokens=4))
    patched.undo()
    patched.undo()
    assert torch.equal(one(ids).logits, want)


def test_what_is_kept():
    """A module that has no op, or is more than one, stays and is named."""

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate_proj, self.up_proj, self.down_proj = (nn.Linear(4, 4) for _ in range(3))
            self.act_fn = nn.SiLU()

        def forward(self, x):
            return self.down_proj(self.act_fn(self.up_proj(x)) * self.gate_proj(x))

    model = nn.Sequential(nn.Softsign(), nn.RReLU(), nn.ReLU(inplace=True), nn.GELU(), nn.LeakyReLU(0.3), Twice())
    x = torch.randn(3, 4)
    want = model.eval()(x.clone())
    patched = pointwise.patch(model)
    assert patched.replaced == [("2", "relu"), ("3", "gelu"), ("5.act_fn", "silu")]
    assert ("5", "its forward does more than a gated MLP") in patched.kept
    assert ("4", "pointwise has no op of LeakyReLU") in patched.kept
    torch.testing.assert_close(model(x), want)
    with pytest.raises(TypeError, match="must be torch.nn.Module, not str"):
        pointwise.patch("model")


def test_rotations_that_differ():
    """A function is not replaced for its name: Cohere's rotates neighbours by tables of another order."""
    from transformers.models.cohere import modeling_cohere
    from transformers.models.llama import modeling_llama

    from pointwise._patch import _rotation

    assert _rotation(modeling_cohere.apply_rotary_pos_emb) is None
    assert _rotation(modeling_llama.apply_rotary_pos_emb) is not None


def _gated():
    class Gated(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate_proj, self.up_proj, self.down_proj = (nn.Linear(4, 4) for _ in range(3))
            self.act_fn = nn.SiLU()

        def forward(self, x):
            return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))

    return nn.Sequential(Gated(), nn.GELU())


@pytest.mark.parametrize("when", ["before", "after"])
def test_hooks_see_what_they_saw(when):
    """Hooks of the model alone, and none while it is patched; also those of an activation that a gated op takes in."""
    model, x = _gated(), torch.randn(3, 4)
    want = []
    for module in model.modules():
        module.register_forward_hook(lambda module, args, result: want.append((type(module), result)))
    model(x)

    model = copy.deepcopy(model)
    for module in model.modules():
        module._forward_hooks.clear()
    got, patched = [], pointwise.patch(model) if when == "after" else None
    for module in model.modules():
        module.register_forward_hook(lambda module, args, result: got.append((type(module), result)))
    patched = patched or pointwise.patch(model)
    assert got == []
    names = [name for name, _ in patched.replaced]
    assert sorted(names) == (["0", "1"] if when == "after" else ["0.act_fn", "1"])
    for _ in range(2):
        model(x)
        assert [kind for kind, _ in got] == [kind for kind, _ in want]
        for (_, a), (_, b) in zip(got, want):
            torch.testing.assert_close(a, b)
        got.clear()
        # Undone, they are there, too.
        patched.undo()


class Norm(nn.Module):
    """A norm in one of its spellings."""

    def __init__(self, width, spelling):
        super().__init__()
        self.weight, self.eps, self.spelling = nn.Parameter(torch.randn(width)), 1e-3, spelling

    def forward(self, x):
        y = x.float() / (x.float().square().mean(-1, keepdim=True) + self.eps).sqrt()
        match self.spelling:
            case "llama":
                return self.weight * y.to(x.dtype)
            case "gemma":
                return (y * (1 + self.weight.float())).to(x.dtype)
            case "in f32":
                return (y * self.weight.float()).to(x.dtype)
            case "centred":
                return self.weight * (y - y.mean(-1, keepdim=True)).to(x.dtype)
        return self.weight * y


@pytest.mark.parametrize("spelling", ["llama", "gemma", "in f32", "f32 results", "centred"])
def test_norms_are_found_by_their_values(spelling, device):
    model = nn.Sequential(Norm(96, spelling)).to(device)
    x = torch.randn(5, 96, device=device)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        own, half = model.to(dtype), x.to(dtype)
        want = own(half)
        with pointwise.patch(own) as patched:
            if spelling in ("centred", "f32 results"):
                assert patched.kept == [("0", "it is no norm that pointwise knows")]
                continue
            assert patched.replaced == [("0", "rms_norm")]
            torch.testing.assert_close(own(half), want, rtol={torch.float32: 1e-6}.get(dtype, 1e-2), atol=1e-6)
            # Other types than the weight's, and autocast, run the module's own code.
            assert own(x.double()).dtype == torch.promote_types(torch.float64, dtype) or spelling != "llama"
            with torch.autocast(device, torch.bfloat16):
                assert torch.equal(own(half), Norm.forward(own[0], half))


def test_a_layer_whose_norm_has_hooks_runs_its_own_code(device):
    model = _model("Llama", device)
    ids = torch.randint(3, 64, (2, 12), device=device)
    want, seen = model(ids, use_cache=False).logits, []
    with pointwise.patch(model):
        norm = model.model.layers[0].post_attention_layernorm
        handle = norm.register_forward_hook(lambda module, args, result: seen.append(result))
        torch.testing.assert_close(model(ids, use_cache=False).logits, want, rtol=1e-4, atol=1e-5)
        assert len(seen) == 1
        handle.remove()
        torch.testing.assert_close(model(ids, use_cache=False).logits, want, rtol=1e-4, atol=1e-5)
        assert len(seen) == 1


def test_undo_takes_its_own_alone():
    """A wrapper that came after the patch stays, and calls the model's own code then."""
    model, x = _gated(), torch.randn(3, 4)
    want = model(x)
    patched = pointwise.patch(model)
    calls = []

    def wrapped(inner):
        def forward(*args):
            calls.append(inner)
            return inner(*args)

        return forward

    ours = model[0].forward
    model[0].forward = wrapper = wrapped(ours)
    torch.testing.assert_close(model(x), want)
    patched.undo()
    assert model[0].forward is wrapper and "forward" not in vars(model[1])
    calls.clear()
    assert torch.equal(model(x), want) and calls == [ours]
    # What was wrapped before the patch is left alone.
    model = _gated()
    model[0].forward = wrapper = wrapped(model[0].forward)
    model[1].forward = wrapped(model[1].forward)
    patched = pointwise.patch(model)
    assert {name for name, why in patched.kept if "replaced already" in why} == {"0", "1"}
    patched.undo()
    assert model[0].forward is wrapper


@pytest.mark.parametrize("name", ["Llama", "Phi3", "GPTJ"])
def test_a_pickle_is_patched(name, device):
    model = _model(name, device)
    ids = torch.randint(3, 64, (2, 12), device=device)
    before, keys = model(ids, use_cache=False).logits, list(model.state_dict())
    patched = pointwise.patch(model)
    assert list(model.state_dict()) == keys
    want = model(ids, use_cache=False).logits
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    for other in (
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
        torch.load(file, weights_only=False, map_location=device),
    ):
        assert torch.equal(other(ids, use_cache=False).logits, want)
        assert pointwise.patch(other).replaced == []
        for module in other.modules():
            if "forward" in vars(module):
                assert module.forward.module is module
    patched.undo()
    for other in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert torch.equal(other(ids, use_cache=False).logits, before)
        assert not any("forward" in vars(module) for module in other.modules())


@pytest.mark.parametrize("hub", ["NO", "YES"])
def test_with_the_package_kernels(hub):
    """With it, transformers has rotations as modules; without, or turned off, as functions."""
    pytest.importorskip("kernels")
    code = f"""
import torch, pointwise
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama import modeling_llama
assert isinstance(modeling_llama.apply_rotary_pos_emb, torch.nn.Module) == {hub == "YES"}
torch.cuda.is_current_stream_capturing = lambda: False
config = LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4)
model = LlamaForCausalLM(config).eval()
ids = torch.randint(3, 64, (1, 5))
want = model(ids).logits
patched = pointwise.patch(model)
assert {{op for _, op in patched.replaced}} == {{"silu_and_mul_pair", "rope", "rms_norm", "add_rms_norm"}} and not patched.kept, patched
got = model(ids).logits
assert not torch.equal(got, want)
torch.testing.assert_close(got, want)
"""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "USE_HUB_KERNELS": hub,
    }
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
