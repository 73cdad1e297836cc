"""Dotted names of a file, imports resolved."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable

_UNTIDY = re.compile(r"//|(?:^|/)\.(?:/|$)|/$")
_CANONICAL = {
    "torch.nn.parameter.Parameter": "torch.nn.Parameter",
    "torch.nn.parameter.Buffer": "torch.nn.Buffer",
    "torch.nn.modules.module.Module": "torch.nn.Module",
    "torch.nn.modules.Module": "torch.nn.Module",
    "torch._tensor.Tensor": "torch.Tensor",
    "torch.storage.UntypedStorage": "torch.UntypedStorage",
}
_NAMESPACES = frozenset(
    f"torch.{each}"
    for each in "ops ops.aten ops.prims nn nn.functional nn.init nn.utils nn.parallel optim cuda "
    "distributed autograd linalg utils utils.data".split()
)
"""Modules of torch that a file may give a short name, and what `torch.ops` has as such."""


def tidy(path: str) -> str:
    """The path as `pathlib` writes it, whose import takes as long as reading a small package."""
    if os.sep == "/" and path and not _UNTIDY.search(path):
        return path
    from pathlib import Path

    return str(Path(path))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def module_name(path: str, packages: dict[str, bool]) -> tuple[str, str | None]:
    """The dotted name a file would be imported by, and the folder that lies on the path.

    Packages are followed upwards as long as they have an `__init__.py`. What is found out of a
    folder is kept in `packages`."""
    folder, file = os.path.split(tidy(path))
    stem = os.path.splitext(file)[0]
    parts = [] if stem == "__init__" else [stem]
    try:
        while os.path.basename(folder) and _is_package(folder, packages):
            parts.insert(0, os.path.basename(folder))
            folder = os.path.dirname(folder)
    except OSError:
        return ".".join(parts), None
    root = folder or os.curdir
    return ".".join(parts), _roots.setdefault(root, root)


def _is_package(folder: str, packages: dict[str, bool]) -> bool:
    if folder not in packages:
        try:
            os.stat(os.path.join(folder, "__init__.py"))
            packages[folder] = True
        except (FileNotFoundError, NotADirectoryError, ValueError):
            packages[folder] = False
    return packages[folder]


_roots: dict[str, str] = {}
"""The same object for the same folder: it is compared for each name that is looked up."""


class Names:
    def __init__(self, module: str, is_package: bool, nodes: Iterable[ast.AST]) -> None:
        self._module = module
        self._package = module if is_package else module.rpartition(".")[0]
        self._imported: dict[str, str] = {}
        self._lines: dict[str, int] = {}
        self._again: dict[str, list[tuple[int, str]]] = {}
        """Names that are imported several times, from different places, with the lines."""
        self._defined: set[str] = set()
        self.stars: list[str] = []
        """Modules everything is imported from: `from x import *`."""
        for node in nodes:
            if isinstance(node, ast.Import):
                self._add_import(node)
            elif isinstance(node, ast.ImportFrom):
                self._add_import_from(node)

    def define(self, names: Iterable[str]) -> None:
        """Names of classes and functions at the top of the file."""
        self._defined.update(names)

    def follow(self, statements: Iterable[ast.stmt]) -> None:
        """`aten = torch.ops.aten` at the top of the file, as if it were imported so."""
        for each in statements:
            if not isinstance(each, ast.Assign) or len(each.targets) != 1:
                continue
            target, source = each.targets[0], each.value
            if isinstance(target, ast.Name) and isinstance(source, ast.Attribute):
                whole = self.resolve(dotted_name(source))
                if whole in _NAMESPACES:
                    self._imported.setdefault(target.id, whole)

    @property
    def imported(self) -> dict[str, str]:
        return self._imported

    @property
    def defined(self) -> set[str]:
        return self._defined

    def resolve(self, dotted: str) -> str:
        """The dotted name with its first part replaced by what it is imported from."""
        first, dot, rest = dotted.partition(".")
        if first in self._imported:
            dotted = self._imported[first] + dot + rest
        elif first in self._defined and self._module:
            dotted = f"{self._module}.{dotted}"
        return _CANONICAL.get(dotted, dotted)

    def qualified(self, node: ast.AST) -> str:
        dotted = dotted_name(node)
        if not dotted:
            return ""
        first, dot, rest = dotted.partition(".")
        if first in self._again:
            return _CANONICAL.get(name := self._nearest(first, node) + dot + rest, name)
        return self.resolve(dotted)

    def _nearest(self, name: str, node: ast.AST) -> str:
        """What the last import before the node binds it to."""
        line = getattr(node, "lineno", 0)
        before = [(at, source) for at, source in self._again[name] if at <= line]
        return max(before)[1] if before else self._imported[name]

    def _bind(self, node: ast.Import | ast.ImportFrom, name: str, source: str) -> None:
        if self._imported.setdefault(name, source) != source:
            self._again.setdefault(name, [(self._lines[name], self._imported[name])])
        if name in self._again:
            self._again[name].append((node.lineno, source))
        self._imported[name] = source
        self._lines[name] = min(node.lineno, self._lines.get(name, node.lineno))

    def _add_import(self, node: ast.Import) -> None:
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            self._bind(node, bound, alias.name if alias.asname else bound)

    def _add_import_from(self, node: ast.ImportFrom) -> None:
        base = node.module or ""
        if node.level:
            package = self._package.split(".") if self._package else []
            kept = package[: len(package) - node.level + 1]
            base = ".".join([*kept, base] if base else kept)
        for alias in node.names:
            if alias.name == "*":
                self.stars.append(base)
            else:
                name = f"{base}.{alias.name}" if base else alias.name
                self._bind(node, alias.asname or alias.name, name)


def dotted_name(node: ast.AST) -> str:
    """ "a.b.c" of a Name or Attribute chain, of a call its function's; "" for anything else."""
    parts: list[str] = []
    if isinstance(node, ast.Call):
        node = node.func
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])
