"""Code of a file that never runs, as the project never asks for it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import cast

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.facts.texts.asked_for import is_asked_for
from tensortrail.analyzer.facts.texts.written_calls import is_off
from tensortrail.analyzer.judging.around import package_of
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.shared.always_given import is_always_given
from tensortrail.rules.shared.functions import is_static
from tensortrail.rules.shared.never_given import is_never_given
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Guard


class SwitchedOff:
    def __init__(self, file: ProjectFile) -> None:
        self._file = file
        self._asked_for: dict[tuple[str, int, str], bool] = {}

    @property
    def _module(self) -> Module:
        return cast("Module", self._file)

    def holds(self, node: ast.AST) -> bool:
        """Calls of its function come to other code than this."""
        return (
            self._is_switched_off(node)
            or self._waits_for_nobody(node)
            or self._is_given_all_it_needs(node)
            or self._is_left_on(node)
            or self._is_never_made(node)
        )

    def _is_never_made(self, node: ast.AST) -> bool:
        """Every object of the class around is made under a constant that is False."""
        cls = self._file.tree.class_of(node)
        if cls is None or not isinstance(self._file.tree.parent(cls), ast.Module):
            return False
        calls = self._module.calls_of(cls)
        return bool(calls) and all(each.is_switched_off for each in calls)

    def _is_left_on(self, node: ast.AST) -> bool:
        """The `else` of `if bias:` in a constructor, where `bias` is True unless it is given, and
        nothing of the project gives it."""
        function = self._file.tree.function_of(node)
        if function is None or function.name != "__init__":
            return False
        usual = {each.arg: default for each, default in with_defaults(function.args)}
        missed = {_denied_by(guard) for guard in self._file.guards_of(node)}
        on = {each for each in missed & set(usual) if _is_true(usual[each])}
        own = on - self._given_values_in(function, _denied_by) if on else on
        return any(is_never_given(self._module, function, each) for each in own)

    def _is_given_all_it_needs(self, node: ast.AST) -> bool:
        """`if precision is None:` is around it, and every call of the project gives a precision."""
        function = self._file.tree.function_of(node)
        if function is None or not isinstance(self._file.tree.parent(function), ast.Module):
            return False
        left_out = {name for name in map(_missed_by, self._file.guards_of(node)) if name}
        own = left_out - self._given_values_in(function, _missed_by) if left_out else left_out
        return any(is_always_given(self._module, function, each) for each in own)

    def _is_switched_off(self, node: ast.AST) -> bool:
        """`if self.exact:` is around it, the class says `self.exact = False`, and nothing of the
        project gives it another value."""
        cls = self._file.tree.class_of(node)
        tests = [guard.test for guard in self._file.guards_of(node) if guard.holds and guard.exact]
        asked = {each.attr for each in tests if isinstance(each, ast.Attribute)}
        if cls is None or not asked or package_of(self._file) is None:
            return False
        said = [
            target.attr
            for statement in self._file.tree.nodes(ast.Assign, cls)
            for target in statement.targets
            if isinstance(target, ast.Attribute) and target.attr in asked
        ]
        return any(not self._module.is_set_in_project(each) for each in said)

    def _waits_for_nobody(self, node: ast.AST) -> bool:
        """A function does it only if it is asked to, and nobody of the project asks for it; a
        method, that its class does not ask for."""
        function = self._file.tree.function_of(node)
        if function is None or function.name == "forward" or function.name.startswith("__"):
            return False  # called by what calls the object
        wanted = {name for name in map(_asked_by, self._file.guards_of(node)) if name}
        if wanted:
            wanted -= self._given_values_in(function, _asked_by)
        above = self._file.tree.parent(function)
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
        return {
            each.id
            for each in self._file.tree.nodes(ast.Name, function)
            if isinstance(each.ctx, ast.Store)
            and each.id not in map(apart, self._file.guards_of(each))
        }

    def _is_never_on(self, function: FunctionNode, place: int, name: str) -> bool:
        calls = self._module.calls_of(function)
        return bool(calls) and not any(
            each.is_open or {place, name} & ((each.given | each.written) - each.off)
            for each in calls
        )

    def _is_asked_for(self, method: str, place: int, name: str) -> bool:
        key = method, place, name
        if key not in self._asked_for:
            folder = package_of(self._file)
            others = self._file.project.customs.texts(folder) if folder is not None else ()
            texts = (self._file.source.data, *others)
            self._asked_for[key] = is_asked_for(texts, *key)
        return self._asked_for[key]


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


def _denied_by(guard: Guard) -> str:
    """`flag` of `if flag:`, in whose other branch the code stands."""
    return guard.test.id if isinstance(guard.test, ast.Name) and not guard.holds else ""


def _is_true(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


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
