"""The folder that a project has its top in, by what lies there."""

from __future__ import annotations

import os
from collections.abc import Iterator

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.texts.texts_below import APART

_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
"""What lies at the top of a project."""
_LIKELY = ("LICENSE", "LICENSE.txt", "LICENSE.md", "requirements.txt")
"""What does too, but also beside code that was taken from elsewhere."""
_ABOVE_A_PACKAGE = 6
"""Folders above a package where its top is looked for."""
_ABOVE_A_FILE = 4
"""Folders above a file where the top is looked for."""


def and_above(folder: str, most: int) -> Iterator[str]:
    """The folder and those above it, at most so many."""
    yield folder
    for _ in range(most):
        above = os.path.dirname(folder) or os.curdir
        if above == folder:
            return
        folder = above
        yield folder


def inside(folder: str, *names: str) -> str:
    """What lies there, written like the paths of a listing: without the folder one is in."""
    return os.path.join(*([folder] if folder != os.curdir else []), *names)


def top_of_project(folder: str) -> str:
    """The nearest folder that looks like the top of a project; else the one that is given."""
    marks = (*_MARKS, "requirements.txt", "LICENSE")
    return next((each for each in and_above(folder, _ABOVE_A_FILE) if _has(each, marks)), folder)


def known_top(package: str) -> str | None:
    """The top where it is marked; None in tests and installed packages, and where nothing tells.
    What only looks like one counts above the package, if no mark is found."""
    above: list[str] = []
    for folder in and_above(package, _ABOVE_A_PACKAGE):
        if os.path.basename(folder) in APART:
            return None
        if _has(folder, _MARKS):
            return folder
        above.append(folder)
    return next((each for each in above[1:] if _has(each, _LIKELY)), None)


def folder_of_project(file: ProjectFile) -> str | None:
    """The folder of the package; without one that of the project around, or of the scripts."""
    package, below, _ = file.name.partition(".")
    if below or file.root is None:
        return inside(file.root, package) if file.root is not None else None
    return known_top(file.root) or file.root


def _has(folder: str, names: tuple[str, ...]) -> bool:
    return any(os.path.exists(os.path.join(folder, each)) for each in names)
