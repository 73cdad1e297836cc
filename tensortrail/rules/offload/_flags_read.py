"""How a function reads an offload setting, and what a condition on it asks."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.rules import Guard, Module
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.shared.none_here import asked_for_none
from tensortrail.rules.shared.objects import is_text


def is_left_to_subclasses(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """A class of the file takes the same after it, and does more with it than to pass it on."""
    for heir in module.nodes(ast.ClassDef):
        facts = module.class_facts(heir)
        if heir is cls or facts is None or cls.name not in _last_names(facts.bases):
            continue
        for each in module.nodes(ast.Name, heir):
            above = module.parent(each)
            call = module.parent(above) if isinstance(above, ast.keyword) else above
            passed = isinstance(call, ast.Call) and "super()" in module.text(call.func)
            if each.id == name and not passed:
                return True
    return False


def _last_names(names: Sequence[str]) -> set[str]:
    return {each.rpartition(".")[2] for each in names}


def is_yes_or_no(module: Module, function: ast.FunctionDef, argument: ast.arg) -> bool:
    """Annotated as a bool, or True or False unless it is given."""
    if argument.annotation is not None:
        return "bool" in module.text(argument.annotation)
    default = dict(with_defaults(function.args)).get(argument)
    return isinstance(default, ast.Constant) and isinstance(default.value, bool)


def does_something(function: ast.FunctionDef) -> bool:
    """Not a stub, a protocol method, or one that only refuses."""
    body = [each for each in function.body if not is_text(each)]
    return not function.decorator_list and any(
        not isinstance(each, (ast.Pass, ast.Raise)) and not _answers_nothing(each) for each in body
    )


def _answers_nothing(statement: ast.stmt) -> bool:
    """`return`, or the return of a constant: a method others override."""
    return isinstance(statement, ast.Return) and (
        statement.value is None or isinstance(statement.value, ast.Constant)
    )


def asked_to_be_there(module: Module, guard: Guard) -> str:
    """`x` of a condition that is nothing but `x` or `x is not None`."""
    asked = asked_for_none(guard)
    test, there = (asked[0], not asked[1]) if asked is not None else (guard.test, guard.holds)
    return module.text(test) if there and isinstance(test, (ast.Name, ast.Attribute)) else ""


def asks_more(guards: Sequence[Guard], name: str) -> bool:
    """Another part of the condition asks the object what it says."""
    return any(f"{name}." in each.text for each in guards)


def switches_offload_on(module: Module, statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
        return False
    target = module.text(statement.targets[0])
    return statement.value.value is True and "offload" in target


def same_owner(node: ast.expr, name: str) -> str:
    return f"{ast.unparse(node.value)}.{name}" if isinstance(node, ast.Attribute) else name


def is_sibling(given: str, wanted: str) -> bool:
    """Names of the same make that speak of different things: optimizer against param."""
    one, other = set(given.split("_")), set(wanted.split("_"))
    return len(one - other) == 1 and len(other - one) == 1


def names_in_function(module: Module, node: ast.AST) -> set[str]:
    function = module.function_of(node)
    if function is None:
        return set()
    arguments = function.args
    names = {each.arg for each in (*arguments.args, *arguments.kwonlyargs, *arguments.posonlyargs)}
    names |= {module.text(each) for each in module.nodes(ast.Attribute, function)}
    return names | {each.id for each in module.nodes(ast.Name, function)}
