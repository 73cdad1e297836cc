"""An optimizer was given no parameters: the models at hand that have none to give, and why."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import GeneratorType
from typing import Any

from torch._C import DisableTorchFunction

from tensortrail.rules.timeline import Did
from tensortrail.tracer.identity.assigned_lines import assigned_at
from tensortrail.tracer.identity.hidden_modules import hidden
from tensortrail.tracer.identity.running_models import running_models
from tensortrail.tracer.noticing.cut_graphs import CutGraphs
from tensortrail.tracer.noticing.notes import Notes

MOST = 20


def spent_iterator(given: object) -> str:
    """ "filter" if it is one over a generator in which nothing is left; "" if it is none."""
    inner: Any = given
    while isinstance(inner, filter | map):
        inner = inner.__reduce__()[1][-1]
    is_spent = isinstance(inner, GeneratorType) and (
        inspect.getgeneratorstate(inner) == inspect.GEN_CLOSED
    )
    return type(given).__name__ if is_spent else ""


def note_without_parameters(notes: Notes, cuts: CutGraphs, optimizer: str, spent: str) -> None:
    with DisableTorchFunction():
        facts = {
            "no parameters": optimizer,
            "spent": spent,
            "empty": list(_empty())[:MOST],
            "frozen": list(cuts.frozen_models()),
        }
    notes.note(Did.HOOK, op="Optimizer", facts=facts)


def _empty() -> Iterator[dict[str, Any]]:
    """Those without parameters, and the plain containers that keep layers from them."""
    for name, model in running_models():
        if next(model.parameters(), None) is not None:
            continue
        held = list(hidden(model, name))
        first = held[0] if held else None
        line = assigned_at(first.owner, first.holder.rpartition(".")[2]) if first else None
        yield {
            "model": name,
            "kind": type(model).__name__,
            "holder": first.holder if first else "",
            "count": len(held),
            "assigned": list(line or ()),
        }
