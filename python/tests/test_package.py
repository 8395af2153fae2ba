"""The package itself: stubs, imports, a library of a user's own."""

import importlib.metadata
import importlib.util
import inspect
import itertools
import os
import pathlib
import subprocess
import sys
import types

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
    assert set(heads) - {"override", "load", "patch", "explain"} == set(_torch_ops.FUNCTIONS)


def run(code):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_functions_are_made_when_they_are_asked_for():
    run(
        """
import torch, pointwise
made = pointwise._torch_ops.FUNCTIONS._made
assert "sigmoid" not in made and len(made) < len(pointwise._torch_ops.FUNCTIONS) / 4
x = torch.randn(4)
assert torch.equal(torch.ops.pointwise.sigmoid(x), pointwise.sigmoid(x))
assert pointwise.sigmoid is made["sigmoid"] is pointwise._torch_ops.FUNCTIONS["sigmoid"]
"""
    )


# What looks for a module and does not import it: transformers for torch, and accelerate for DTensor.
LOOKS = "from importlib.util import find_spec; find_spec('torch'); find_spec('torch')"
LOOKS_IN_TORCH = "from importlib.util import find_spec; find_spec('torch.distributed.tensor')"
ORDERS = [
    *itertools.permutations(["import pointwise", LOOKS, "import torch"]),
    ("import pointwise", "import torch", LOOKS_IN_TORCH),
    ("import torch", "import pointwise", LOOKS_IN_TORCH),
    *(
        itertools.permutations(["import pointwise", "import transformers", "import torch"])
        if importlib.util.find_spec("transformers")
        else ()
    ),
]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "; ".join(order).replace("import ", ""))
def test_ops_are_there_in_any_order(order):
    run(
        "\n".join(order) + """
import sys
assert torch.ops.pointwise.relu(-torch.ones(2)).sum() == 0
if torch.distributed.is_available():
    import torch.distributed.tensor
    assert "pointwise._distributed" in sys.modules
    assert torch.distributed.tensor.__spec__.loader.get_source(torch.distributed.tensor.__name__)
"""
    )


def test_a_function_that_was_there_before_torch_takes_tensors():
    run(
        """
from pointwise import alibi, rope, silu
import numpy
assert isinstance(silu(numpy.ones(3, "float32")), numpy.ndarray)
import torch
import pointwise
x = torch.ones(3, requires_grad=True)
assert torch.equal(silu(x), torch.nn.functional.silu(x)) and silu(x).grad_fn is not None
assert torch.equal(silu(input=x), pointwise.silu(x))
assert alibi(2, 3, dtype=torch.float16).dtype == torch.float16
q, tables = torch.ones(1, 2, 1, 2), torch.ones(2, 2, 1)
assert torch.equal(rope(q, None, *tables)[0], pointwise.rope(q, None, *tables)[0])
# An array still is one.
assert isinstance(silu(numpy.ones(3, "float32")), numpy.ndarray)
"""
    )


def test_dir_has_the_ops():
    for there in ("torch", "sys"):
        run(
            f"import {there}, pointwise; assert "
            "{'silu', 'rope', 'arrays', 'patch', 'load', 'override', '__version__'} <= set(dir(pointwise)), dir(pointwise)"
        )


def test_the_licences_are_where_tools_look():
    try:
        files = importlib.metadata.files("pointwise")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed")
    names = {file.name for file in files if ".dist-info" in str(file.parent)}
    assert {"LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY-NOTICES", "THIRD-PARTY-NOTICES-KERNELS"} <= names


def test_load_refuses(tmp_path):
    with pytest.raises(OSError):
        pointwise.load(str(tmp_path / "libnone.so"), "mine")
    with pytest.raises(ValueError, match="no free name"):
        pointwise.load(str(tmp_path / "libnone.so"), "pointwise")


def test_load_refuses_a_library_of_another_version(monkeypatch, tmp_path):
    class Exported:
        def __init__(self, text):
            self.text = text

        def __call__(self):
            return self.text

    library = types.SimpleNamespace(
        pointwise_torch_describe=Exported(b'{"ops": [{"name": "silu", "kind": "unary"}], "kernels": []}'),
        pointwise_torch_implement=Exported(None),
    )
    monkeypatch.setattr("ctypes.CDLL", lambda path: library)
    with pytest.raises(ValueError, match="another version of pointwise-torch"):
        pointwise.load(str(tmp_path / "libold.so"), "old")


def test_a_library_of_a_users_own(request, device):
    library = request.config.getoption("--library")
    if not library:
        pytest.skip("give --library")
    script = ROOT.parent / "examples" / "torch-op" / "test_ops.py"
    subprocess.run([sys.executable, script, library, device], check=True)
