"""Lists that a loop fills with parts of its batches, and where their members meet after it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.batches.batch_meetings import meetings
from tensortrail.rules.devices.shared.batches.batches import Batch
from tensortrail.rules.devices.shared.batches.on_device import OnDevice
from tensortrail.rules.shared.assignments import pairs_of
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import called, receiver, root_of
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module

_JOINS = ("torch.cat", "torch.concat", "torch.stack", "torch.hstack", "torch.vstack")


def meeting_of_lists(module: Module, batch: Batch, there: OnDevice, name: str) -> ast.expr | None:
    """The expression that takes `torch.cat(labels)` together with `torch.cat(predictions)`, where
    the labels were appended as they are, and the predictions on the device."""
    function = module.function_of(batch.scope)
    if function is None:
        return None
    appended = list(_appended(module, batch))
    left = {
        kept
        for kept, value in appended
        if any(_is_left(module, each, name) for each in (value, behind(module, value)))
    }
    on_device = {kept for kept, value in appended if there.holds(value)} - left
    if not left or not on_device:
        return None
    after = OnDevice(module, function, on_device, _end_of(batch.scope))
    joined = [use for use, _ in _joined(module, batch.scope, left)]
    found = next(meetings(module, joined, after, True), None)
    return found[1] if found is not None else None


def _appended(module: Module, batch: Batch) -> Iterator[tuple[str, ast.expr]]:
    """The list, and what is put into it."""
    for call in module.calls("append", inside=batch.scope):
        kept = receiver(call)
        if isinstance(kept, ast.Name) and len(call.args) == 1:
            yield kept.id, call.args[0]


def _is_left(module: Module, value: ast.expr, name: str) -> bool:
    """`y`, `y.view(-1)`, `y[:n]`: nothing on the way may move it."""
    root = root_of(value)
    moves = any(called(each) in TO_DEVICE for each in module.nodes(ast.Call, value))
    is_moved = isinstance(value, ast.Call) and called(value) in TO_DEVICE
    return isinstance(root, ast.Name) and root.id == name and not moves and not is_moved


def _joined(module: Module, loop: ast.AST, lists: set[str]) -> Iterator[tuple[ast.expr, str]]:
    """`torch.cat(labels)` after the loop, or the uses of the name that it is bound to."""
    for call in module.later(loop, ast.Call):
        given = module.argument(call, 0, "tensors")
        joins = module.qualified(call.func) in _JOINS
        if not joins or not isinstance(given, ast.Name) or given.id not in lists:
            continue
        yield call, given.id
        assign = module.statement_of(call)
        pairs = pairs_of(assign) if isinstance(assign, ast.Assign) else ()
        bound = {to.id for to, value in pairs if value is call and isinstance(to, ast.Name)}
        for use in module.later(assign, ast.Name) if bound else ():
            if use.id in bound and isinstance(use.ctx, ast.Load):
                yield use, given.id


def _end_of(loop: ast.AST) -> tuple[int, int]:
    return getattr(loop, "end_lineno", 0), getattr(loop, "end_col_offset", 0)
