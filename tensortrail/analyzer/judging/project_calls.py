"""What rules ask a file about the calls of other files."""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import TypeAlias, cast

from tensortrail.analyzer.facts import texts_asked
from tensortrail.analyzer.facts.asked_for import is_asked_for
from tensortrail.analyzer.facts.customs import (
    gives_value,
    makes_property,
)
from tensortrail.analyzer.facts.namesakes import namesakes_in
from tensortrail.analyzer.facts.passed_on import passed_in
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.project_top import (
    folder_of_project,
    known_top,
)
from tensortrail.analyzer.facts.reach import MAIN, Reach
from tensortrail.analyzer.facts.written_calls import called_in, is_off
from tensortrail.analyzer.judging.around import folder_of, is_so_in, package_of
from tensortrail.analyzer.judging.reached import is_reached
from tensortrail.analyzer.judging.self_tests import is_self_test
from tensortrail.analyzer.syntax.guarded_statements import as_key
from tensortrail.analyzer.values import signatures
from tensortrail.rules.shared.always_given import is_always_given
from tensortrail.rules.shared.functions import is_static
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Guard, GuardedStatement, Namesake, ProjectCall

_NAMED = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
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
        return not any(map(_is_private, (*file.name.split("."), *(each.name for each in around))))

    def _may_run(self, node: ast.AST) -> bool:
        """If something comes to the function that the node stands in."""
        if self._is_switched_off(node) or self._waits_for_nobody(node):
            return False
        if self._is_given_all_it_needs(node):
            return False
        return not is_self_test(cast("ProjectFile", self), node)

    def _is_given_all_it_needs(self, node: ast.AST) -> bool:
        """`if precision is None:` is around it, and every call of the project gives a precision."""
        file = cast("ProjectFile", self)
        function = file.tree.function_of(node)
        if function is None or not isinstance(file.tree.parent(function), ast.Module):
            return False
        left_out = {name for name in map(_missed_by, file.guards_of(node)) if name}
        own = left_out - self._given_values_in(function, _missed_by) if left_out else left_out
        return any(is_always_given(cast("Module", self), function, each) for each in own)

    def _is_switched_off(self, node: ast.AST) -> bool:
        """`if self.exact:` is around it, the class says `self.exact = False`, and nothing of the
        project gives it another value."""
        file = cast("ProjectFile", self)
        cls = file.tree.class_of(node)
        tests = [guard.test for guard in file.guards_of(node) if guard.holds and guard.exact]
        asked = {each.attr for each in tests if isinstance(each, ast.Attribute)}
        if cls is None or not asked or package_of(file) is None:
            return False
        said = [
            target.attr
            for statement in file.tree.nodes(ast.Assign, cls)
            for target in statement.targets
            if isinstance(target, ast.Attribute) and target.attr in asked
        ]
        return any(not self.is_set_in_project(each) for each in said)

    def _waits_for_nobody(self, node: ast.AST) -> bool:
        """A function does it only if it is asked to, and nobody of the project asks for it; a
        method, that its class does not ask for."""
        file = cast("ProjectFile", self)
        function = file.tree.function_of(node)
        if function is None or function.name == "forward" or function.name.startswith("__"):
            return False  # called by what calls the object
        wanted = {name for name in map(_asked_by, file.guards_of(node)) if name}
        if wanted:
            wanted -= self._given_values_in(function, _asked_by)
        above = file.tree.parent(function)
        if isinstance(above, ast.ClassDef):
            return any(
                name in wanted and not self._is_asked_for(function.name, place, name)
                for place, name in _of_choice(function)
            )
        return isinstance(above, ast.Module) and any(
            name in wanted and self._is_never_on(function, place + 1, name)
            for place, name in _of_choice(function)
        )

    def _given_values_in(self, function: FunctionNode, apart: Callable[[Guard], str]) -> set[str]:
        """What the function gives another value, but where it was asked about."""
        file = cast("ProjectFile", self)
        return {
            each.id
            for each in file.tree.nodes(ast.Name, function)
            if isinstance(each.ctx, ast.Store) and each.id not in map(apart, file.guards_of(each))
        }

    def _is_never_on(self, function: FunctionNode, place: int, name: str) -> bool:
        calls = self.calls_of(function)
        return bool(calls) and not any(
            each.is_open or {place, name} & ((each.given | each.written) - each.off)
            for each in calls
        )

    def _is_asked_for(self, method: str, place: int, name: str) -> bool:
        key = method, place, name
        if key not in self._asked_for:
            file = cast("ProjectFile", self)
            folder = package_of(file)
            others = file.project.customs.texts(folder) if folder is not None else ()
            texts = (file.source.data, *others)
            self._asked_for[key] = is_asked_for(texts, *key)
        return self._asked_for[key]

    @cached_property
    def _asked_for(self) -> dict[tuple[str, int, str], bool]:
        return {}

    def _is_named(self, node: ast.AST) -> bool:
        file = cast("ProjectFile", self)
        folder = package_of(file) or _project_of_script(file)
        return folder is None or is_reached(file, folder, node)

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


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _asked_by(guard: Guard) -> str:
    """`flag` of `if flag:` and `if flag is not None:`, under which the code stands."""
    if not guard.exact:
        return ""
    match guard.test:
        case ast.Name(name) if guard.holds:
            return name
        case ast.Compare(ast.Name(name), [ast.Is() | ast.IsNot() as sign], [ast.Constant(None)]):
            return name if guard.holds is isinstance(sign, ast.IsNot) else ""
    return ""


def _missed_by(guard: Guard) -> str:
    """`flag` of `if flag is None:`."""
    match guard.test:
        case ast.Compare(ast.Name(name), [ast.Is() | ast.IsNot() as sign], [ast.Constant(None)]):
            return name if guard.exact and guard.holds is isinstance(sign, ast.Is) else ""
    return ""


def _of_choice(method: FunctionNode) -> Iterator[tuple[int, str]]:
    """Parameters that are off unless a call asks for them: the place without `self`, and the
    name."""
    given = [each.arg for each in (*method.args.posonlyargs, *method.args.args)]
    first = len(given) - len(method.args.defaults)
    own = 0 if is_static(method) else 1
    for place, default in enumerate(method.args.defaults, first):
        if is_off(default):
            yield place - own, given[place]
    for each, kept in zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True):
        if is_off(kept):
            yield len(given), each.arg


def _around(file: ProjectFile) -> str | None:
    return package_of(file) or _project_of_script(file)


def _project_of_script(file: ProjectFile) -> str | None:
    """The top of the project that a file is in which is in no package."""
    return known_top(folder_of(file)) if os.path.isfile(file.path) else None


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
