"""A checkpoint whose keys name the same weights otherwise than the model does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensortrail.findings import Fix, Safety
from tensortrail.rules.timeline import Event

MOST_PARTS = 4
PEFT = "set_peft_model_state_dict"
FROM_PRETRAINED = "from_pretrained"
UNWRAPPED = "give it the model without an adapter: the load brings its own wrapper"
INNER = "load it into the model inside the outer wrapper"


def twice(load: Event) -> str:
    """The model is inside two wrappers of one kind, and the keys are of one of them."""
    begins = _doubled(load)
    if not begins:
        return ""
    return f"the model is wrapped twice, its names begin with `{begins}{begins}`"


def renamed(load: Event) -> str:
    """All weights that were left have another beginning in the file."""
    begins = _beginnings(load)
    if begins is None:
        return ""
    theirs, own = begins
    return f", whose keys begin with `{theirs}` there and with `{own}` in the model"


def changes(load: Event) -> Iterator[Fix]:
    by = load.by.function if load.by is not None else ""
    begins = _beginnings(load)
    if _doubled(load):
        yield Fix(UNWRAPPED if by == PEFT else INNER, Safety.DISPLAY, ())
    elif begins is not None:
        theirs, own = (each.rstrip(".") for each in begins)
        mapping = f'{{r"^{theirs}\\.": "{own}."}}'
        given = f"give `from_pretrained` a key_mapping, {mapping}"
        told = given if by.endswith(FROM_PRETRAINED) else "rename the keys before the load"
        yield Fix(told, Safety.DISPLAY, ())


def _doubled(load: Event) -> str:
    unused, left = _names(load, "unused"), _names(load, "left")
    for count in range(1, MOST_PARTS):
        begins = left[0][:count] if left else ()
        once = all(each[:count] == begins != each[count : 2 * count] for each in unused)
        if begins and unused and once and all(each[: 2 * count] == begins * 2 for each in left):
            return ".".join(begins) + "."
    return ""


def _beginnings(load: Event) -> tuple[str, str] | None:
    """What differs before the names that are alike, if it is the same for all."""
    unused, left = _names(load, "unused"), _names(load, "left")
    if not unused or len(unused) != len(left) or load.facts.get("unused_count") != len(unused):
        return None
    pairs = {_heads(*pair) for pair in zip(unused, left, strict=True)}
    theirs, own = pairs.pop()
    return (".".join(theirs) + ".", ".".join(own) + ".") if not pairs and theirs and own else None


def _heads(one: Sequence[str], other: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    alike = 0
    while alike < min(len(one), len(other)) and one[-1 - alike] == other[-1 - alike]:
        alike += 1
    return tuple(one[: len(one) - alike]), tuple(other[: len(other) - alike])


def _names(load: Event, fact: str) -> list[tuple[str, ...]]:
    return sorted(tuple(str(each).split(".")) for each in load.facts.get(fact, ()))
