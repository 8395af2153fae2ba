"""Samples of PyTorch's OpInfo by which pointwise differs from torch, each with its reason.

A key is the name of a sample as `test_opinfo.py` writes it, by device.
"""

# The gradient of an operand that was broadcast: three elements, summed of terms that are rounded to bf16 on both sides.
_ROUNDED_TERMS = "terms are rounded to 16 bits before they are summed, here and in torch, each in its own way"

DIFFERENCES = {
    "cpu": {
        "pow bfloat16 reference 91 gradient": _ROUNDED_TERMS,
        "pow bfloat16 reference 91 strided gradient": _ROUNDED_TERMS,
    },
    "cuda": {},
}
