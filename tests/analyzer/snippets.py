"""Small programs to ask the semantic core about."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping
from pathlib import Path

from tensortrail.analyzer.judging.module import PythonModule, open_project


def module_of(source: str, path: str = "example.py") -> PythonModule:
    return PythonModule(path, textwrap.dedent(source).encode(), open_project())


def package(folder: Path, files: Mapping[str, str]) -> PythonModule:
    """Write the files and give the module of the first one."""
    for name, source in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(textwrap.dedent(source), encoding="utf-8")
    first = folder / next(iter(files))
    return PythonModule(str(first), first.read_bytes(), open_project())


def find(module: PythonModule, text: str, nth: int = -1) -> ast.expr:
    """The expression with exactly this source; the last one unless told otherwise."""
    found = [
        node
        for node in module.nodes(ast.expr)
        if module.text(node) == text and not isinstance(getattr(node, "ctx", None), ast.Store)
    ]
    found.sort(key=lambda node: (node.lineno, node.col_offset))
    assert found, f"{text!r} is not in the snippet"
    return found[nth]
