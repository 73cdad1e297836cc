"""Gradients that `torch.autograd.grad` is asked for, of tensors that the result has nothing of."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from torch import Tensor
from torch._C import DisableTorchFunction

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.assignments import assignment, parameters
from tensortrail.tracer.identity.sites import user_frames
from tensortrail.tracer.identity.variables import variables
from tensortrail.tracer.noticing.cut_graphs import CutGraphs
from tensortrail.tracer.noticing.notes import Notes

REFUSED = ("does not require grad", "not have been used in the graph")
MOST_NODES, MOST_NAMES, MOST_WEIGHTS = 5000, 20, 50


def note_refused_gradients(
    notes: Notes, cuts: CutGraphs, results: Any, asked: Any, error: BaseException
) -> None:
    if not any(words in str(error) for words in REFUSED):
        return
    tensors = [each for each in asked or () if isinstance(each, Tensor)]
    with DisableTorchFunction():
        without = [each for each in tensors if not each.requires_grad]
        refused = without or list(_unused(results, tensors))
        frame = next(user_frames(sys._getframe(1)), None)
        if not refused or frame is None:
            return
        first, own = refused[0], variables(frame)
        name = next((name for name, value in own.items() if value is first), "")
        entries = [notes.storages.entry(each) for each in refused[:MOST_WEIGHTS]]
        facts = {
            "no gradient of": name,
            "why": "wants none" if without else "unused",
            "count": len(refused),
            "of": len(tensors),
            "weights": [each.number for each in entries if each is not None],
            "made": _made(frame, name),
            "leaf": first.is_leaf,
            "shared": list(_shared(own, first, results)),
            "cuts": [] if without else cuts.cuts_off([id(first)]),
            "frozen": cuts.frozen_by(without),
        }
    notes.note(Did.HOOK, entries[0], op="torch.autograd.grad", facts=facts)


def _made(frame: FrameType, name: str) -> list[Any]:
    """Where the variable was assigned last: the line, or 0 for a parameter of the function."""
    found = assignment(frame, name, frame.f_lineno) if name else None
    if found is not None:
        return [frame.f_code.co_filename, found.lineno]
    return [frame.f_code.co_filename, 0] if name in parameters(frame) else []


def _unused(results: Any, asked: Sequence[Tensor]) -> Iterator[Tensor]:
    nodes, leaves = _graph([each for each in results if isinstance(each, Tensor)])
    for each in asked:
        if each.grad_fn not in nodes if each.grad_fn is not None else id(each) not in leaves:
            yield each


def _shared(own: dict[str, Any], asked: Tensor, results: Any) -> Iterator[str]:
    """The variables that both the tensor and the result were computed from."""
    if asked.grad_fn is None:
        return
    nodes, leaves = _graph([each for each in results if isinstance(each, Tensor)])
    behind, leaves_behind = _graph([asked])
    names = 0
    for name, value in own.items():
        if isinstance(value, Tensor) and value is not asked and names < MOST_NAMES:
            leaf = id(value) in leaves and id(value) in leaves_behind
            if leaf or (value.grad_fn in nodes and value.grad_fn in behind):
                names += 1
                yield name


def _graph(roots: Sequence[Tensor]) -> tuple[set[Any], set[int]]:
    """The nodes behind these tensors, and the identities of the leaves, if it is not too much."""
    waiting: list[Any] = [each.grad_fn for each in roots]
    leaves = {id(each) for each in roots if each.grad_fn is None}
    nodes: set[Any] = set()
    while waiting and len(nodes) < MOST_NODES:
        node = waiting.pop()
        if node is None or node in nodes:
            continue
        nodes.add(node)
        if (leaf := getattr(node, "variable", None)) is not None:
            leaves.add(id(leaf))
        waiting += [each for each, _ in node.next_functions]
    return nodes, leaves
