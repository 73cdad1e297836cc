"""What rules ask a file about the calls of other files."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import TypeAlias, cast

from tensortrail.analyzer.facts import texts_asked
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.project_top import folder_of_project
from tensortrail.analyzer.facts.texts.customs import gives_value, makes_property
from tensortrail.analyzer.facts.texts.namesakes import namesakes_in
from tensortrail.analyzer.facts.texts.passed_on import passed_in
from tensortrail.analyzer.facts.texts.written_calls import called_in
from tensortrail.analyzer.judging.around import is_so_in, package_of
from tensortrail.analyzer.syntax.guarded_statements import as_key
from tensortrail.analyzer.values import signatures
from tensortrail.rules.project_facts import GuardedStatement, Namesake, ProjectCall
from tensortrail.rules.view import FunctionNode

_Found: TypeAlias = ProjectCall | Namesake | GuardedStatement


class AsksForProjectCalls:
    """The part of a `Module` that answers how functions of the package are called in it."""

    def passed_in_project(self, call: ast.Call, keyword: str) -> int:
        file = cast("ProjectFile", self)
        first, _, name = file.qualified(call.func).rpartition(".")
        if first.partition(".")[0] == "torch" or not name:
            return 0
        key, folder = (name.encode(), keyword.encode()), package_of(file)
        if folder is None:
            return self._passed_here[key]
        customs = file.project.customs
        passed = customs.passed(folder, name, keyword)
        if not passed:
            return 0
        before = customs.passed_in_file(folder, file.path)
        return passed + self._passed_here[key] - before[key]

    def usual_in_project(self, call: ast.Call, keyword: str) -> tuple[int, int]:
        file = cast("ProjectFile", self)
        name, folder = file.qualified(call.func).rpartition(".")[2], folder_of_project(file)
        if folder is None or not name:
            return 0, 0
        customs = file.project.customs
        passed = customs.passed(folder, name, keyword)
        return passed, customs.times_called(folder, name) if passed else 0

    def is_set_in_project(self, attribute: str) -> bool:
        return self._is_written(attribute, gives_value(attribute), texts_asked.gives_value)

    def is_property_in_project(self, name: str) -> bool:
        return self._is_written(name, makes_property(name), texts_asked.makes_property)

    def _is_written(
        self, word: str, how: re.Pattern[bytes], question: Callable[..., object]
    ) -> bool:
        """This file, or another of the package, has the word in such a place."""
        file = cast("ProjectFile", self)
        if how.search(file.source.data):
            return True
        folder, customs = package_of(file), file.project.customs
        found = customs.is_written(folder, word, how) if folder is not None else None
        return is_so_in(file, found, question, word)

    @cached_property
    def _passed_here(self) -> Counter[tuple[bytes, bytes]]:
        return Counter(passed_in(cast("ProjectFile", self).source.data))

    def is_of_project(self, call: ast.Call) -> bool:
        file = cast("ProjectFile", self)
        return signatures.is_defined(file, file.qualified(call.func))

    def calls_in_project(self, call: ast.Call) -> Sequence[ProjectCall]:
        file = cast("ProjectFile", self)
        return self._calls_in_project(file.qualified(call.func)) if self.is_of_project(call) else ()

    def calls_of(self, node: FunctionNode | ast.ClassDef) -> Sequence[ProjectCall]:
        file = cast("ProjectFile", self)
        return self._calls_in_project(f"{file.name}.{file.tree.qualname_of(node)}", namesakes=True)

    def _calls_in_project(self, dotted: str, namesakes: bool = False) -> Sequence[ProjectCall]:
        file = cast("ProjectFile", self)
        customs = file.project.customs
        own = called_in(file.path, file.source.data, dotted)
        folder = package_of(file)
        if folder is None:
            return own if "." not in file.local_name(dotted) else ()
        found = customs.calls(folder, dotted, namesakes)
        self._rest_on(found, texts_asked.calls, dotted)
        for path in {each.path for each in found}:
            defined = partial(customs.defined, folder, path, dotted)
            file.project.rest_on(file, path, defined, texts_asked.defined, "", dotted)
        others = [each for each in found if each.path != file.path]
        return [*own, *others] if found else ()

    def namesakes_of(self, call: ast.Call) -> Sequence[Namesake]:
        file = cast("ProjectFile", self)
        func = call.func
        name = getattr(func, "attr", getattr(func, "id", ""))
        if not name or _is_of_a_library(file, func):
            return ()
        folder = package_of(file)
        if folder is None:
            return list(namesakes_in(file.path, file.source.data, name))
        found = file.project.customs.namesakes(folder, name)
        self._rest_on(found, texts_asked.namesakes, name)
        return found

    def same_moves_in_project(self, statement: ast.stmt) -> Sequence[GuardedStatement]:
        file = cast("ProjectFile", self)
        folder = package_of(file)
        if folder is None:
            return ()
        key = as_key(file.source.text(*file.source.span(statement)))
        found = file.project.customs.moves(folder, key)
        others = [each for each in found if each.path != file.path]
        self._rest_on(others, texts_asked.moves, key)
        return others

    def _rest_on(self, found: Sequence[_Found], question: Callable[..., object], word: str) -> None:
        """The files in which something was found, and what was: many a name is in thousands."""
        if not found or (question, word) in self._rested_on:
            return
        self._rested_on.add((question, word))
        file = cast("ProjectFile", self)
        by_path: dict[str, list[_Found]] = {}
        for each in found:
            by_path.setdefault(each.path, []).append(each)
        for path, said in by_path.items():
            file.project.rest_on(file, path, partial(list, said), question, "", word)

    @cached_property
    def _rested_on(self) -> set[tuple[Callable[..., object], str]]:
        return set()


def _is_of_a_library(file: ProjectFile, func: ast.expr) -> bool:
    """It begins with a name that is imported from elsewhere, or with `super()`."""
    while isinstance(func, (ast.Attribute, ast.Subscript)):
        func = func.value
    if not isinstance(func, ast.Name):
        return isinstance(func, ast.Call)
    imported = file.names.imported.get(func.id)
    return imported is not None and imported.partition(".")[0] not in (
        "",
        file.name.partition(".")[0],
    )
