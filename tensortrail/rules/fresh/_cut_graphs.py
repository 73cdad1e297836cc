"""What a recorded run tells of graphs that end before the weights."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tensortrail.findings import Site
from tensortrail.rules.shared.flows import MODULE, Frame, flows_into
from tensortrail.rules.timeline import Event, Timeline
from tensortrail.rules.unchanging import unchanging

OFF = "gradients off"
CHECKPOINT = "torch/utils/checkpoint.py"
WORDS = {
    "Tensor.detach": "`.detach()`",
    "torch.detach": "`.detach()`",
    "Tensor.data": "`.data`",
    "Tensor.item": "`.item()`",
    "Tensor.__float__": "`float(...)`",
    "Tensor.__int__": "`int(...)`",
    "Tensor.tolist": "`.tolist()`",
    "Tensor.numpy": "`.numpy()`",
    "Tensor.__array__": "NumPy",
    "torch.tensor": "`torch.tensor(...)`, which copies values only,",
}


@unchanging(frozen=True, slots=False)
class Cut:
    op: str
    stack: tuple[Frame, ...]
    """The user's lines, the innermost first."""
    by: Frame | None
    decorated: Frame | None

    @property
    def at(self) -> Site:
        file, line, function = self.decorated or self.stack[0]
        return Site(file, line, function="" if function == MODULE else function)

    @property
    def is_switch(self) -> bool:
        return self.op == OFF

    @property
    def is_checkpoint(self) -> bool:
        """Of activations, which runs the model without gradients to run it again."""
        return self.by is not None and self.by[0].replace("\\", "/").endswith(CHECKPOINT)


def frames_of(rows: Any) -> tuple[Frame, ...]:
    given = rows if isinstance(rows, (list, tuple)) else ()
    return tuple(frame for each in given if (frame := frame_of(each)) is not None)


def frame_of(row: Any) -> Frame | None:
    match row:
        case [str(file), int(line), str(function)] if file:
            return file, line, function
    return None


def cuts_of(facts: Mapping[str, Any]) -> Iterator[Cut]:
    for each in facts.get("cuts", ()):
        stack = frames_of(each.get("stack"))
        if stack:
            by, decorated = frame_of(each.get("by")), frame_of(each.get("decorated"))
            yield Cut(str(each.get("op")), stack, by, decorated)


def cuts_behind(timeline: Timeline, event: Event) -> list[Cut]:
    """Those that may have come between the weights and what was to be differentiated."""
    use = frames_of(event.facts.get("no graph"))
    found = [each for each in cuts_of(event.facts) if _is_behind(timeline, each, use, event)]
    certain = [each for each in found if not each.is_switch or each.is_checkpoint]
    return certain or found


def _is_behind(timeline: Timeline, cut: Cut, use: Sequence[Frame], event: Event) -> bool:
    block = block_without_gradients(timeline, cut)
    if block is not None:
        first = (block.body[0].lineno, cut.stack[0][2])
        inside = [(cut.stack[0][0], line, first[1]) for line in _lines(block)]
        return any(flows_into(timeline, (each, *cut.stack[1:]), use) for each in inside)
    if cut.is_switch and not cut.decorated and (cut.by is None or not _is_call(cut)):
        return not event.facts.get("on", True)
    return flows_into(timeline, cut.stack, use)


def _is_call(cut: Cut) -> bool:
    """A library switched gradients off for what it was called to do."""
    return cut.by is not None and not cut.by[0].replace("\\", "/").endswith("grad_mode.py")


def block_without_gradients(timeline: Timeline, cut: Cut) -> ast.With | None:
    """`with torch.no_grad():` at the line."""
    tree = timeline.tree(cut.stack[0][0]) if cut.is_switch and not cut.decorated else None
    if tree is None or cut.is_checkpoint:
        return None
    found = (each for each in ast.walk(tree) if isinstance(each, ast.With))
    return next((each for each in found if each.lineno == cut.stack[0][1]), None)


def _lines(block: ast.With) -> range:
    return range(block.body[0].lineno, (block.end_lineno or block.lineno) + 1)


def cut_words(timeline: Timeline, cut: Cut) -> str:
    """`.detach()` at train.py:7 in normalize"""
    if cut.is_checkpoint:
        return f"activation checkpointing without an input that has gradients{where(cut.at)}"
    if cut.decorated:
        return f"`{cut.decorated[2]}`{where(cut.at, False)}, which runs without gradients,"
    if cut.is_switch:
        called = f"{cut.by[2]} at {short(cut.by)}" if cut.by and _is_call(cut) else ""
        return f"gradients switched off{where(cut.at)}" + (f" by `{called}`" if called else "")
    return f"{WORDS.get(cut.op, f'`{cut.op}`, which has no gradient,')}{where(cut.at)}"


def short(frame: Frame) -> str:
    """A library's file by its path in the library."""
    path = frame[0].replace("\\", "/")
    _, packages, inside = path.rpartition("-packages/")
    return f"{inside if packages else os.path.basename(path)}:{frame[1]}"


def where(site: Site, function: bool = True) -> str:
    inside = f" in {site.function}" if site.function and function else ""
    return f" at {os.path.basename(site.file)}:{site.line}{inside}"
