"""A distributed checkpoint that is read before the asynchronous save of it is done."""

from __future__ import annotations

import ast
from traceback import walk_tb
from types import FrameType
from typing import Any

from tensortrail.tracer.identity.assignments import statement_of
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.told import calls_above, told

NAME, METADATA, SAVE, WAITS = "CheckpointException", ".metadata", "async_save", ("result", "wait")


def unwaited_save(error: BaseException, _: Storages) -> dict[str, Any] | None:
    if type(error).__name__ != NAME or METADATA not in str(error):
        return None
    for frame, line in walk_tb(error.__traceback__):
        for call, where in reversed(list(calls_above(frame, line, SAVE))):
            return None if _is_waited_for(frame, line, call) else _told(call, where)
    return None


def _told(call: ast.Call, where: str) -> dict[str, Any]:
    save = ast.unparse(call.func)
    return told(
        f"the checkpoint is read while `{save}`{where} is still writing it: the program does not "
        "wait for its result",
        f"wait before the load: `{save}(...).result()`",
    )


def _is_waited_for(frame: FrameType, line: int, call: ast.Call) -> bool:
    """`.result()` of the call itself, or of the variable that holds what it gives."""
    statement = statement_of(frame, call.lineno)
    if isinstance(statement, ast.Expr) and statement.value is call:
        return False
    if not isinstance(statement, ast.Assign) or statement.value is not call:
        return True
    names = {each.id for each in statement.targets if isinstance(each, ast.Name)}
    waits = [each for name in WAITS for each, _ in calls_above(frame, line, name)]
    return any(
        isinstance(each.func, ast.Attribute)
        and isinstance(each.func.value, ast.Name)
        and each.func.value.id in names
        and each.lineno > call.lineno
        for each in waits
    )
