"""A failed assert about devices: the tensors that it asked, and the frame that has them."""

from __future__ import annotations

import ast
from typing import Any

from tensortrail.tracer.identity.assignments import statement_of
from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.identity.lines_behind import Frame, known
from tensortrail.tracer.identity.variables import variables

ASKS = ("device", "is_cuda", "is_cpu", "is_meta", "get_device")
MOST = 4


def compared(error: BaseException, innermost: Frame | None) -> list[tuple[str, Any]]:
    """Name and tensor, for each variable that the failed line asks for its device."""
    if not isinstance(error, AssertionError) or innermost is None:
        return []
    frame, line = innermost
    statement = statement_of(frame, line)
    own = variables(frame)
    found: dict[str, Any] = {}
    for node in ast.walk(statement) if statement else ():
        if isinstance(node, ast.Attribute) and node.attr in ASKS:
            for _, value, _ in known(node.value, own):
                if type(value) in PLAIN:
                    found[ast.unparse(node.value)] = value
    return list(found.items())[:MOST]
