"""Samples of PyTorch's OpInfo by which pointwise differs from torch, each with its reason.

A key is the name of a sample as `test_opinfo.py` writes it, by device.
"""

# The gradient of an operand that was broadcast is a sum of terms, which cancel. torch sums them, its own and ours, in an order
# that depends on its threads: which of these samples differ, too.
ROUNDED_TERMS = "terms are rounded before they are summed, here and in torch, each in its own way"
_WRAPPED = "in place, torch on CUDA wraps a bound of another type to uint8 before it compares; out of place it does not"


def _sums(*samples):
    return {f"{sample} {check}": ROUNDED_TERMS for sample in samples for check in ("gradient", "strided gradient")}


DIFFERENCES = {
    "cpu": _sums(
        "div.no_rounding_mode bfloat16 reference 12",
        "div.no_rounding_mode bfloat16 reference 60",
        "div.no_rounding_mode bfloat16 sample 3",
        "pow bfloat16 reference 12",
        "pow bfloat16 reference 44",
        "pow bfloat16 reference 48",
        "pow bfloat16 reference 59",
        "pow bfloat16 reference 91",
        "pow bfloat16 reference 95",
        "pow bfloat16 sample 3",
        "pow float16 reference 16",
        "pow float16 reference 17",
        "pow float16 reference 63",
        "pow float16 reference 64",
        "pow float16 sample 7",
        "pow float16 sample 8",
    ),
    "cuda": {
        "clamp uint8 sample 6 inplace": _WRAPPED,
        "clamp uint8 reference 13 inplace": _WRAPPED,
        **_sums(
            "lerp float16 sample 12",
            "lerp float16 reference 26",
            "pow float16 reference 43",
            "pow float16 reference 44",
            "pow float16 reference 47",
            "pow float16 reference 48",
            "pow float16 reference 90",
            "pow float16 reference 91",
            "pow float16 reference 94",
            "pow float16 reference 95",
            "pow float32 sample 7",
            "pow float32 sample 8",
            "pow float32 reference 16",
            "pow float32 reference 17",
            "pow float32 reference 63",
            "pow float32 reference 64",
        ),
    },
}
