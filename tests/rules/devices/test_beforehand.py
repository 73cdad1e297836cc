"""Code that prepares data or exports a model, before anything is on a GPU."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tensortrail.analyzer.judging.module import PythonModule, open_project
from tensortrail.rules.devices.shared.written_for.beforehand import is_beforehand

PLAIN_PADDED = """
import torch

def padded(ids: torch.Tensor, n):
    return torch.cat([ids, torch.zeros(n, dtype=ids.dtype)])
"""


@pytest.mark.parametrize(
    ("path", "more", "expected"),
    [
        ("package/data/rows.py", "", True),
        ("package/data/rows.py", "    print(ids.device)\n", False),
        ("package/datasets.py", "", False),
    ],
)
def test_a_folder_for_data(path: str, more: str, expected: bool) -> None:
    source = PLAIN_PADDED.replace("    return", f"{more}    return")
    module = PythonModule(path, source.encode(), open_project())
    assert is_beforehand(module, module.nodes(ast.FunctionDef)[0]) is expected


@pytest.mark.parametrize(("folder", "expected"), [("export", True), ("layers", False)])
def test_a_package_that_exports(tmp_path: Path, folder: str, expected: bool) -> None:
    path = tmp_path / "net" / folder / "rows.py"
    path.parent.mkdir(parents=True)
    for each in (path.parent, path.parent.parent):
        (each / "__init__.py").write_text("")
    module = PythonModule(str(path), PLAIN_PADDED.encode(), open_project())
    assert is_beforehand(module, module.nodes(ast.FunctionDef)[0]) is expected
