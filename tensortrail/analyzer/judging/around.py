"""The folder around a file, as questions about its project need it, and what such an answer rests
on."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.project_top import inside, top_of_project
from tensortrail.analyzer.syntax.names import tidy


def package_of(file: ProjectFile) -> str | None:
    """The folder of the package that the file is in; without one the file is all there is."""
    package, below, _ = file.name.partition(".")
    return _folder(file.root, package) if below and file.root is not None else None


@lru_cache
def _folder(root: str, package: str) -> str:
    """The same object each time: what is kept is kept by it."""
    return inside(root, package)


def folder_of(file: ProjectFile) -> str:
    return os.path.dirname(tidy(file.path)) or os.curdir


def around(file: ProjectFile) -> str | None:
    """The package; of a file that is in none, what looks like the project."""
    folder = package_of(file)
    if folder is None and os.path.isfile(file.path):
        folder = top_of_project(folder_of(file))
    return folder


def around_program(file: ProjectFile) -> str:
    """What looks like the project; where nothing marks its top, the package if that is wider."""
    top, package = top_of_project(folder_of(file)), package_of(file)
    if package is None or not _is_within(top, package):
        return top
    return package


def _is_within(folder: str, other: str) -> bool:
    inner, outer = (os.path.join(os.path.abspath(each), "") for each in (folder, other))
    return inner.startswith(outer)


def is_so_in(
    file: ProjectFile, path: str | None, question: Callable[..., object], *words: str
) -> bool:
    """Whether there is such a file. What is found here rests on it then; if there is none, on
    the absence of the words."""
    if path is None:
        file.absent.update(words)
    if path is None or path == file.path:
        return path is not None
    if path.endswith(".py"):
        file.project.rest_on(file, path, lambda: True, question, "", *words)
    else:
        file.project.rest_on_all_of(file, [path])
    return True
