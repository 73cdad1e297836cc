"""What methods of lists, dicts and other boxes give, and what they put into them."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.places.calls.called import Called
from tensortrail.analyzer.places.calls.evaluating import Evaluating
from tensortrail.analyzer.places.calls.moves import moved, moved_itself
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.joins import join, member
from tensortrail.analyzer.places.held.mappings import entry, forget_entries
from tensortrail.rules.places import NUMBER, UNKNOWN_HELD, Held, Place, What, Where

_MOST_PARTS = 8
"""Members that a list is remembered by; of a longer one, only what any of them is."""


def method_of_box(
    world_of: Evaluating, called: Called, name: str, base: Held, env: Environment
) -> Held:
    func = called.node.func
    assert isinstance(func, ast.Attribute)
    if name == "to":
        after = Held(What.BOX, each=moved(world_of, called, name, member(base), env))
        if any(each.where is Where.HOST for each in member(base).places):
            moved_itself(func, after, env)  # what a tokenizer gives is moved in place
        return after
    if name in ("append", "extend", "insert", "add") and called.args:
        added = member(called.args[-1]) if name == "extend" else called.args[-1]
        if isinstance(func.value, ast.Name):
            env.values[func.value.id] = _with(base, added, name)
        return NUMBER
    if name == "items":
        return Held(What.BOX, each=Held(What.BOX, parts=(NUMBER, member(base))))
    if name in ("values", "copy"):
        return Held(What.BOX, each=member(base))
    if name in ("get", "pop"):
        named = entry(base, called.node.args[0]) if called.node.args else None
        return named if named is not None else member(base)
    if name in ("update", "clear", "setdefault", "popitem"):
        forget_entries([func.value], env)
    return UNKNOWN_HELD


def _lies_apart(places: frozenset[Place]) -> bool:
    return len({"cpu" if _is_of_cpu(each) else each for each in places}) > 1


def _is_of_cpu(place: Place) -> bool:
    written = place.where is Where.LITERAL and place.subject == "cpu"
    return not place.given and (written or place.where is Where.HOST)


def _with(box: Held, added: Held, name: str) -> Held:
    if _lies_apart(added.places):  # one member that may lie here or there, not two that lie apart
        added = replace(added, places=added.places | {Place(Where.UNKNOWN)})
    if name == "append" and box.parts is not None and len(box.parts) < _MOST_PARTS:
        return Held(What.BOX, parts=(*box.parts, added))
    each = join(member(box), added) if box.each or box.parts else added
    return Held(What.BOX, each=each)
