"""Mappings of a batch that are moved by a comprehension, and members of them that are not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.findings import Fix, Safety
from tensortrail.rules.devices.shared.batches.bound_together import without_counter
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import called, is_name, position, receiver
from tensortrail.rules.shared.parts_moved import is_to_a_device
from tensortrail.rules.view import Module

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Member(NamedTuple):
    """A member of a batch that stays where it was loaded."""

    scope: ast.AST
    uses: list[ast.expr]
    move: ast.Call
    """The move of the others, in the comprehension."""


def members_left(module: Module) -> Iterator[Member]:
    for comprehension in module.nodes(ast.DictComp):
        move = comprehension.value
        if not (isinstance(move, ast.Call) and called(move) in TO_DEVICE):
            continue
        batch = _batch(comprehension)
        scope = _scope(module, comprehension, batch)
        statement = module.statement_of(comprehension)
        if not batch or scope is None or not is_to_a_device(module, move):
            continue
        if not isinstance(statement, ast.Assign) or statement.value is not comprehension:
            continue
        again = module.text(statement.targets[0]) == batch
        if _has_member_bound(module, scope, batch):
            continue
        if _times_bound(module, scope, batch) != int(again):
            continue
        names = _names_before(module, scope, batch, statement)
        yield from (Member(scope, uses, move) for uses in names)
        if not again:
            uses = [
                each for each in _members(module, scope, batch) if position(each) > _end(statement)
            ]
            yield from ([Member(scope, uses, move)] if uses else [])


def _batch(comprehension: ast.DictComp) -> str:
    """`batch` of `{k: v.to(d) for k, v in batch.items()}`, `{k: batch[k].to(d) for k in names}`."""
    move, loop = comprehension.value, comprehension.generators[0]
    match loop.iter, loop.target:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=batch), attr="items")), ast.Tuple(
            elts=[_, ast.Name(id=value)]
        ):
            owner = receiver(move) if isinstance(move, ast.Call) else None
            return batch if isinstance(owner, ast.Name) and owner.id == value else ""
        case _, ast.Name(id=key):
            owner = receiver(move) if isinstance(move, ast.Call) else None
            match owner:
                case ast.Subscript(value=ast.Name(id=batch), slice=ast.Name(id=asked)):
                    return batch if asked == key else ""
    return ""


def _scope(module: Module, comprehension: ast.DictComp, batch: str) -> ast.AST | None:
    """The loop that gets the batch, or the function that is given it."""
    for each in module.ancestors(comprehension):
        if isinstance(each, ast.For):
            target = without_counter(each)
            if isinstance(target, ast.Name) and target.id == batch:
                return each
        if isinstance(each, _FUNCTIONS):
            return each if batch in {a.arg for a in each.args.args} else None
    return None


def _has_member_bound(module: Module, scope: ast.AST, batch: str) -> bool:
    """`batch["labels"] = ...`."""
    return any(
        isinstance(each.ctx, ast.Store) and is_name(each.value, batch)
        for each in module.nodes(ast.Subscript, scope)
    )


def _times_bound(module: Module, scope: ast.AST, batch: str) -> int:
    """How often the scope binds the batch itself, apart from the loop that gets it."""
    loop = without_counter(scope) if isinstance(scope, ast.For) else None
    return sum(
        each.id == batch and isinstance(each.ctx, ast.Store) and each is not loop
        for each in module.nodes(ast.Name, scope)
    )


def _names_before(
    module: Module, scope: ast.AST, batch: str, statement: ast.Assign
) -> Iterator[list[ast.expr]]:
    """The uses of `labels` after `labels = batch.pop("labels")`, which is bound once."""
    for assign in module.nodes(ast.Assign, scope):
        target = assign.targets[0]
        if _end(assign) > position(statement) or not isinstance(target, ast.Name):
            continue
        if not _is_member(assign.value, batch):
            continue
        named = [each for each in module.nodes(ast.Name, scope) if each.id == target.id]
        if sum(isinstance(each.ctx, ast.Store) for each in named) == 1:
            yield [each for each in named if isinstance(each.ctx, ast.Load)]


def _is_member(node: ast.expr, batch: str) -> bool:
    match node:
        case ast.Subscript(value=owner, slice=ast.Constant(value=str())):
            return is_name(owner, batch)
        case ast.Call(func=ast.Attribute(value=owner, attr="pop" | "get"), args=[_, *_]):
            return is_name(owner, batch)
    return False


def _members(module: Module, scope: ast.AST, batch: str) -> list[ast.expr]:
    """`batch["labels"]`."""
    return [each for each in module.nodes(ast.Subscript, scope) if _is_member(each, batch)]


def _end(statement: ast.stmt) -> tuple[int, int]:
    return statement.end_lineno or 0, statement.end_col_offset or 0


def told(module: Module, member: Member, use: ast.expr) -> tuple[str, Fix | None]:
    """What is wrong with a use of the member, and how it would be moved too."""
    shown, moved = module.text(use), module.text(member.move)
    how = moved[moved.rindex(f".{called(member.move)}(") :]
    message = (
        f"`{shown}` is not moved, but is combined here with a result of the members that line "
        f"{member.move.lineno} moves to a device"
    )
    edit = module.replace(use, f"{shown}{how}")
    return message, module.fix("move it too", Safety.UNSAFE, edit)
