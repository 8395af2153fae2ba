"""Calls from several threads, and from a process that was forked."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch

import pointwise


def test_threads(device):
    """Eight threads; on a GPU each on a stream of its own."""
    x = torch.randn(1 << 16, device=device)
    want = pointwise.gelu(pointwise.mul(x, 3))
    if device == "cuda":
        torch.cuda.synchronize()
    wrong = []

    def work():
        try:
            with torch.cuda.stream(torch.cuda.Stream()) if device == "cuda" else contextlib.nullcontext():
                for _ in range(50):
                    if not torch.equal(pointwise.gelu(pointwise.mul(x, 3)), want):
                        wrong.append("another result")
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_fork_after_a_large_call():
    """As workers of a DataLoader are: the child has none of the threads that ran the parent's call."""
    x = torch.randn(1 << 22)
    want = pointwise.silu(x)
    child = os.fork()
    if child == 0:
        # No test runner in the child: it leaves with a number.
        try:
            same = torch.equal(pointwise.silu(x), want)
            os._exit(0 if same else 1)
        finally:
            os._exit(2)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            break
        time.sleep(0.01)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise AssertionError("the child hangs")
    assert torch.equal(pointwise.silu(x), want)


@pytest.mark.parametrize("call", ["pointwise.gelu(x)", "pointwise.arrays.gelu(x.numpy())"])
@pytest.mark.parametrize("count", [1, 3])
def test_as_many_threads_as_torch_has(count, call):
    """A process has no thread but these: the calling one, and those that a large call makes."""
    code = f"""
import os, torch, pointwise
x = torch.randn(1 << 20)
torch.set_num_threads({count})
before = len(os.listdir("/proc/self/task"))
for _ in range(3):
    {call}
made = len(os.listdir("/proc/self/task")) - before
assert made == {count - 1}, made
"""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
