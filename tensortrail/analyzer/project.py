"""The files around the one being judged, read only when a rule's question needs them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensortrail.analyzer.module import PythonModule

_RE_EXPORTS = 5
"""How many `from .x import y` in a row are followed to a definition."""


class Project:
    """Finds and reads other files of the same project by dotted module name.

    One Project lives as long as a check (or the editor's server); it keeps what it has read."""

    def __init__(self) -> None:
        self._modules: dict[str, PythonModule | None] = {}
        self._files: dict[tuple[Path, str], str] = {}

    def forget(self, path: str) -> None:
        """The file has changed."""
        self._modules.pop(path, None)

    def module_at(self, path: str) -> PythonModule | None:
        """The file read and indexed; None if it cannot be."""
        if path not in self._modules:
            from tensortrail.analyzer.module import PythonModule, Unreadable

            try:
                self._modules[path] = PythonModule(path, Path(path).read_bytes(), self)
            except (OSError, Unreadable):
                self._modules[path] = None
        return self._modules[path]

    def definition(self, asking: PythonModule, dotted: str) -> tuple[PythonModule, ast.AST] | None:
        """The file and the class or function a dotted name stands for, re-exports followed."""
        for _ in range(_RE_EXPORTS):
            found = self._file_of(asking, dotted)
            if found is None:
                return None
            path, rest = found
            module = self.module_at(path) if path != asking.path else asking
            if module is None:
                return None
            asking.needs.add(path)
            asking.needs.update(module.needs)
            node = module.definition_named(rest)
            if node is not None:
                return module, node
            imported = module.qualified_text(rest)
            if imported in (dotted, rest):
                return self._through_star(asking, module, rest)
            dotted, asking = imported, _Relay(module, asking)  # type: ignore[assignment]
        return None

    def _through_star(
        self, asking: PythonModule, module: PythonModule, rest: str
    ) -> tuple[PythonModule, ast.AST] | None:
        """`from x import *` in the file: x may define the name."""
        for star in module.star_imports:
            found = self._file_of(module, f"{star}.{rest}")
            if found is None or found[0] == module.path:
                continue
            other = self.module_at(found[0])
            node = other.definition_named(found[1]) if other is not None else None
            if other is not None and node is not None:
                asking.needs.add(found[0])
                return other, node
            if other is not None:
                imported = other.qualified_text(rest)
                if imported not in (f"{other.name}.{rest}", rest):
                    return self.definition(_Relay(other, asking), imported)  # type: ignore[arg-type]
        return None

    def _file_of(self, asking: PythonModule, dotted: str) -> tuple[str, str] | None:
        """The longest part of the name that is a file, and what is left of the name."""
        root = asking.root
        if root is None:
            return None
        parts = dotted.split(".")
        for length in range(len(parts) - 1, 0, -1):
            path = self._path(root, ".".join(parts[:length]))
            if path:
                return path, ".".join(parts[length:])
        return None

    def _path(self, root: Path, module: str) -> str:
        key = (root, module)
        if key not in self._files:
            base = root.joinpath(*module.split("."))
            candidates = (base / "__init__.py", base.with_name(base.name + ".py"))
            try:
                found = next((str(each) for each in candidates if each.is_file()), "")
            except (OSError, ValueError):
                found = ""
            self._files[key] = found
        return self._files[key]


class _Relay:
    """Asks on behalf of the first asker: what is read counts as its dependency."""

    def __init__(self, module: PythonModule, asker: PythonModule) -> None:
        self.path, self.root, self.needs = module.path, module.root, asker.needs
        self.definition_named, self.qualified_text = module.definition_named, module.qualified_text
