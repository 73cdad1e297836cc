"""Where a turn of a training loop keeps a loss, and whether what keeps it outlives the turn."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.storage._gone_back import factor
from tensortrail.rules.storage._kept_by_object import Loop, is_of_one_step, kept_for_good
from tensortrail.rules.storage._meters import kept_by_meter
from tensortrail.rules.view import FunctionNode

_KEEPING = ("append", "add", "extend")


def kept_in_loop(
    module: Module, back: ast.Call, around: Loop | FunctionNode, loss: str
) -> Iterator[tuple[ast.expr, str]]:
    """In the loop that trains, or in a method that is one turn of such a loop."""
    if not isinstance(around, Loop):
        found = _kept(module, around, loss)
        yield from (each for each in found if kept_for_good(module, around, each[1]))
    elif not is_of_one_step(module, around):
        function = module.function_of(back)
        kept = (*_kept(module, around, loss), *kept_by_meter(module, around, loss))
        yield from (each for each in kept if _outlives(module, function, around, each[1]))


def _kept(module: Module, loop: Loop | FunctionNode, loss: str) -> Iterator[tuple[ast.expr, str]]:
    """Where a turn of the loop keeps the loss, and what keeps it."""
    for statement in module.nodes(ast.AugAssign, loop):
        used = factor(statement.value, loss)
        if isinstance(statement.op, ast.Add) and used is not None:
            yield used, module.text(statement.target)
    for assigned in module.nodes(ast.Assign, loop):
        value, target = assigned.value, module.text(assigned.targets[0])
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            sides = (value.left, value.right)
            for one, other in (sides, sides[::-1]):
                used = factor(other, loss)
                if module.text(one) == target and used is not None:
                    yield used, target
    for call in module.calls(*_KEEPING, inside=loop):
        used = factor(call.args[0], loss) if len(call.args) == 1 else None
        if used is None or not isinstance(call.func, ast.Attribute):
            continue
        if not _is_of_another_class(module, call.func.value):
            yield used, module.text(call.func.value)


def _is_of_another_class(module: Module, keeper: ast.expr) -> bool:
    """A meter and the like, which may keep the number alone; of lists and sets all is kept."""
    made = [each for each in module.value_of(keeper).origins if isinstance(each, ast.Call)]
    names = {module.qualified(each.func).rpartition(".")[2] for each in made}
    return any(each[:1].isupper() for each in names)


def _outlives(module: Module, function: FunctionNode | None, loop: Loop, keeper: str) -> bool:
    """It is there before the loop and read by something, and neither begins anew in the loop nor is
    gone back through."""
    if keeper.isidentifier() and not _is_read(module, function or module.top, keeper):
        return False
    for assigned in module.nodes(ast.Assign, loop):
        for target in assigned.targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            texts = _texts(module, assigned.value)
            if any(_holds(name, keeper) and name not in texts for name in map(module.text, names)):
                return False
    if any(
        isinstance(each.func, ast.Attribute)
        and each.func.attr in ("clear", "pop", "popleft", "zero_")
        and module.text(each.func.value) == keeper
        for each in module.nodes(ast.Call, loop)
    ):
        return False
    around = function if function is not None else loop
    return not any(
        keeper in _texts(module, call) for call in module.calls("backward", inside=around)
    )


def _is_read(module: Module, around: ast.AST, keeper: str) -> bool:
    """By more than the statements that add to it."""
    if any(keeper in each.names for each in module.nodes(ast.Global, around)):
        return True
    return any(
        each.id == keeper
        and isinstance(each.ctx, ast.Load)
        and not _is_added_to(module, module.statement_of(each), keeper)
        for each in module.nodes(ast.Name, around)
    )


def _is_added_to(module: Module, statement: ast.AST, keeper: str) -> bool:
    return isinstance(statement, ast.Assign) and module.text(statement.targets[0]) == keeper


def _holds(name: str, keeper: str) -> bool:
    """`info` is, or holds, `info["loss"]` and `info.losses`."""
    return keeper == name or keeper.startswith((f"{name}[", f"{name}."))


def _texts(module: Module, node: ast.AST) -> set[str]:
    return {
        module.text(each) for each in ast.walk(node) if isinstance(each, (ast.Name, ast.Attribute))
    }
