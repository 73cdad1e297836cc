"""Conditions that cannot hold: attributes and names that stay unset, values that are never None."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules import Guard, Module
from tensortrail.rules.shared.none_here import asked_for_none

NEVER_NONE = (ast.List, ast.Dict, ast.Set, ast.Tuple, ast.ListComp, ast.DictComp, ast.SetComp)


class Never(NamedTuple):
    """A condition that cannot hold, where the value comes from, and why."""

    test: ast.expr
    source: ast.AST
    why: str


def may_stay_unset(module: Module, cls: ast.ClassDef) -> bool:
    """An attribute of its objects is made False or None and read, and is given no other value."""
    empty = [each for each in module.nodes(ast.Assign, cls) if _is_empty(each.value)]
    flags = {t.attr for each in empty for t in each.targets if isinstance(t, ast.Attribute)}
    read = (
        each
        for each in sorted(flags)
        if any(isinstance(e.ctx, ast.Load) for e in module.members(each, cls))
    )
    return any(not module.is_set_in_project(each) for each in read)


def _is_empty(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and (value.value is None or value.value is False)


def of_none(test: ast.Compare) -> bool:
    """`... is None`, `... is not None`."""
    return isinstance(test.ops[0], (ast.Is, ast.IsNot)) and _is_empty(test.comparators[0])


def never_holds(module: Module, guard: Guard) -> Never | None:
    if not guard.exact:
        return None
    test = guard.test
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _is_none(module, guard)
    if isinstance(test, ast.Attribute) and guard.holds:
        return _unset(module, test)
    return None


def _is_none(module: Module, guard: Guard) -> Never | None:
    """`parts is None` after `parts = []`."""
    name, is_none = asked_for_none(guard) or (None, False)
    if not (is_none and isinstance(name, ast.Name)):
        return None
    origins = module.value_of(name).origins
    if not origins or not all(_is_bound_so(module, each) for each in origins):
        return None
    if _is_an_argument(module, name):
        return None
    return Never(guard.test, origins[0], f"because `{name.id}` was made just before")


def _is_bound_so(module: Module, origin: ast.expr) -> bool:
    """By `parts = []`; not by a loop over it."""
    is_value = isinstance(module.parent(origin), ast.Assign)
    return is_value and isinstance(origin, NEVER_NONE)


def _is_an_argument(module: Module, name: ast.expr) -> bool:
    """It may have come from the caller on another path."""
    function = module.function_of(name)
    given = function.args if function is not None else None
    names = [*given.posonlyargs, *given.args, *given.kwonlyargs] if given else []
    return any(each.arg == module.text(name) for each in names)


def _unset(module: Module, test: ast.Attribute) -> Never | None:
    """`self.staging`, which the class only ever makes False or None."""
    cls = module.class_of(test)
    if cls is None or not (isinstance(test.value, ast.Name) and test.value.id == "self"):
        return None
    made = [
        each
        for each in module.nodes(ast.Assign, cls)
        if f"self.{test.attr}" in map(module.text, each.targets)
    ]
    if not made or not all(_is_empty(each.value) for each in made):
        return None
    facts = module.class_facts(cls)
    if facts is None or not facts.complete or module.is_set_in_project(test.attr):
        return None
    return Never(test, made[0], f"because nothing in the package makes `{test.attr}` true")


def acted_on(module: Module, does: ast.Call) -> Iterator[ast.Assign]:
    """Where the attribute that would be waited for gets its values."""
    cls = module.class_of(does)
    waited = module.text(does.func.value) if isinstance(does.func, ast.Attribute) else ""
    if cls is None or not waited.startswith("self."):
        return
    for each in module.nodes(ast.Assign, cls):
        if waited in map(module.text, each.targets) and not isinstance(each.value, ast.Constant):
            yield each
