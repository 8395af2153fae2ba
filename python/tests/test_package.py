"""The package itself: stubs, imports, a library of a user's own."""

import inspect
import pathlib
import subprocess
import sys

import pointwise
import pytest
from pointwise import _torch_ops

ROOT = pathlib.Path(__file__).resolve().parent.parent


def test_stubs_are_up_to_date():
    subprocess.run([sys.executable, ROOT / "tools" / "stubs_of_functions.py", "--check"], check=True)


def test_stubs_have_the_signatures():
    import ast

    stub = ast.parse((ROOT / "pointwise" / "__init__.pyi").read_text())
    heads = {f.name: f.args for f in stub.body if isinstance(f, ast.FunctionDef)}
    for name, function in _torch_ops.FUNCTIONS.items():
        parameters = inspect.signature(function).parameters
        known = heads[name]
        names = [a.arg for a in (*known.args, *known.kwonlyargs)] + ([known.kwarg.arg] if known.kwarg else [])
        assert list(parameters) == names, name
        assert function.__doc__, name
    assert set(heads) - {"override", "load"} == set(_torch_ops.FUNCTIONS)


@pytest.mark.parametrize("order", ["pointwise, torch", "torch, pointwise"])
def test_ops_are_there_in_any_order(order):
    code = f"import {order}; assert torch.ops.pointwise.relu(-torch.ones(2)).sum() == 0"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_load_refuses(tmp_path):
    with pytest.raises(OSError):
        pointwise.load(str(tmp_path / "libnone.so"), "mine")
    with pytest.raises(ValueError, match="no free name"):
        pointwise.load(str(tmp_path / "libnone.so"), "pointwise")


def test_a_library_of_a_users_own(request, device):
    library = request.config.getoption("--library")
    if not library:
        pytest.skip("give --library")
    script = ROOT.parent / "examples" / "torch-op" / "test_ops.py"
    subprocess.run([sys.executable, script, library, device], check=True)
