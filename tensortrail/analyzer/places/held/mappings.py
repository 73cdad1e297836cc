"""Mappings whose keys are written out: each member has a place of its own."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.joins import member
from tensortrail.rules.places import UNKNOWN_HELD, Held, What

_MOST = 16
"""Members that are told apart; of a larger one, only what any of them is."""


def mapping_of(keys: Sequence[ast.expr | None], members: Sequence[Held]) -> Held | None:
    """`{"ids": a, "mask": b}`; None where a key is not text, or there are too many."""
    values = [each.value if isinstance(each, ast.Constant) else None for each in keys]
    texts = [each for each in values if isinstance(each, str)]
    if len(texts) != len(members) or len(set(texts)) != len(texts):
        return None
    return mapping(dict(zip(texts, members, strict=True)))


def mapping(named: Mapping[str, Held]) -> Held | None:
    """`dict(ids=a, mask=b)`."""
    if not 0 < len(named) <= _MOST:
        return None
    return Held(What.BOX, parts=tuple(named.values()), keys=tuple(named))


def entry(box: Held, key: ast.expr) -> Held | None:
    """What a mapping holds under a key that is written out; None if that is not told apart."""
    if not box.keys or box.parts is None:
        return None
    text = key.value if isinstance(key, ast.Constant) else None
    if not isinstance(text, str):
        return member(box)
    return box.parts[box.keys.index(text)] if text in box.keys else UNKNOWN_HELD


def with_entry(box: Held, key: ast.expr, held: Held) -> Held | None:
    """The mapping after `box["key"] = held`; None if its members are not told apart any more."""
    text = key.value if isinstance(key, ast.Constant) else None
    if not box.keys or box.parts is None or not isinstance(text, str):
        return None
    named = dict(zip(box.keys, box.parts, strict=True)) | {text: held}
    return mapping(named)


def forget_entries(given: Sequence[ast.expr], env: Environment) -> None:
    """Code that is not known may move what it is given keeps."""
    for each in given:
        held = env.values.get(each.id) if isinstance(each, ast.Name) else None
        if isinstance(each, ast.Name) and held is not None and held.what is What.OBJECT:
            env.values[each.id] = replace(held, made=None)
        if isinstance(each, ast.Name) and held is not None and held.keys:
            env.values[each.id] = replace(held, parts=None, keys=())
