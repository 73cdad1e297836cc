"""Who calls a function from the other files of its project, and what they pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import islice
from typing import cast

from tensortrail.analyzer.facts.project_file import Place, ProjectFile
from tensortrail.analyzer.facts.project_top import folder_of_project
from tensortrail.analyzer.places.functions.arguments import argument_of
from tensortrail.rules.places import UNKNOWN_HELD
from tensortrail.rules.view import Caller, FunctionNode, Module

_MOST_FILES = 8
"""That call something of the same name and are looked at."""
_MOST_CALLS = 12
"""Calls whose arguments are inferred."""
_DEEPEST = 3
"""Functions that are being run when the callers of one are asked for."""


def callers_elsewhere(file: ProjectFile, function: FunctionNode, parameter: str) -> list[Caller]:
    folder = folder_of_project(file)
    if folder is None or file.project.depth > _DEEPEST or function.name.startswith("__"):
        return []
    cls = _class_name(file, function)
    owner = cls or file.name.rpartition(".")[2]
    paths = file.project.customs.files_calling(folder, function.name, owner, bool(cls))
    others = [each for each in paths if each != file.path]
    del others[_MOST_FILES:]
    file.project.rest_on_all_of(file, others)
    return list(islice(_callers(file, others, function, parameter), _MOST_CALLS))


def _callers(
    file: ProjectFile, paths: list[str], function: FunctionNode, parameter: str
) -> Iterator[Caller]:
    for path in paths:
        other = file.project.module_at(path)
        for call in other.calls(function.name) if other is not None else ():
            given = argument_of(file.tree, function, call, parameter)
            if other is not None and given is not None and _runs(other, call, file, function):
                view = cast("Module", other)
                caller = other.tree.outermost_function_of(call) or view.top
                held = other.places_of_file.places(caller).seen.get(given, UNKNOWN_HELD)
                file.needs.update(other.needs)
                yield Caller(view, caller, call, held)


def _runs(other: ProjectFile, call: ast.Call, file: ProjectFile, function: FunctionNode) -> bool:
    """The call runs this function. The file may be open as it is on the disk, too: nodes differ."""
    return other.places_of_file.called_by(call) == Place(file.path, file.tree.qualname_of(function))


def _class_name(file: ProjectFile, function: FunctionNode) -> str:
    above = file.tree.parent(function)
    return above.name if isinstance(above, ast.ClassDef) else ""
