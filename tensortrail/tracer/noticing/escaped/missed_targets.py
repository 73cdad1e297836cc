"""Names of layers for an adapter that the model does not have, and those that it has."""

from __future__ import annotations

import re
from typing import Any

from torch.nn import Module

from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.told import frames_of, told

_MISSED = re.compile(r"[Tt]arget modules (.{1,300}) not found in the base model")
MOST = 8


def missed_targets(error: BaseException, _: Storages) -> dict[str, Any] | None:
    found = _MISSED.search(str(error))
    models = [each.f_locals.get("model") for each in frames_of(error)] if found else ()
    model = next((each for each in models if isinstance(each, Module)), None)
    names = _layers(model) if model is not None else []
    if found is None or not names:
        return None
    shown = ", ".join(f"`{each}`" for each in names[:MOST])
    return told(
        f"no layer of this {type(model).__name__} has a name that ends in one of {found[1]}: "
        f"its layers with a matrix are called {shown}",
        f'name some of these, as in `target_modules={names[:2]!r}`, or "all-linear"',
    )


def _layers(model: Module) -> list[str]:
    """Last parts of the names of layers whose weight is a matrix, the more frequent first."""
    counts: dict[str, int] = {}
    for path, part in model.named_modules():
        weight = part._parameters.get("weight")
        name = path.rpartition(".")[2]
        if weight is not None and weight.dim() == 2 and name and not _is_table(part):
            counts[name] = counts.get(name, 0) + 1
    return sorted(counts, key=lambda name: -counts[name])


def _is_table(part: Module) -> bool:
    return "mbedding" in type(part).__name__
