"""Whether a class moves a tensor that it keeps in a plain attribute."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.moves import MOVERS, MOVES
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import Module

_MOVES = MOVES | {"is_cuda", "type_as"}


def is_moved(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """By the class, or by a method that compares its device."""
    for node in module.members(name, cls):
        function = module.function_of(node)
        above = module.parent(node)
        asked = above.attr if isinstance(above, ast.Attribute) else ""
        moved = any(each in _MOVES for each in _methods_on(module, node))
        if moved or (asked == "device" and _is_compared(module, above)):
            return True
        if function is not None and function.name in MOVERS:
            return True
        if _others_come_to_it(module, node) or _is_moved_by_name(module, node):
            return True
        if _is_moved_by_callee(module, node):
            return True
    return False


def _is_moved_by_name(module: Module, node: ast.Attribute) -> bool:
    """`table = self.table.repeat(n)`, and `table.to(x)` later in the function."""
    statement, function = module.statement_of(node), module.function_of(node)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(target, ast.Name) or function is None or not isinstance(node.ctx, ast.Load):
        return False
    return any(
        any(name in _MOVES for name in _methods_on(module, each))
        for each in module.uses(target.id, function)
    )


def _others_come_to_it(module: Module, node: ast.expr) -> bool:
    """`x.to(self.table)` and `x.type_as(self.table)`: what meets it is moved."""
    call = module.parent(node)
    func = call.func if isinstance(call, ast.Call) and node in call.args else None
    return isinstance(func, ast.Attribute) and func.attr in ("to", "type_as")


def _is_moved_by_callee(module: Module, node: ast.expr, deeper: int = 1) -> bool:
    """`score(x, doas=self.doas)` of a function of this file with `doas.to(...)`, or of one that
    only hands it on to such a function."""
    above = module.parent(node)
    call = module.parent(above) if isinstance(above, ast.keyword) else above
    if not isinstance(call, ast.Call):
        return False
    keyword = above.arg if isinstance(above, ast.keyword) else None
    for function in module.nodes(ast.FunctionDef):
        if function.name == called(call):
            given = keyword or _parameter(function, call, node)
            uses = module.uses(given, function) if given is not None else ()
            return any(
                any(name in _MOVES for name in _methods_on(module, each))
                or (deeper > 0 and _is_moved_by_callee(module, each, deeper - 1))
                for each in uses
            )
    return False


def _parameter(function: ast.FunctionDef, call: ast.Call, node: ast.expr) -> str | None:
    """What the function calls the argument."""
    names = [each.arg for each in function.args.args]
    names = names[1:] if names[:1] == ["self"] else names
    at = call.args.index(node) if node in call.args else len(names)
    return names[at] if at < len(names) else None


def _methods_on(module: Module, node: ast.expr) -> Iterator[str]:
    """`unsqueeze` and `to` of `self.ids[:n].unsqueeze(0).to(x)`."""
    below: ast.AST = node
    above = module.parent(below)
    while isinstance(above, (ast.Attribute, ast.Subscript)):
        if isinstance(above, ast.Attribute):
            yield above.attr
            call = module.parent(above)
            if not isinstance(call, ast.Call) or call.func is not above:
                return
            below = call
        elif above.value is below:
            below = above
        else:
            return
        above = module.parent(below)


def _is_compared(module: Module, node: ast.AST | None) -> bool:
    return node is not None and any(
        isinstance(each, ast.Compare) for each in module.ancestors(node)
    )
