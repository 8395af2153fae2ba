"""`pointwise run` on files made by PyTorch, against PyTorch's own results on the same GPU.

    python3 torch_parity.py ./pointwise [cuda|cpu]

For every unary op and f32, f16, bf16: values of all magnitudes and special values go through a safetensors file and the
command; the result is compared with torch's. Exact ops must agree bit for bit (NaN equals NaN). For the others the table
shows the largest distance from float64 of both, in units in the last place, and the command's may not be larger than its
bound or PyTorch's. Needs torch and safetensors.
"""
import sys
import tempfile
from pathlib import Path

import script

if __name__ == "__main__":
    # Before the packages are imported: --help needs none.
    OPTIONS = script.parity(__doc__)
torch = script.require("torch")
safetensors = script.require("safetensors.torch")

import torch_functions

NAMES = (
    "exp log sqrt rsqrt abs neg reciprocal sign sin cos floor ceil round trunc erf log1p expm1 relu gelu gelu_tanh silu sigmoid tanh "
    "leaky_relu elu selu hardswish hardsigmoid hardtanh softplus mish logical_not isnan isinf isfinite nan_to_num"
).split()
OPS = {name: torch_functions.function(name) for name in NAMES} | {"clamp": lambda x: torch.clamp(x, -0.75, 2.5)}
SETTINGS = {"clamp": ["--set", "min=-0.75", "--set", "max=2.5"]}
EXACT = {"abs", "neg", "sign", "floor", "ceil", "round", "trunc", "relu", "leaky_relu", "hardtanh", "logical_not", "isnan",
         "isinf", "isfinite", "nan_to_num", "clamp", "sqrt", "reciprocal", "hardswish", "hardsigmoid"}
# In float64 torch's own gelu cancels in the negative tail: these forms do not.
REFERENCE = {
    "gelu": lambda x: 0.5 * x * torch.special.erfc(-x * 0.5**0.5),
    "gelu_tanh": lambda x: x * torch.sigmoid((8 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)),
}
DIGITS = {torch.float32: (23, -126), torch.float16: (10, -14), torch.bfloat16: (7, -126)}


def inputs(dtype):
    generator = torch.Generator().manual_seed(7)
    wide = torch.randint(-(2**31), 2**31 - 1, (1 << 16,), generator=generator, dtype=torch.int32).view(torch.float32)
    usual = torch.randn(1 << 16, generator=generator) * 4
    inf, nan = float("inf"), float("nan")
    special = torch.tensor([0.0, -0.0, inf, -inf, nan, 1.0, -1.0, 0.5, 1.5, 2.5, -0.5, 20.0, 88.7, -88.7, -103.9, 3e38, 1e-45])
    return torch.cat([special, usual, wide]).to(dtype)


def ulps(got, exact, dtype):
    """The largest distance of `got` from the float64 `exact`, where both are finite."""
    digits, least = DIGITS[dtype]
    finite = torch.isfinite(got) & torch.isfinite(exact.to(dtype))
    got, exact = got[finite].double(), exact[finite]
    exponent = torch.floor(torch.log2(exact.abs().clamp(min=2.0**least)))
    return ((got - exact).abs() / torch.exp2(exponent - digits)).max().item() if got.numel() else 0.0


def same(a, b):
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype == torch.bool:
        return torch.equal(a, b)
    integer = torch.int32 if a.dtype == torch.float32 else torch.int16
    equal = (a.view(integer) == b.view(integer)) | (torch.isnan(a) & torch.isnan(b))
    return bool(equal.all())


def main():
    command, device = OPTIONS.pointwise, OPTIONS.device
    if device == "cuda":
        script.require_gpu(torch)
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name(0) if device == 'cuda' else 'cpu'}")
    failures, checked = [], 0
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.safetensors"), Path(folder, "out.safetensors")
        for dtype in DIGITS:
            x = inputs(dtype)
            safetensors.save_file({"x": x}, source)
            for name, op in OPS.items():
                script.call([command, "run", name, source, "-o", target, "--device", device, *SETTINGS.get(name, [])])
                y = safetensors.load_file(target)["y"]
                theirs = op(x.to(device)).cpu()
                checked += 1
                label = f"{name:12} {str(dtype)[6:]:9}"
                if name in EXACT:
                    if not same(y, theirs):
                        failures.append(label)
                        bad = ((y != theirs) & ~(torch.isnan(y.float()) & torch.isnan(theirs.float()))).nonzero().flatten()
                        bad = bad[:3] if len(bad) else torch.tensor([0])
                        print(f"{label} differs, e.g. at {x[bad].tolist()}: {y[bad].tolist()} and {theirs[bad].tolist()}")
                    continue
                exact = REFERENCE.get(name, op)(x.double())
                ours_ulp, theirs_ulp = ulps(y, exact, dtype), ulps(theirs, exact, dtype)
                special = same(torch.where(torch.isfinite(y), torch.zeros_like(y), y),
                               torch.where(torch.isfinite(theirs), torch.zeros_like(theirs), theirs))
                worse = ours_ulp > max(theirs_ulp, 3.0 if dtype == torch.float32 else 1.0)
                if worse or not special:
                    failures.append(label)
                mark = "  WORSE" if worse else "" if special else "  other NaN or infinities"
                print(f"{label} ulp from float64: pointwise {ours_ulp:.2f}, torch {theirs_ulp:.2f}{mark}")
    print(f"{checked} results compared, {len(failures)} failed: {', '.join(failures)}")
    sys.exit(bool(failures))


if __name__ == "__main__":
    script.run(main)
