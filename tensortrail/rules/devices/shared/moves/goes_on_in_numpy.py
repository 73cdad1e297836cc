"""Tensors that numpy reads in the end, so that a move which is dropped is not missed."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.objects import called, given, names_in, receiver
from tensortrail.rules.view import Module


def goes_on_in_numpy(module: Module, statement: ast.stmt, name: str) -> bool:
    """`x.to(device); rows.append(x)`, and `torch.cat(rows).numpy()` further down, with no move
    between: what had been moved would be refused there."""
    function = module.function_of(statement)
    if function is None:
        return False
    held = _made_of(module, statement, name)
    return any(
        isinstance(owner, ast.Name) and owner.id in held and not call.keywords
        for call in module.calls("numpy", inside=function)
        if (owner := receiver(call)) is not None and call.lineno > statement.lineno
    )


def _made_of(module: Module, statement: ast.stmt, name: str) -> set[str]:
    """Names of what is computed from it later, and of lists that it is put into."""
    held = {name}
    later: list[ast.Assign | ast.Call] = [*module.later(statement, ast.Assign)]
    later += [each for each in module.later(statement, ast.Call) if called(each) == "append"]
    for each in sorted(later, key=lambda node: node.lineno):
        if isinstance(each, ast.Call):
            owner = receiver(each)
            if isinstance(owner, ast.Name) and any(names_in(a) & held for a in given(each)):
                held.add(owner.id)
        elif names_in(each.value) & held and not _is_moved(each.value):
            held |= {own for target in each.targets for own in names_in(target)}
    return held


def _is_moved(value: ast.expr) -> bool:
    calls = (each for each in ast.walk(value) if isinstance(each, ast.Call))
    return any(called(each) in ("to", "cpu", "cuda") for each in calls)
