"""Options and helpers of the tests: `pytest python/tests [--device cuda] [--library PATH]`."""

import pytest

try:
    import torch
except ModuleNotFoundError:  # the tests without it are those of arrays alone
    torch = None


def pytest_ignore_collect(collection_path):
    name = collection_path.name
    return torch is None and name.startswith("test_") and name != "test_arrays.py" or None


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", help="the device to test: cpu or cuda")
    parser.addoption("--all", action="store_true", help="all samples of OpInfo, not a tenth")
    parser.addoption("--library", help="examples/torch-op, built: libtorch_op.so")


@pytest.fixture(scope="session")
def device(request):
    torch.set_num_threads(1)
    return request.config.getoption("--device")


@pytest.fixture(autouse=True)
def seed():
    if torch:
        torch.manual_seed(0)
