"""A name more or less on the way of a value."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.testing.paraphrases.rewriting import Rewrite, blocks, of_tree, replaced

_WORTH_A_NAME = (ast.Call, ast.Attribute, ast.Compare, ast.BoolOp, ast.Subscript)


def _name_conditions(tree: ast.Module) -> None:
    """`if test:` -> `asked = test`, `if asked:`."""

    def change(statement: ast.stmt) -> Sequence[ast.stmt]:
        if not isinstance(statement, ast.If) or isinstance(statement.test, ast.Name):
            return [statement]
        if any(isinstance(each, ast.NamedExpr) for each in ast.walk(statement.test)):
            return [statement]
        named = _assigned("asked", statement.test)
        statement.test = ast.Name("asked", ast.Load())
        return [named, statement]

    for block in list(blocks(tree)):
        replaced(block, change)


def _name_values(tree: ast.Module) -> None:
    """`return f(x)` -> `value = f(x)`, `return value`; the same for what is compared first."""

    def change(statement: ast.stmt) -> Sequence[ast.stmt]:
        if isinstance(statement, ast.Return) and isinstance(statement.value, _WORTH_A_NAME):
            named = _assigned("value", statement.value)
            statement.value = ast.Name("value", ast.Load())
            return [named, statement]
        asked = statement.test if isinstance(statement, ast.If) else None
        if isinstance(asked, ast.Compare) and isinstance(asked.left, _WORTH_A_NAME):
            named = _assigned("value", asked.left)
            asked.left = ast.Name("value", ast.Load())
            return [named, statement]
        return [statement]

    for block in list(blocks(tree)):
        replaced(block, change)


def _name_arguments(tree: ast.Module) -> None:
    """`f(g(x), y)` -> `first = g(x)`, `f(first, y)`, where a statement is such a call."""

    def change(statement: ast.stmt) -> Sequence[ast.stmt]:
        call = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, (ast.Name, ast.Attribute)):
            return [statement]
        if not call.args or not isinstance(call.args[0], (ast.Call, ast.Attribute, ast.Subscript)):
            return [statement]
        named = _assigned("first", call.args[0])
        call.args[0] = ast.Name("first", ast.Load())
        return [named, statement]

    for block in list(blocks(tree)):
        replaced(block, change)


def _assign_in_conditions(tree: ast.Module) -> None:
    """`x = f()`, `if x:` -> `if (x := f()):`."""
    for block in list(blocks(tree)):
        for at in range(len(block) - 1, 0, -1):
            made, asking = block[at - 1], block[at]
            if not isinstance(asking, ast.If) or not isinstance(made, ast.Assign):
                continue
            target = made.targets[0]
            first = _first_name(asking.test)
            if len(made.targets) != 1 or not isinstance(target, ast.Name) or first is None:
                continue
            if first.id == target.id:
                walrus = ast.NamedExpr(ast.Name(target.id, ast.Store()), made.value)
                asking.test = _with(asking.test, first, walrus)
                del block[at - 1]


def _first_name(node: ast.expr) -> ast.Name | None:
    """The name an expression reads before it does anything else."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Compare):
            node = node.left
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.UnaryOp):
            node = node.operand
        elif isinstance(node, ast.BoolOp):
            node = node.values[0]
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return None
    return node


def _with(node: ast.expr, old: ast.Name, new: ast.expr) -> ast.expr:
    class Swap(ast.NodeTransformer):
        def visit_Name(self, each: ast.Name) -> ast.expr:
            return new if each is old else each

    changed = Swap().visit(node)
    assert isinstance(changed, ast.expr)
    return changed


def _assigned(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)


REWRITES: dict[str, Rewrite] = {
    "named condition": of_tree(_name_conditions),
    "named value": of_tree(_name_values),
    "named argument": of_tree(_name_arguments),
    "walrus": of_tree(_assign_in_conditions),
}
