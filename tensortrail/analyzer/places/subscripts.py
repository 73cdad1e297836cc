"""Values read and written by an index: `x[mask]`, `x[mask] = y`."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.places.calls.evaluating import Evaluating
from tensortrail.analyzer.places.held import ranks
from tensortrail.analyzer.places.held.elements import part_of_box
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.joins import join, member
from tensortrail.analyzer.places.held.mappings import entry, with_entry
from tensortrail.analyzer.places.held.operations import as_operand
from tensortrail.rules.places import NUMBER, UNKNOWN_HELD, Held, Place, What, Where
from tensortrail.rules.text_of import text_of


def value_of_subscript(world_of: Evaluating, node: ast.Subscript, env: Environment) -> Held:
    base = world_of.value(node.value, env)
    slices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    indices = world_of.values(slices, env)
    if base.what is What.TENSOR:
        for index in map(as_operand, indices):
            if index.what in (What.TENSOR, What.UNKNOWN):  # of an argument callers know
                world_of.meetings.index(node, base, index, env)
        rank = ranks.rank_of_part(base.rank, slices, indices)
        return replace(base, rank=rank, path="")
    if base.what is What.BOX:
        if isinstance(node.slice, ast.Slice):
            return Held(What.BOX, each=member(base))
        named = entry(base, node.slice)
        if named is not None:
            return named
        at = getattr(node.slice, "value", None)
        if base.parts is not None and isinstance(at, int):
            inside = -len(base.parts) <= at < len(base.parts)
            return base.parts[at] if inside else UNKNOWN_HELD
        return member(base)
    if base.what is What.MODULE and base.cls == "box":
        return part_of_box(base)
    if base.what is What.UNKNOWN and base.places and (base.path or base.moved is not None):
        path = f"{base.path}[{text_of(node.slice)}]" if base.path else ""
        return replace(base, path=path)
    return NUMBER if base.what is What.NUMBER else UNKNOWN_HELD


def store_item(world_of: Evaluating, target: ast.Subscript, held: Held, env: Environment) -> None:
    base = world_of.value(target.value, env)
    slices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    by = [each for each in world_of.values(slices, env) if each.what is What.TENSOR]
    if base.what is What.TENSOR:
        for index in by:
            world_of.meetings.index(target, base, index, env)
        advanced = any(not index.may_be_scalar for index in by) or any(
            world_of.seen[each].what is What.BOX and not isinstance(each, ast.Attribute)
            for each in slices  # what is kept may be a tuple of slices
        )
        if advanced and not _is_one_number(held):  # a slice is copied from anywhere
            world_of.meetings.meet(target, "write by index", [base, held], env, by_element=True)
    if base.what is What.BOX and isinstance(target.value, ast.Name):
        after = with_entry(base, target.slice, held)
        if after is not None:
            env.values[target.value.id] = after
            return
        if not isinstance(target.slice, ast.Constant):  # one of many keys
            held = join(held, Held(held.what, frozenset({Place(Where.UNKNOWN)})))
        each = join(member(base), held) if base.each or base.parts else held
        env.values[target.value.id] = Held(What.BOX, each=each)


def _is_one_number(held: Held) -> bool:
    """`torch.tensor([1])`, which a mask takes from anywhere."""
    made = held.only.by if held.only is not None else None
    data = made.args[0] if isinstance(made, ast.Call) and made.args else None
    return isinstance(data, (ast.List, ast.Tuple)) and len(data.elts) == 1
