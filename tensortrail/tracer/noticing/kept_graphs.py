"""Variables that keep the graph of each step: a total of losses, or a list of them."""

from __future__ import annotations

import ast
import sys
from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

from torch import Tensor
from torch._C import DisableTorchFunction

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.assignments import tree_of
from tensortrail.tracer.identity.sites import OWNERS, USER, file_of, function_name, outwards
from tensortrail.tracer.identity.variables import variables
from tensortrail.tracer.noticing.notes import Notes

FIRST = 12
"""Steps after which the graphs are counted, and again after twice as many each time: what grows
from one look to the next goes on growing."""
GROWN = 10
MOST_FRAMES, MOST_COUNTED, MOST_HELD = 40, 10_000, 4
ADDS = ("append", "extend", "add", "insert")


class KeptGraphs:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._counted: dict[tuple[str, str], int] = {}
        self._told: set[tuple[str, str]] = set()

    def stepped(self) -> None:
        if not _is_due(self._notes.optimizer_steps):
            return
        with DisableTorchFunction():
            found = {
                (frame.f_code.co_filename, name): (count, frame)
                for frame in _own_frames(sys._getframe(1))
                for name, value in _named(frame)
                if (count := _graphs(value))
            }
        for key, (count, frame) in found.items():
            grown = count - self._counted.get(key, count)
            if grown >= GROWN and key not in self._told:
                self._told.add(key)
                self._tell(frame, key[1], grown)
        self._counted = {key: count for key, (count, _) in found.items()}

    def _tell(self, frame: FrameType, name: str, grown: int) -> None:
        line = _added_at(frame, name)
        if line:
            code = frame.f_code
            site = self._notes.line(code.co_filename, line, function_name(code))
            facts = {"keeps graphs": name, "more": grown, "steps": self._notes.optimizer_steps // 2}
            self._notes.note_at(site, Did.HOOK, op="step", facts=facts)


def _is_due(steps: int) -> bool:
    """12, 24, 48 and so on."""
    times, rest = divmod(steps, FIRST)
    return not rest and times > 0 and not times & (times - 1)


def _own_frames(frame: FrameType | None) -> Iterator[FrameType]:
    for each in outwards(frame, MOST_FRAMES):
        if OWNERS[file_of(each)] == USER:
            yield each


def _named(frame: FrameType) -> Iterator[tuple[str, Any]]:
    own = variables(frame)
    yield from own.items()
    kept = getattr(own.get("self"), "__dict__", {})
    yield from ((f"self.{name}", each) for name, each in list(kept.items()))


def _graphs(value: Any) -> int:
    """How many steps a number was added up of, or how many numbers with graphs a list has."""
    if type(value) is Tensor:
        return _sums(value.grad_fn) if value.grad_fn is not None and value.numel() == 1 else 0
    if type(value) in (list, deque) and len(value) > MOST_HELD:
        last = [value[at] for at in range(-MOST_HELD, 0)]
        graphs = (type(each) is Tensor and each.numel() == 1 and each.grad_fn for each in last)
        return len(value) if all(graphs) else 0
    return 0


def _sums(node: Any) -> int:
    count = 0
    while node is not None and count < MOST_COUNTED:
        below = (each for each, _ in node.next_functions if "AddBackward" in type(each).__name__)
        count += "AddBackward" in type(node).__name__
        node = next(below, None)
    return count


def _added_at(frame: FrameType, name: str) -> int:
    """The last line of the file that adds to the variable."""
    tree = tree_of(frame.f_code.co_filename)
    nodes = (each for each in (ast.walk(tree) if tree else ()) if _adds(each, name))
    lines = [getattr(each, "lineno", 0) for each in nodes]
    return lines[-1] if lines else 0


def _adds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.AugAssign(target=target, op=ast.Add()):
            return ast.unparse(target) == name
        case ast.Assign(targets=[target], value=ast.BinOp(op=ast.Add(), left=left, right=right)):
            return name == ast.unparse(target) and name in map(ast.unparse, (left, right))
        case ast.Call(func=ast.Attribute(attr=method, value=owner)):
            return method in ADDS and ast.unparse(owner) == name
    return False
