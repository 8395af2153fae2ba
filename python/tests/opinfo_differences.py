"""Samples of PyTorch's OpInfo by which pointwise differs from torch, each with its reason.

A key is the name of a sample as `test_opinfo.py` writes it, by device.
"""

DIFFERENCES = {"cpu": {}, "cuda": {}}
