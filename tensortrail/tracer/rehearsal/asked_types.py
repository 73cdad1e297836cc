"""`type(x) is type(y)` in files of a project holds for simulated tensors as on a GPU.

They are of subclasses of Tensor, and nothing but the builtin can say so: files that compare types
get a `type` of their own while a rehearsal is on."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType
from typing import Any

from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

NAME = "type"
OURS = Path(__file__).parents[2]
"""What we compare ourselves are the simulated tensors."""


def class_of(value: Any) -> Any:
    kind = type(value)
    return value.__class__ if issubclass(kind, SimTensor) else kind


class AskedTypes:
    """Modules below a folder, as far as they are imported when `answer` is called."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: set[str] = set()
        self._replaced = Replacements()

    def answer(self, modules: dict[str, ModuleType]) -> None:
        for name, module in list(modules.items()):
            file = getattr(module, "__file__", None)
            if name in self._seen or not file or not self._is_here(Path(file)):
                continue
            self._seen.add(name)
            if NAME not in vars(module) and compares_types(_text(Path(file))):
                self._replaced.put(module, NAME, class_of)

    def end(self) -> None:
        self._replaced.undo()

    def _is_here(self, file: Path) -> bool:
        here = file.suffix == ".py" and file.is_relative_to(self._root)
        return here and "site-packages" not in file.parts and not file.is_relative_to(OURS)


def compares_types(source: str) -> bool:
    """Whether it compares `type(x)`, and has no other use for the name."""
    if "type(" not in source:
        return False
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return False
    nodes = list(ast.walk(tree))
    names = sum(_is_name(each) for each in nodes)
    calls = [each for each in nodes if _asks(each)]
    compared = any(
        any(_asks(side) for side in (each.left, *each.comparators))
        for each in nodes
        if isinstance(each, ast.Compare)
    )
    return compared and names == len(calls)


def _is_name(node: ast.AST) -> bool:
    if isinstance(node, ast.arg):
        return node.arg == NAME
    return isinstance(node, ast.Name) and node.id == NAME


def _asks(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not _is_name(node.func):
        return False
    return len(node.args) == 1 and not node.keywords


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
