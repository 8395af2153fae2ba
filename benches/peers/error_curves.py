"""The error of every function over its input: ours by `pointwise run`, PyTorch's on the same GPU and the same inputs.

    python3 error_curves.py ./pointwise [cuda|cpu] > docs/data/error-curves.csv

The axis from -5 to 5 has 125 parts. A line has an op, an element type, a library, and for each part the largest
distance from float64 in units in the last place (ULP) of the exact result. A part without a finite result is empty.
The references are those of `torch_accuracy.py`. The other operands of ops of several take values from -5 to 5. The
book draws the lines (`book/src/errors.rs`). `NAME_backward` is the gradient at x where the result's is 1. PyTorch's comes from
autograd, and so does the reference, in float64. Needs torch and safetensors.
"""
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import script

if __name__ == "__main__":
    # Before the packages are imported: --help needs none.
    OPTIONS = script.parity(__doc__)
torch = script.require("torch")
safetensors = script.require("safetensors.torch")
import torch_accuracy as accuracy  # noqa: E402

FROM, TO, PARTS, INPUTS = -5.0, 5.0, 125, 1_000_000
# Ops without a rounding, and `cube`, which is `pow`.
EXACT = {
    "abs", "neg", "sign", "floor", "ceil", "round", "round_decimals", "trunc", "relu", "hardtanh", "logical_not", "isnan",
    "isinf", "isfinite", "nan_to_num", "clamp", "cube",
}


def inputs(operands, dtype):
    """The first operand runs along the axis; steps of the golden ratio spread the others evenly near each of its values."""
    k = torch.arange(INPUTS, dtype=torch.float64) + 0.5
    rows = [k / INPUTS] + [(k * 0.618033988749895 * (n + 2)) % 1 for n in range(operands - 1)]
    return [(FROM + (TO - FROM) * row).to(dtype) for row in rows]


def largest(got, exact, kind):
    """The largest error of each part of the axis."""
    _, digits, least, top = accuracy.TYPES[kind]
    ulp = (got.double() - exact).abs() / accuracy.ulp_at(exact, digits, least, top)
    ulp = torch.where(torch.isfinite(got.double()) & torch.isfinite(exact), ulp, -1.0)
    return ",".join("" if most < 0 else f"{most:.3g}" for most in ulp.view(PARTS, -1).amax(1).tolist())


def main():
    command, device = OPTIONS.pointwise, OPTIONS.device
    if device == "cuda":
        script.require_gpu(torch)
    name = script.gpu(torch) if device == "cuda" else "the CPU"
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"# {name}, {version}, PyTorch {torch.__version__}, {time.strftime('%Y-%m-%d')}")
    ops = accuracy.ONE.keys() - EXACT | accuracy.NOT_EXACT
    ops |= {f"{op}_backward" for op in ops & accuracy.ONE.keys()} & accuracy.GRADIENTS.keys()
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "in.safetensors"), Path(folder, "out.safetensors")
        for op in sorted(ops):
            is_gradient, is_gated = op.endswith("_backward"), op.endswith("_and_mul")
            theirs, reference = (accuracy.GRADIENTS[op][0], None) if is_gradient else (accuracy.ONE | accuracy.SEVERAL)[op]
            for kind in ("f32", "bf16"):
                dtype = accuracy.TYPES[kind][0]
                rows = inputs(2 if op in accuracy.SEVERAL else 1, dtype)
                if is_gradient:
                    rows = [torch.ones_like(rows[0]), *rows]
                    file = dict(zip(("grad", "x"), rows))
                else:
                    file = {"x": torch.cat(rows)} if is_gated or len(rows) == 1 else dict(zip("ab", rows))
                safetensors.save_file(file, source)
                script.call([command, "run", op, source, "-o", target, "--device", device])
                y = safetensors.load_file(target)["y"].to(device)
                rows = [row.to(device) for row in rows]
                wide = [row.double() for row in rows]
                exact, other = (reference or theirs)(*wide), theirs(*rows)
                exact, other = (z[0] if isinstance(z, tuple) else z for z in (exact, other))
                for library, got in (("pointwise", y), ("PyTorch", other)):
                    print(f"{op},{kind},{library},{largest(got, exact, kind)}", flush=True)


if __name__ == "__main__":
    script.run(main)
