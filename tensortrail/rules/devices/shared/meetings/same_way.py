"""Where a fresh tensor goes: the calls, literals and attributes that take it, so that two tensors
of a function which go the same way are seen to belong together."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple, TypeGuard

from tensortrail.rules.devices.shared.meetings.company import takes_anything
from tensortrail.rules.shared.objects import called, names_in
from tensortrail.rules.view import FunctionNode, Module

_KEEPS = frozenset(
    "view reshape unsqueeze squeeze expand repeat repeat_interleave flatten t transpose permute "
    "contiguous float double half long int bool round fill_ normal_ uniform_ requires_grad_".split()
)
"""Methods whose result is the same tensor in another form."""
_OF_FORM = frozenset({"broadcast_tensors", "broadcast_shapes", "broadcast_to"})


class Kind(Enum):
    ONE_CALL = "line {} takes both"
    SAME_CALLEE = "line {} passes it to the same function"
    WRITTEN_TOGETHER = "line {} holds both"
    HELD_TOGETHER = "line {} puts both into one list or dict"
    ATTRIBUTES = "line {} stores it next to others"
    RETURNED = "the function returns it"
    OTHER_BRANCH = "line {} gives it the same name in the other branch"


class Way(NamedTuple):
    kind: Kind
    which: str | int


def ways(module: Module, function: FunctionNode, made: ast.Call) -> dict[Way, ast.AST]:
    """Each way that the tensor goes, with the node that takes it."""
    found = dict(_stored(module, made))
    for use, is_made in _uses(module, function, made):
        found.update(_taken(module, use, is_made))
    return found


def bound(module: Module, made: ast.Call) -> ast.expr | None:
    """What the statement binds the tensor itself to."""
    statement = module.parent(_whole(module, made))
    one = isinstance(statement, ast.Assign) and len(statement.targets) == 1
    return statement.targets[0] if isinstance(statement, ast.Assign) and one else None


def _uses(
    module: Module, function: FunctionNode, made: ast.Call
) -> Iterator[tuple[ast.expr, bool]]:
    """The call, and the later reads of the name it is bound to; whether it is the call."""
    yield _whole(module, made), True
    target, statement = bound(module, made), module.statement_of(made)
    if not isinstance(target, ast.Name) or _is_bound_anew(module, statement, target.id):
        return
    end = statement.end_lineno or 0, statement.end_col_offset or 0
    for node in module.nodes(ast.Name, function):
        same = node.id == target.id and isinstance(node.ctx, ast.Load)
        if same and (node.lineno, node.col_offset) > end:
            yield _whole(module, node), False


def _is_bound_anew(module: Module, statement: ast.stmt, name: str) -> bool:
    """The next statement of the block gives the name to something else: `x = 1 / scale`."""
    block = getattr(module.parent(statement), "body", [])
    at = block.index(statement) + 1 if statement in block else len(block)
    after = block[at] if at < len(block) else None
    return (
        isinstance(after, ast.Assign)
        and name not in names_in(after.value)
        and any(isinstance(each, ast.Name) and each.id == name for each in after.targets)
    )


def _whole(module: Module, node: ast.expr) -> ast.expr:
    """The widest expression that lies where the tensor does: what is computed of it, a list of
    such, as in `[torch.zeros(n)] * 3`."""
    while True:
        above = module.parent(node)
        call = module.parent(above) if isinstance(above, ast.Attribute) else None
        if isinstance(above, ast.Attribute) and isinstance(call, ast.Call) and above.attr in _KEEPS:
            node = call
        elif isinstance(above, ast.expr) and _lies_with(above, node):
            node = above
        else:
            return node


def _lies_with(above: ast.expr, node: ast.expr) -> bool:
    """`node * 2`, `node == 1`, `[node]` or `[node for _ in rows]`."""
    if isinstance(above, ast.List):
        return len(above.elts) == 1
    if isinstance(above, ast.ListComp):
        return above.elt is node
    return isinstance(above, (ast.BinOp, ast.UnaryOp, ast.Compare))


def _taken(module: Module, use: ast.expr, is_made: bool) -> Iterator[tuple[Way, ast.AST]]:
    argument: ast.AST = use
    above = module.parent(use)
    if isinstance(use, ast.BinOp):
        yield Way(Kind.ONE_CALL, id(use)), use
    if isinstance(above, (ast.keyword, ast.Starred)):
        argument, above = above, module.parent(above)
    if isinstance(above, ast.Call):
        yield from _by_call(module, above, argument)
    elif isinstance(above, (ast.Dict, ast.List, ast.Tuple)):
        around = module.parent(above)
        if not isinstance(around, ast.Subscript):
            together = Kind.WRITTEN_TOGETHER if is_made else Kind.HELD_TOGETHER
            yield Way(together, id(above)), above
        if isinstance(around, ast.Call) and around.func is not above and _takes_both(around):
            yield Way(Kind.ONE_CALL, id(around)), around


def _by_call(module: Module, call: ast.Call, argument: ast.AST) -> Iterator[tuple[Way, ast.AST]]:
    if call.func is argument or not _takes_both(call):
        return
    yield Way(Kind.ONE_CALL, id(call)), call
    if not module.qualified(call.func).startswith("torch."):
        name = argument.arg if isinstance(argument, ast.keyword) else None
        at = call.args.index(argument) if argument in call.args else name
        yield Way(Kind.SAME_CALLEE, f"{module.text(call.func)} {at}"), call


def _takes_both(call: ast.Call) -> bool:
    return not takes_anything(call) and called(call) not in _OF_FORM


def _stored(module: Module, made: ast.Call) -> Iterator[tuple[Way, ast.AST]]:
    """`self.state = ...` beside other attributes, `cache["state"] = ...` beside other entries."""
    target = bound(module, made)
    branch = module.parent(module.statement_of(made))
    if target is not None and isinstance(branch, ast.If):
        yield Way(Kind.OTHER_BRANCH, f"{id(branch)} {module.text(target)}"), target
    if _is_kept(target):
        yield Way(Kind.ATTRIBUTES, module.text(target.value)), target


def _is_kept(target: ast.expr | None) -> TypeGuard[ast.Attribute | ast.Subscript]:
    if isinstance(target, ast.Subscript):
        return isinstance(target.slice, ast.Constant) and isinstance(target.slice.value, str)
    return isinstance(target, ast.Attribute)
