"""The Python files below the given paths, in a fixed order, gitignore honoured."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from itertools import islice
from typing import TYPE_CHECKING

from tensortrail.analyzer.reading.python_files import is_notebook, is_pointer
from tensortrail.files import repository, within

if TYPE_CHECKING:
    from tensortrail.analyzer.reading.gitignore import IgnoreFile

DEFAULT_EXCLUDES = frozenset(
    ".bzr .direnv .eggs .git .hg .ipynb_checkpoints .mypy_cache .nox .pants.d .pytest_cache "
    ".pytype .ruff_cache .svn .tensortrail .tensortrail_cache .tox .venv .vscode __pycache__ "
    "__pypackages__ _build buck-out build dist node_modules site-packages venv".split()
)
SUFFIXES = (".py", ".ipynb")
_DEEPEST = 100
"""Folders inside each other that are entered."""
_MOST_COUNTED = 10_000


class Found:
    def __init__(self) -> None:
        self.files: list[str] = []
        self.missing: list[str] = []
        self.problems: list[str] = []
        self.outside: list[str] = []
        """Links that lead out of the tree, which are not followed."""
        self.pointers: list[str] = []
        """Notebooks whose content Git LFS has not fetched."""
        self.left_out: list[tuple[str, str]] = []
        """Paths that were not taken, each with what left it out."""


def discover(
    paths: Sequence[str], exclude: Sequence[str] = (), respect_gitignore: bool = True
) -> Found:
    """Files named outright are taken whatever their names; folders are searched for Python and
    notebooks. Notebooks that are pointers of Git LFS are passed over."""
    found = Found()
    seen: set[str] = set()
    for path in paths:
        if os.path.isdir(path):
            walk = _Walk(path, exclude, respect_gitignore, found)
            new = list(walk.files(path, walk.ignores_above(path)))
        elif os.path.exists(path):
            new = [path]
        else:
            found.missing.append(path)
            continue
        for file in map(_plain, new):
            if file not in seen:
                seen.add(file)
                pointer = is_notebook(file) and is_pointer(file)
                (found.pointers if pointer else found.files).append(file)
    return found


def counted_by_reason(left_out: Sequence[tuple[str, str]]) -> Counter[str]:
    """How many Python files each reason left out; those in folders are counted now."""
    counts: Counter[str] = Counter()
    for path, reason in left_out:
        if os.path.isdir(path):
            walk = _Walk(path, (), False, Found())
            counts[reason] += sum(1 for _ in islice(walk.files(path, []), _MOST_COUNTED))
        else:
            counts[reason] += 1
    return +counts


def _plain(path: str) -> str:
    """ "./a.py" is "a.py" to everybody."""
    here = os.curdir + os.sep
    return path[len(here) :] if path.startswith(here) else path


class _Walk:
    def __init__(self, top: str, exclude: Sequence[str], respect: bool, found: Found) -> None:
        self._top = top
        self._exclude = exclude
        self._respect = respect
        self._found = found
        self._visited: set[tuple[int, int]] = set()
        self._folder = "", ""
        """The last one whose entries were asked about, as it was found, and its whole path."""
        self._tree = ""
        """Where links may lead; asked for at the first one."""

    def files(self, folder: str, ignores: list[IgnoreFile], depth: int = 0) -> Iterator[str]:
        if not self._first_visit(folder):
            return
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            self._problem(folder, f"cannot be listed: {error.strerror or error}")
            return
        if depth >= _DEEPEST:
            self._problem(folder, f"not entered: more than {_DEEPEST} folders deep")
            return
        if self._respect and any(entry.name == ".gitignore" for entry in entries):
            ignores = [*ignores, *self._ignores_in(folder)]
        for entry in entries:
            try:
                is_folder = entry.is_dir()
                is_file = not is_folder and entry.name.endswith(SUFFIXES) and entry.is_file()
            except OSError:
                continue
            if not (is_folder or is_file) or self._left_out(entry, is_folder, ignores):
                continue
            if entry.is_symlink() and self._leads_out(entry.path):
                self._found.outside.append(_plain(entry.path))
            elif is_folder:
                yield from self.files(entry.path, ignores, depth + 1)
            else:
                yield entry.path

    def ignores_above(self, folder: str) -> list[IgnoreFile]:
        """Those of the folders above, up to the root of the repository."""
        if not self._respect:
            return []
        here = above = os.path.abspath(folder)
        found: list[IgnoreFile] = []
        while True:
            if above != here:
                found = [*self._ignores_in(above), *found]
            if os.path.exists(os.path.join(above, ".git")):
                return [*self._ignores_of_repository(above), *found]
            parent = os.path.dirname(above)
            if parent == above:
                return []
            above = parent

    def _ignores_in(self, folder: str) -> list[IgnoreFile]:
        from tensortrail.analyzer.reading.gitignore import read_ignores

        base = os.path.abspath(folder)
        return read_ignores(os.path.join(folder, ".gitignore"), base, self._found.problems)

    def _ignores_of_repository(self, root: str) -> list[IgnoreFile]:
        path = os.path.join(root, ".git", "info", "exclude")
        if not os.path.isfile(path):
            return []
        from tensortrail.analyzer.reading.gitignore import read_ignores

        return read_ignores(path, root, self._found.problems)

    def _problem(self, path: str, what: str) -> None:
        self._found.problems.append(f"{path}: {what}")

    def _first_visit(self, folder: str) -> bool:
        """Links can lead back up: every folder is entered once."""
        try:
            status = os.stat(folder)
        except OSError as error:
            self._problem(folder, f"cannot be read: {error.strerror or error}")
            return False
        key = (status.st_dev, status.st_ino)
        if status.st_ino and key in self._visited:
            return False
        self._visited.add(key)
        return True

    def _leads_out(self, link: str) -> bool:
        if not self._tree:
            top = os.path.realpath(self._top)
            self._tree = repository(top) or top
        return not within(os.path.realpath(link), self._tree)

    def _left_out(
        self, entry: os.DirEntry[str], is_folder: bool, ignores: list[IgnoreFile]
    ) -> bool:
        reason = self._reason(entry, is_folder, ignores)
        if reason:
            self._found.left_out.append((entry.path, reason))
        return bool(reason)

    def _reason(self, entry: os.DirEntry[str], is_folder: bool, ignores: list[IgnoreFile]) -> str:
        if is_folder and entry.name in DEFAULT_EXCLUDES:
            return f"the folder name {entry.name!r}; give its path to have them checked"
        if "{{" in entry.name:
            return "a name with {{, as templates have"
        if self._exclude:
            relative = os.path.relpath(entry.path, self._top).replace(os.sep, "/")
            for pattern in self._exclude:
                if matches(relative, pattern):
                    return f"the setting exclude = {pattern!r}"
        if not ignores:
            return ""
        absolute = self._absolute(entry)
        reason = ""
        for file in ignores:
            ignored, line = file.says(absolute, is_folder)
            reason = reason if ignored is None else line * ignored
        return reason

    def _absolute(self, entry: os.DirEntry[str]) -> str:
        """Made of its folder, which is asked about for each entry in turn."""
        folder = entry.path[: len(entry.path) - len(entry.name)]
        if folder != self._folder[0] or not self._folder[1]:
            self._folder = folder, os.path.join(os.path.abspath(folder), "")
        return self._folder[1] + entry.name


def matches(relative: str, pattern: str) -> bool:
    """The pattern fits the path, its name, or a folder it lies in."""
    pattern = pattern.rstrip("/")
    parts = relative.split("/")
    heads = ["/".join(parts[: count + 1]) for count in range(len(parts))]
    return any(fnmatch(head, pattern) for head in heads) or any(
        fnmatch(part, pattern) for part in parts
    )
