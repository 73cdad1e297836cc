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
_FEW_FILES = 2
"""The same, where a call is asked only for what it writes."""
_MOST_CALLS = 12
"""Calls whose arguments are inferred."""
_DEEPEST = 3
"""Functions that are being run when the callers of one are asked for."""


def callers_elsewhere(file: ProjectFile, function: FunctionNode, parameter: str) -> list[Caller]:
    if function.name.startswith("__"):
        return []
    return list(islice(_callers(file, function, parameter), _MOST_CALLS))


def given_elsewhere(
    file: ProjectFile, function: FunctionNode, parameter: str
) -> list[tuple[Module, ast.expr]]:
    """What these calls pass for the parameter, or the calls that make an object of the class whose
    constructor takes it; nothing is inferred of it."""
    found: list[tuple[Module, ast.expr]] = []
    for other, _, given in islice(_calls(file, function, parameter, _FEW_FILES), _MOST_CALLS):
        other.value_of(given)
        file.needs.update(other.needs)
        found.append((cast("Module", other), given))
    return found


def _callers(file: ProjectFile, function: FunctionNode, parameter: str) -> Iterator[Caller]:
    for other, call, given in _calls(file, function, parameter):
        view = cast("Module", other)
        caller = other.tree.outermost_function_of(call) or view.top
        held = other.places_of_file.places(caller).seen.get(given, UNKNOWN_HELD)
        file.needs.update(other.needs)
        yield Caller(view, caller, call, held)


def _calls(
    file: ProjectFile, function: FunctionNode, parameter: str, most: int = _MOST_FILES
) -> Iterator[tuple[ProjectFile, ast.Call, ast.expr]]:
    """In other files, of those that pass it."""
    cls = _class_name(file, function)
    sets_up = function.name == "__init__"
    name = cls if sets_up else function.name
    for other in _files_calling(file, name, cls if cls and not sets_up else "", most):
        for call in other.calls(name):
            given = argument_of(file.tree, function, call, parameter)
            if given is not None and _runs(other, call, file, function):
                yield other, call, given


def _files_calling(file: ProjectFile, name: str, cls: str, most: int) -> Iterator[ProjectFile]:
    folder = folder_of_project(file)
    if folder is None or file.project.depth > _DEEPEST or not name or name.startswith("__"):
        return
    owner = cls or file.name.rpartition(".")[2]
    paths = file.project.customs.files_calling(folder, name, owner, bool(cls))
    others = [each for each in paths if each != file.path]
    del others[most:]
    file.project.rest_on_all_of(file, others)
    found = (file.project.module_at(path) for path in others)
    yield from (each for each in found if each is not None)


def _runs(other: ProjectFile, call: ast.Call, file: ProjectFile, function: FunctionNode) -> bool:
    """The call runs this function. The file may be open as it is on the disk, too: nodes differ."""
    name = file.tree.qualname_of(function)
    if function.name == "__init__":
        return other.places_of_file.made_by(call) == Place(file.path, name.rpartition(".")[0])
    return other.places_of_file.called_by(call) == Place(file.path, name)


def _class_name(file: ProjectFile, function: FunctionNode) -> str:
    above = file.tree.parent(function)
    return above.name if isinstance(above, ast.ClassDef) else ""
