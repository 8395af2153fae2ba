"""Options and helpers of the tests: `pytest python/tests [--device cuda] [--library PATH]`."""

import pytest
import torch


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
    torch.manual_seed(0)
