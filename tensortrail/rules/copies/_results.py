"""Where the result of a copy goes: into a variable, an attribute, out of the function."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.copies._streams import SideBlock
from tensortrail.rules.shared.objects import called, receiver


def result_of(module: Module, copy: ast.Call) -> ast.expr | None:
    """What holds the copy: the target of `copy_`, or the variable that `to` is assigned to."""
    if called(copy) == "copy_":
        return receiver(copy)
    statement = module.statement_of(copy)
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return statement.targets[0]
    return None


def is_handed_out(module: Module, block: SideBlock, what: ast.expr | None) -> bool:
    """It is returned from the function that made the stream for itself."""
    made = module.value_of(block.stream).origins
    function = module.function_of(block.node)
    is_own = bool(made) and all(
        isinstance(each, ast.Call)
        and called(each) == "Stream"
        and module.function_of(each) is function
        for each in made
    )
    returns = [*module.nodes(ast.Return, block.node), *module.later(block.node, ast.Return)]
    return (
        is_own
        and isinstance(what, ast.Name)
        and any(
            isinstance(name, ast.Name) and name.id == what.id
            for each in returns
            for name in ast.walk(each)
        )
    )


def is_kept(module: Module, copy: ast.Call, what: ast.expr | None) -> bool:
    """The result outlives the function: an attribute, an element, an argument."""
    if what is None:
        up = module.parent(copy)
        return isinstance(up, ast.Call) and called(up) in ("append", "add", "put", "setdefault")
    if isinstance(what, (ast.Attribute, ast.Subscript)):
        return True
    loops = [up for up in module.ancestors(copy) if isinstance(up, ast.For)]
    targets = (each for loop in loops for each in ast.walk(loop.target))
    return isinstance(what, ast.Name) and any(
        isinstance(each, ast.Name) and each.id == what.id for each in targets
    )
