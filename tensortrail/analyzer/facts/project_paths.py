"""Which file of a project a dotted name leads to."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.project_top import inside, known_top


class ProjectPaths:
    """Looks in the folders around the file that asks, and remembers what was there."""

    def __init__(self) -> None:
        self._files: dict[tuple[str, str], str] = {}
        self._first_parts: dict[tuple[str, str], bool] = {}
        self._tops: dict[tuple[str, str], str | None] = {}
        self._files_of: dict[tuple[str | None, str], tuple[str, str] | None] = {}
        self._paths: dict[str, Sequence[str]] = {}

    def file_of(self, asking: ProjectFile, dotted: str) -> tuple[str, str] | None:
        """The longest part of the name that is a file, and what is left of the name."""
        found = self._file_below(asking.root, dotted)
        top = self._top_that_is_a_package(asking) if found is None else None
        return self._file_below(top, dotted) if top is not None else found

    def _file_below(self, root: str | None, dotted: str) -> tuple[str, str] | None:
        key = (root, dotted)
        if key not in self._files_of:
            self._files_of[key] = self._looked_up(*key)
        return self._files_of[key]

    def _top_that_is_a_package(self, asking: ProjectFile) -> str | None:
        """The top of the project, if it has an `__init__.py`: imports begin in it all the same."""
        first, below, _ = asking.name.partition(".")
        if not below or asking.root is None:
            return None
        key = (asking.root, first)
        if key not in self._tops:
            folder = inside(*key)
            self._tops[key] = folder if known_top(folder) == folder else None
        return self._tops[key]

    def _looked_up(self, root: str | None, dotted: str) -> tuple[str, str] | None:
        parts = dotted.split(".")
        folders = self._on_the_path_of(root) if root is not None else ()
        folder = next((each for each in folders if self._may_hold(each, parts[0])), None)
        if folder is None:
            return None
        for length in range(len(parts) - 1, 0, -1):
            path = self._path(folder, ".".join(parts[:length]))
            if path:
                return path, ".".join(parts[length:])
        return None

    def _on_the_path_of(self, root: str) -> Sequence[str]:
        """The folder itself, and for scripts the top of the project, where its packages lie."""
        if root not in self._paths:
            top = known_top(root)
            around = [top, inside(top, "src")] if top is not None else []
            self._paths[root] = [root, *(each for each in around if each != root)]
        return self._paths[root]

    def _may_hold(self, root: str, first: str) -> bool:
        """The folder has a file or folder of that name: most names are of other packages."""
        key = (root, first)
        if key not in self._first_parts:
            path = os.path.join(root, first)
            self._first_parts[key] = os.path.isdir(path) or os.path.isfile(f"{path}.py")
        return self._first_parts[key]

    def _path(self, root: str, module: str) -> str:
        key = (root, module)
        if key not in self._files:
            path = inside(root, *module.split("."))
            candidates = (os.path.join(path, "__init__.py"), f"{path}.py")
            found = next((each for each in candidates if os.path.isfile(each)), "")
            self._files[key] = found
        return self._files[key]
