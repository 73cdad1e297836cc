"""Two attributes of a class that are used alike: what holds for one of them holds for the other."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection

from tensortrail.rules.view import Module


def is_treated_like_one_of(
    module: Module, cls: ast.ClassDef, name: str, others: Collection[str]
) -> bool:
    """`self.x = sort(self.x)`, where `self.y = sort(self.y)` stands elsewhere in the class; or
    both were given to the class, and are called."""
    steps = _steps(module, cls)
    own = {_without_name(text, name) for text in steps.get(name, ())}
    if any(own & {_without_name(text, each) for text in steps.get(each, ())} for each in others):
        return True
    alike = {name, *(each for each in others if _is_given(module, cls, each))}
    return len(alike) > 1 and _is_given(module, cls, name) and alike <= _called(module, cls)


def _steps(module: Module, cls: ast.ClassDef) -> dict[str, list[str]]:
    """What a call makes of the attribute itself, by the name of the attribute."""
    found: dict[str, list[str]] = {}
    for statement in module.nodes(ast.Assign, cls):
        target, text = statement.targets[0], module.text(statement.value)
        if isinstance(target, ast.Attribute) and isinstance(statement.value, ast.Call):
            own = f"self.{target.attr}"
            is_move = text.startswith(f"{own}.")
            if module.text(target) == own and not is_move and re.search(rf"{own}\b", text):
                found.setdefault(target.attr, []).append(text)
    return found


def _without_name(text: str, name: str) -> str:
    return re.sub(rf"\b{name}\b", "_", text)


def _is_given(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """`self.model = model` in `__init__`, of a parameter."""
    for function in cls.body:
        if isinstance(function, ast.FunctionDef) and function.name == "__init__":
            given = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
            return any(
                module.text(each.targets[0]) == f"self.{name}"
                and isinstance(each.value, ast.Name)
                and each.value.id in given
                for each in module.nodes(ast.Assign, function)
            )
    return False


def _called(module: Module, cls: ast.ClassDef) -> set[str]:
    return {
        each.func.attr
        for each in module.nodes(ast.Call, cls)
        if isinstance(each.func, ast.Attribute) and module.text(each.func.value) == "self"
    }
