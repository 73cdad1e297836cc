"""Whether what is run of a project comes to a place of a file."""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence

from tensortrail.analyzer.facts import texts_asked
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.texts.mentions import is_named
from tensortrail.analyzer.facts.texts.reach import Reach
from tensortrail.analyzer.facts.texts.reach_search import Answer
from tensortrail.analyzer.judging.around import is_so_in
from tensortrail.analyzer.judging.users_in_file import coming_to, may_be_handed_out
from tensortrail.rules.view import FunctionNode

_NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def is_reached(file: ProjectFile, folder: str, node: ast.AST) -> bool:
    """The folder is of the package, or the project around a script."""
    above = [node, *file.tree.ancestors(node)]
    around = [each for each in above if isinstance(each, _NAMED)]
    if not around or may_be_handed_out(file, around[-1]):
        return True
    if any(isinstance(each, ast.arguments) for each in above):
        return True  # a default, which the import works out
    reach = file.project.uses.reach(folder)
    return reach is None or (
        _is_outer_reached(file, reach, around[-1])
        and _is_method_reached(file, folder, reach, around)
    )


def _is_outer_reached(file: ProjectFile, reach: Reach, outer: ast.ClassDef | FunctionNode) -> bool:
    users = coming_to(file, outer)
    return users is None or any(_holds(file, reach.of_name(file.path, each)) for each in users)


def _is_method_reached(
    file: ProjectFile,
    folder: str,
    reach: Reach,
    around: Sequence[ast.ClassDef | FunctionNode],
) -> bool:
    if len(around) < 2:
        return True
    cls, method = around[-1], around[-2]
    if not isinstance(cls, ast.ClassDef) or not isinstance(method, _FUNCTIONS):
        return True
    if may_be_handed_out(file, method) or cls.keywords:
        return True
    if not method.name.startswith("_") and _is_handed_out(file, folder, reach, cls.name):
        return True
    bases = ", ".join(map(ast.unparse, cls.bases)).encode()
    return _holds(file, reach.of_method(file.path, method.name, cls.name, bases))


def _is_handed_out(file: ProjectFile, folder: str, reach: Reach, name: str) -> bool:
    """By a library, in its package or in one right below: users call what they like."""
    if reach.library(file.path) is None:
        return False
    for path, text in reach.texts.items():
        is_first = path.endswith("__init__.py") and folder in _two_above(path)
        if is_first and is_named(text, name):
            return is_so_in(file, path, texts_asked.has_name, name)
    file.absent.add(name)
    return False


def _two_above(path: str) -> tuple[str, str]:
    folder = os.path.dirname(path)
    return folder or ".", os.path.dirname(folder) or "."


def _holds(file: ProjectFile, answer: Answer) -> bool:
    """What is found here rests on it."""
    file.absent.update(answer.words)
    file.project.rest_on_all_of(file, answer.files - {file.path})
    return answer.holds
