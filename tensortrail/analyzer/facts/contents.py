"""The names that a file defines and imports, as other files know them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tensortrail.analyzer.facts.project_file import Kinds, ProjectFile
from tensortrail.analyzer.syntax.names import Names
from tensortrail.analyzer.syntax.tree import Tree


class Contents:
    """The names that a file defines and imports."""

    def __init__(self, names: Names, module: str, kinds: Mapping[str, str]) -> None:
        self._names, self._module, self._kinds = names, module, kinds

    @classmethod
    def of(cls, file: ProjectFile) -> Contents:
        return cls(file.names, file.name, file.tree.once(_kinds_defined, file.tree.root))

    @classmethod
    def told(cls, module: str, data: Sequence[Any]) -> Contents:
        """Raises an exception of some kind for what `data` does not give."""
        kinds, imported, defined, stars = data
        names = Names(module, False, ())
        names.imported.update(imported)
        names.define(defined)
        names.stars += stars
        return cls(names, module, kinds)

    @property
    def data(self) -> Sequence[Any]:
        names = self._names
        return [self._kinds, names.imported, sorted(names.defined), names.stars]

    def defines(self, name: str) -> bool:
        return name in self._kinds

    def named(self, dotted: str, kinds: Kinds) -> str:
        """The name in the file of what others know by a dotted name, if it is of this kind."""
        local = dotted.removeprefix(f"{self._module}.") if self._module else dotted
        kind: type[ast.AST] = getattr(ast, self._kinds.get(local, "AST"))
        return local if issubclass(kind, kinds) else ""

    def elsewhere(self, name: str) -> Iterator[str]:
        """What the name may stand for, if it is imported."""
        imported = self._names.resolve(name)
        if imported not in (name, f"{self._module}.{name}"):
            yield imported
        for star in self._names.stars:
            yield f"{star}.{name}"


def contents(file: ProjectFile, root: ast.AST) -> Sequence[Any]:
    """What is kept of the names of a file."""
    return Contents.of(file).data


def _kinds_defined(tree: Tree, root: ast.AST) -> dict[str, str]:
    """Without the nodes, which would keep the tree."""
    return {name: type(node).__name__ for name, node in tree.definitions.items()}
