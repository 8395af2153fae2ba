"""The snippets of the documentation run as they stand, each in a process of its own: some are for a program without torch."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/torch.md", "docs/compile.md", "python/README.md")


def snippets():
    for page in PAGES:
        parts = [part.split("```", 1)[0] for part in (ROOT / page).read_text().split("```python\n")[1:]]
        assert parts, page
        yield from (pytest.param(part, id=f"{page}-{k}") for k, part in enumerate(parts))


@pytest.mark.parametrize("snippet", list(snippets()))
def test_snippet(snippet):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", snippet], check=True, env=environment)
