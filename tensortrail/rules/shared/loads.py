"""What the event of a load says of it."""

from __future__ import annotations

import os

from tensortrail.rules.timeline import Event

HARDLY = 0.95
"""Of the weights that got nothing and of the keys that fit nothing."""


def file_of(load: Event) -> str:
    """`base.pt`"""
    return os.path.basename(str(load.facts.get("file", ""))) or "the state dict"


def is_of_another_class(load: Event) -> bool:
    """Hardly any weight was given, and hardly any key was used."""
    facts = load.facts
    weights, missing, unused = (facts.get(k, 0) for k in ("weights", "missing", "unused_count"))
    hardly = missing > HARDLY * weights
    return bool(weights and unused and hardly and unused > HARDLY * (unused + weights - missing))
