"""What rules ask a file about whether its code is used, and by whom."""

from __future__ import annotations

import ast
import os
from functools import cached_property
from typing import cast

from tensortrail.analyzer.facts import texts_asked
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.project_top import known_top
from tensortrail.analyzer.facts.texts.project_texts import MAIN
from tensortrail.analyzer.facts.texts.reach import Reach
from tensortrail.analyzer.judging.around import folder_of, is_so_in, package_of
from tensortrail.analyzer.judging.reached import is_reached
from tensortrail.analyzer.judging.self_tests import is_self_test
from tensortrail.analyzer.judging.switched_off import SwitchedOff
from tensortrail.analyzer.syntax.names import is_private

_NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class AsksForUses:
    """The part of a `Module` that answers whether anything comes to a piece of code."""

    def has_programs(self) -> bool:
        file = cast("ProjectFile", self)
        reach = self._reach()
        if reach is None:
            return False
        return is_so_in(file, reach.program, texts_asked.is_program, MAIN)

    def is_installed(self) -> bool:
        file = cast("ProjectFile", self)
        folder, reach = _around(file), self._reach()
        if folder is None or reach is None or known_top(folder) is None:
            return True  # where its top is, and what lies there, is not known
        library = reach.library(file.path)
        if library is not None:
            file.project.rest_on_all_of(file, [library])
        return library is not None

    def _reach(self) -> Reach | None:
        file = cast("ProjectFile", self)
        folder = _around(file)
        return file.project.uses.reach(folder) if folder is not None else None

    def is_used(self, node: ast.AST) -> bool:
        return self._is_named(node) and self._may_run(node)

    def is_for_users(self, node: ast.AST) -> bool:
        file, reach = cast("ProjectFile", self), self._reach()
        library = reach.library(file.path) if reach is not None else None
        if library is None:
            return False
        file.project.rest_on_all_of(file, [library])
        return (self._is_public(node) or self._is_named(node)) and self._may_run(node)

    def _is_public(self, node: ast.AST) -> bool:
        file = cast("ProjectFile", self)
        around = (each for each in (node, *file.tree.ancestors(node)) if isinstance(each, _NAMED))
        return not any(map(is_private, (*file.name.split("."), *(each.name for each in around))))

    @cached_property
    def _switched_off(self) -> SwitchedOff:
        return SwitchedOff(cast("ProjectFile", self))

    def _is_named(self, node: ast.AST) -> bool:
        file = cast("ProjectFile", self)
        folder = package_of(file) or _project_of_script(file)
        return folder is None or is_reached(file, folder, node)

    def _may_run(self, node: ast.AST) -> bool:
        """If something comes to the function that the node stands in."""
        if self._switched_off.holds(node):
            return False
        return not is_self_test(cast("ProjectFile", self), node)


def _around(file: ProjectFile) -> str | None:
    return package_of(file) or _project_of_script(file)


def _project_of_script(file: ProjectFile) -> str | None:
    """The top of the project that a file is in which is in no package."""
    return known_top(folder_of(file)) if os.path.isfile(file.path) else None
