"""What the callers of a private function show of its parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.syntax.names import is_private
from tensortrail.analyzer.syntax.tree import SCOPES
from tensortrail.analyzer.values.calls import argument_named
from tensortrail.analyzer.values.evaluating import Binding
from tensortrail.analyzer.values.functions import params_of

_MOST = 16
"""Calls that are asked for their arguments; of a function called more often nothing is learnt."""


def tensors_given(file: ProjectFile, function: ast.AST | None) -> frozenset[Binding]:
    """The parameters to which every caller in the file gives a tensor.

    Only of functions that are private by their name: others have callers elsewhere."""
    if not isinstance(function, SCOPES) or not is_private(function.name):
        return frozenset()
    calls = [each for each in file.calls(function.name) if _is_plain(each)]
    if not 0 < len(calls) <= _MOST:
        return frozenset()
    params = params_of(function, isinstance(file.tree.parent(function), ast.ClassDef))
    plain = {each.arg for each in _arguments(function) if each.annotation is None}
    given = (
        name for name in params if name in plain and _always_a_tensor(file, calls, params, name)
    )
    return frozenset((name, (), ()) for name in given)


def _always_a_tensor(
    file: ProjectFile, calls: Sequence[ast.Call], params: tuple[str, ...], name: str
) -> bool:
    given = [argument_named(call, params, name) for call in calls]
    values = [file.value_of(each) for each in given if each is not None]
    return bool(values) and all(each.is_tensor and each.sure for each in values)


def _is_plain(call: ast.Call) -> bool:
    """A call of a name or of `self.name`, of which each argument can be named."""
    func = call.func
    of_self = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name)
    known = isinstance(func, ast.Name) or (of_self and func.value.id in ("self", "cls"))  # type: ignore[attr-defined]
    starred = any(isinstance(each, ast.Starred) for each in call.args)
    return known and not starred and all(each.arg for each in call.keywords)


def _arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.arg]:
    given = function.args
    yield from (*given.posonlyargs, *given.args, *given.kwonlyargs)
