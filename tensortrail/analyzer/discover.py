"""The Python files below the given paths, in a fixed order, gitignore honoured."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Protocol

DEFAULT_EXCLUDES = frozenset(
    ".bzr .direnv .eggs .git .hg .ipynb_checkpoints .mypy_cache .nox .pants.d .pytest_cache "
    ".pytype .ruff_cache .svn .tensortrail .tensortrail_cache .tox .venv .vscode __pycache__ "
    "__pypackages__ _build buck-out build dist node_modules site-packages venv".split()
)


class _Spec(Protocol):
    def check_file(self, file: str) -> object: ...


@dataclass
class Found:
    files: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def discover(
    paths: Sequence[str], exclude: Sequence[str] = (), respect_gitignore: bool = True
) -> Found:
    """Files named outright are always taken; folders are searched for `*.py`."""
    found = Found()
    seen: set[str] = set()
    for path in paths:
        if os.path.isdir(path):
            walk = _Walk(path, exclude, respect_gitignore, found.problems)
            new = list(walk.files(path, walk.specs_above(path)))
        elif os.path.exists(path):
            new = [path]
        else:
            found.missing.append(path)
            continue
        for file in map(_plain, new):
            if file not in seen:
                seen.add(file)
                found.files.append(file)
    return found


def _plain(path: str) -> str:
    """ "./a.py" is "a.py" to everybody."""
    here = os.curdir + os.sep
    return path[len(here) :] if path.startswith(here) else path


class _Walk:
    def __init__(
        self, top: str, exclude: Sequence[str], respect_gitignore: bool, problems: list[str]
    ) -> None:
        self._top = top
        self._exclude = exclude
        self._respect = respect_gitignore
        self._problems = problems
        self._visited: set[tuple[int, int]] = set()

    def files(self, folder: str, specs: list[tuple[str, _Spec]]) -> Iterator[str]:
        if not self._first_visit(folder):
            return
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            self._problems.append(f"{folder}: cannot be listed: {error.strerror or error}")
            return
        if self._respect and any(entry.name == ".gitignore" for entry in entries):
            specs = [*specs, *_spec_of(folder)]
        for entry in entries:
            try:
                is_folder = entry.is_dir()
            except OSError:
                continue
            if self._left_out(entry.path, entry.name, is_folder, specs):
                continue
            if is_folder:
                yield from self.files(entry.path, specs)
            elif entry.name.endswith(".py") and entry.is_file():
                yield entry.path

    def specs_above(self, folder: str) -> list[tuple[str, _Spec]]:
        """The ignore files between the root of the repository and `folder`."""
        if not self._respect:
            return []
        found: list[tuple[str, _Spec]] = []
        here = os.path.abspath(folder)
        above = here
        while True:
            if above != here:
                found = [*_spec_of(above), *found]
            if os.path.exists(os.path.join(above, ".git")):
                return [*_exclude_of(above), *found]
            parent = os.path.dirname(above)
            if parent == above:
                return []
            above = parent

    def _first_visit(self, folder: str) -> bool:
        """Links can lead back up: every folder is entered once."""
        try:
            status = os.stat(folder)
        except OSError as error:
            self._problems.append(f"{folder}: cannot be read: {error.strerror or error}")
            return False
        key = (status.st_dev, status.st_ino)
        if status.st_ino and key in self._visited:
            return False
        self._visited.add(key)
        return True

    def _left_out(
        self, path: str, name: str, is_folder: bool, specs: list[tuple[str, _Spec]]
    ) -> bool:
        if is_folder and name in DEFAULT_EXCLUDES:
            return True
        if self._exclude:
            relative = os.path.relpath(path, self._top).replace(os.sep, "/")
            if any(matches(relative, pattern) for pattern in self._exclude):
                return True
        if not specs or not (is_folder or name.endswith(".py")):
            return False
        absolute = os.path.abspath(path)
        ignored = False
        for base, spec in specs:
            relative = os.path.relpath(absolute, base).replace(os.sep, "/")
            include = getattr(spec.check_file(relative + "/" * is_folder), "include", None)
            ignored = ignored if include is None else bool(include)
        return ignored


def matches(relative: str, pattern: str) -> bool:
    """The pattern fits the path, its name, or a folder it lies in."""
    pattern = pattern.rstrip("/")
    parts = relative.split("/")
    heads = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    return any(fnmatch(head, pattern) for head in heads) or any(
        fnmatch(part, pattern) for part in parts
    )


def _spec_of(folder: str) -> list[tuple[str, _Spec]]:
    return _read_spec(os.path.join(folder, ".gitignore"), os.path.abspath(folder))


def _exclude_of(root: str) -> list[tuple[str, _Spec]]:
    return _read_spec(os.path.join(root, ".git", "info", "exclude"), root)


def _read_spec(file: str, base: str) -> list[tuple[str, _Spec]]:
    try:
        with open(file, encoding="utf-8", errors="replace") as handle:
            lines = handle.read().splitlines()
    except OSError:
        return []
    if not any(line.strip() and not line.startswith("#") for line in lines):
        return []
    from pathspec import GitIgnoreSpec

    return [(base, GitIgnoreSpec.from_lines(lines))]
