"""What a method gives, and where: of tensors, of modules, of arguments that may be tensors."""

from __future__ import annotations

from dataclasses import replace

from tensortrail.analyzer.places.calls.boxes import method_of_box
from tensortrail.analyzer.places.calls.called import Called, device_given
from tensortrail.analyzer.places.calls.evaluating import Evaluating
from tensortrail.analyzer.places.calls.left_out_keys import with_a_default
from tensortrail.analyzer.places.calls.modules import RUNS, meet_the_given, of_callee, of_module
from tensortrail.analyzer.places.calls.moves import MOVES_OR_CASTS, moved, moved_itself
from tensortrail.analyzer.places.held.elements import part_of_box
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.operations import combined, is_put_somewhere, written
from tensortrail.analyzer.places.held.ranks import rank_after
from tensortrail.analyzer.places.libraries.components import COMPONENT
from tensortrail.analyzer.places.libraries.library import names
from tensortrail.rules.places import MAYBE_SCALAR, NUMBER, UNKNOWN_HELD, Held, Place, What, Where
from tensortrail.rules.shared.moves import MOVES


def value_of_method(
    world_of: Evaluating, called: Called, name: str, base: Held, env: Environment
) -> Held:
    if base.what is What.MODULE:
        return _of_module(world_of, called, name, base, env)
    if base.what is What.BOX:
        return method_of_box(world_of, called, name, base, env)
    if base.what in (What.NUMBER, What.DEVICE, What.NONE):
        return NUMBER
    if name in MOVES_OR_CASTS:
        return moved(world_of, called, name, base, env)
    moved_tensor = is_put_somewhere(base) and name in names("only_tensors", "moved")
    if base.what is What.UNKNOWN and not (moved_tensor or is_of_tensors(name)):
        if name in RUNS:
            meet_the_given(world_of, called, base, env)
        return _of_unknown(called, name, base)
    return _of_tensor(world_of, called, name, base, env)


def is_of_tensors(name: str) -> bool:
    """Hardly anything else has the method: `unsqueeze`, or `exp_`, which works in place."""
    in_place = name.endswith("_") and not name.endswith("__")
    return name in names("only_tensors", "methods") or (in_place and _is_operation(name[:-1]))


def _is_operation(name: str) -> bool:
    return any(
        name in names(*each)
        for each in (("keeps", "methods"), ("keeps", "shapes"), ("meets", "by_element"))
    )


def _of_unknown(called: Called, name: str, base: Held) -> Held:
    found = with_a_default(called, name, base)
    if found is not None:
        return found
    if name in names("modules", "leaf_getters"):
        return Held(What.MODULE, frozenset({Place(Where.OF, base.path)}), cls="leaf")
    if _is_operation(name):
        return replace(base, path="")
    return UNKNOWN_HELD


def _of_tensor(
    world_of: Evaluating, called: Called, name: str, base: Held, env: Environment
) -> Held:
    tensor = replace(base, what=What.TENSOR)
    if name == "backward":
        gradient = called.first or called.named.get("gradient") or UNKNOWN_HELD
        world_of.meetings.meet(called.node, name, [tensor, gradient], env, by_element=False)
    if name in names("plain", "methods"):
        return NUMBER
    if name in names("follows", "new"):
        place = device_given(world_of, called, env)
        return Held(What.TENSOR, place if place is not None else base.places)
    plain = name.rstrip("_")
    by_element = plain in names("meets", "by_element")
    if by_element or plain in names("meets", "strictly"):
        in_place = name.endswith("_")
        operands = [written(tensor) if in_place else tensor, *called.operands]
        world_of.meetings.meet(called.node, plain, operands, env, by_element)
        return tensor if in_place else combined(operands)
    if name == "type_as":
        return replace(tensor, places=called.first.places if called.first else frozenset())
    if name in names("keeps", "reductions") or name in ("sort", "topk", "chunk", "split", "unbind"):
        return after_reduction(called, name, tensor, given=0)
    if name in names("keeps", "methods"):
        return tensor
    if name in names("keeps", "shapes"):
        return replace(tensor, rank=rank_after(name, called.node, base.rank), path="")
    return Held(What.TENSOR, tensor.places)


def after_reduction(called: Called, name: str, held: Held, given: int) -> Held:
    """`given` arguments are the tensor; with no more of them the result has no dimension."""
    every = len(called.args) == given and not {"dim", "axis"} & called.nodes.keys()
    plain = replace(held, path="", rank=None)
    if name in ("chunk", "split", "unbind", "meshgrid"):
        return Held(What.BOX, each=plain)
    if name in ("sort", "topk", "kthvalue"):
        return Held(What.BOX, parts=(plain, plain))
    if every and name in names("keeps", "reductions"):
        return replace(held, path="", rank=0)
    if name in ("max", "min", "median") and not every:
        return Held(What.BOX, parts=(plain, plain))
    return replace(held, path="", rank=held.rank if held.rank in (0, MAYBE_SCALAR) else None)


def _of_module(
    world_of: Evaluating, called: Called, name: str, base: Held, env: Environment
) -> Held:
    of_model = base.cls == COMPONENT and name in names("components", "methods")
    if name == "forward" or of_model:
        return of_module(world_of, called, base, env)
    if name in ("eval", "train", "requires_grad_", "half", "float"):
        return base
    if base.cls == "box" and name in ("values", "children"):
        return Held(What.BOX, each=part_of_box(base))
    if base.cls == "box" and name in ("items", "named_children"):
        return Held(What.BOX, each=Held(What.BOX, parts=(NUMBER, part_of_box(base))))
    if name in MOVES or name == "to_empty":
        after = moved(world_of, called, name, base, env)
        moved_itself(called.node.func, after, env)
        return after
    callee = world_of.world.callee_of(base.cls, name) if base.cls else None
    result = of_callee(world_of, called, callee, base)
    return result if result is not None else UNKNOWN_HELD
