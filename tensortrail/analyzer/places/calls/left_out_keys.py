"""What a mapping of the caller gives under a key, and what is taken where it has none."""

from __future__ import annotations

from dataclasses import replace

from tensortrail.analyzer.places.calls.called import Called
from tensortrail.rules.places import Held, Place, What, Where, opposite
from tensortrail.rules.text_of import text_of

_ASKS = frozenset({"get", "pop"})


def with_a_default(called: Called, name: str, mapping: Held) -> Held | None:
    """`options.get("weight", torch.ones(3))`: made here, or where the caller has put it."""
    made = called.args[1] if name in _ASKS and len(called.args) == 2 else None
    if made is None or made.what is not What.TENSOR or not mapping.path or made.only is None:
        return None
    if made.only.where is not Where.DEFAULT or made.only.given:
        return None
    key = f"{mapping.path}[{text_of(called.node.args[0])}]"
    missing = f"{key} is None"
    places = {replace(made.only, given=missing), Place(Where.OF, key, given=opposite(missing))}
    rank = made.rank if made.may_be_scalar else None
    return Held(What.TENSOR, frozenset(places), rank)
