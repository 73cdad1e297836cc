"""What a call gives, and where: of whom it is asked. Functions of libraries are in
`library_calls`, methods of tensors and boxes in `methods`."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.places.calls import methods
from tensortrail.analyzer.places.calls.called import Called, evaluated
from tensortrail.analyzer.places.calls.evaluating import Evaluating
from tensortrail.analyzer.places.calls.left_out_keys import with_a_default
from tensortrail.analyzer.places.calls.library_calls import of_library
from tensortrail.analyzer.places.calls.modules import meet_the_given, of_callee, of_module, of_moved
from tensortrail.analyzer.places.calls.moves import MOVES_OR_CASTS
from tensortrail.analyzer.places.calls.objects import method_of_object
from tensortrail.analyzer.places.calls.partials import by_partial
from tensortrail.analyzer.places.calls.torch_classes import class_of_torch
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.mappings import forget_entries
from tensortrail.analyzer.places.held.operations import as_operand, is_put_somewhere
from tensortrail.analyzer.places.libraries.library import names
from tensortrail.rules.places import UNKNOWN_HELD, Held, Place, What, Where
from tensortrail.rules.set_by_name import is_one_of_many, read_by_name, set_by_name
from tensortrail.rules.text_of import text_of


def value_of_call(world_of: Evaluating, node: ast.Call, env: Environment) -> Held:
    called = evaluated(world_of, node, env)
    func = node.func
    by_name = _by_name(world_of, node, env)
    if by_name is not None:
        return by_name
    root = func
    while isinstance(root, ast.Attribute):
        root = root.value
    is_local = isinstance(root, ast.Name) and root.id in env.values
    if is_local and (factory := by_partial(world_of.world, called, env)) is not None:
        called, is_local = factory, False
    if not is_local and called.dotted:
        found = of_library(world_of, called, env)
        if found is not None:
            return found
    if _asks_for_tensors(node):
        held = Held(What.TENSOR, frozenset({Place(Where.HOST, by=node)}))
        one = called.last_name in names("mappings", "tensor_methods")
        return held if one and "return_dict" not in called.nodes else Held(What.BOX, each=held)
    if isinstance(func, ast.Subscript) and world_of.world.is_kernel(func.value):
        world_of.meetings.launch(node, called.operands, env)
        return UNKNOWN_HELD
    if isinstance(func, ast.Attribute):
        if _is_leaf_itself(world_of, func):
            own = Held(What.MODULE, frozenset({Place(Where.SELF)}), cls="leaf")
            return of_module(world_of, called, own, env)
        base = world_of.value(func.value, env)
        if base.what is What.SELF:
            return _of_self(world_of, called, func.attr, env)
        if base.what is What.OBJECT:
            return _of_object(world_of, called, func.attr, base, env)
        if base.what is not What.UNKNOWN or base.places or func.attr in MOVES_OR_CASTS:
            return methods.value_of_method(world_of, called, func.attr, base, env)
        if (found := with_a_default(called, func.attr, base)) is not None:
            return found
        if base.path.startswith("self."):  # an object of the project, which is no module
            result = of_callee(world_of, called, world_of.world.callee(node), base)
            if result is not None:
                return result
    else:
        base = world_of.value(func, env)
        if base.what is What.MODULE:
            return of_module(world_of, called, base, env)
        if base.what is What.OBJECT:
            return _of_object(world_of, called, "__call__", base, env)
        if is_put_somewhere(base):
            return of_moved(world_of, called, base, env)
    if not is_local:
        result = of_callee(world_of, called, world_of.world.callee(node))
        if result is None and called.dotted:
            result = world_of.world.made(node, called.dotted)
            if result is not None and (_is_told_where(called) or env.ambient is not None):
                result = replace(result, places=frozenset(), made=None)
        if result is not None:
            return result
    elif isinstance(func, ast.Name):
        world_of.meetings.pass_on(node, called.operands, env)
    forget_entries(node.args, env)
    is_given = _is_argument(func, env)
    if is_given and isinstance(func, ast.Name):
        meet_the_given(world_of, called, world_of.seen.get(func, UNKNOWN_HELD), env)
    return _of_unknown_module(world_of, called, is_given)


def _of_object(
    world_of: Evaluating, called: Called, name: str, owner: Held, env: Environment
) -> Held:
    result = method_of_object(world_of, called, owner, name, env)
    if result is not None:
        return result
    world_of.meetings.pass_on(called.node, called.operands, env)
    forget_entries(called.node.args, env)
    return _of_unknown_module(world_of, called)


def _by_name(world_of: Evaluating, node: ast.Call, env: Environment) -> Held | None:
    """`getattr(self, "table")`, and `setattr(self, "table", ...)` after which that is there."""
    name = read_by_name(node)
    if name is not None and world_of.cls is not None:
        known = env.values.get(f"self.{name}")
        return known or world_of.world.attribute(world_of.cls, name)
    stored = set_by_name(node)
    if stored is not None and not is_one_of_many(stored[0]):
        env.values[f"self.{stored[0]}"] = world_of.seen[stored[1]]
    return None


def _is_argument(func: ast.expr, env: Environment) -> bool:
    """The caller of the function has passed what is called: a model, mostly."""
    held = env.values.get(func.id) if isinstance(func, ast.Name) else None
    return held is not None and held.what is What.UNKNOWN and held.path == text_of(func)


def _of_unknown_module(world_of: Evaluating, called: Called, is_given: bool = False) -> Held:
    """What a module gives lies where the tensors lie that it is given."""
    given = [as_operand(each) for each in called.operands if each.places]
    at = {each.only for each in given if each.what is What.TENSOR}
    place = at.pop() if len(at) == 1 else None
    if is_given and place is not None and place.where is Where.OF:
        return Held(What.UNKNOWN, frozenset({place}))
    told = place is not None and place.where in (Where.DEVICE, Where.LITERAL)
    if place is None or not told or not world_of.world.is_asked_as_module(called.node.func):
        return UNKNOWN_HELD
    return Held(What.TENSOR, frozenset({place}))


def _is_leaf_itself(world_of: Evaluating, func: ast.Attribute) -> bool:
    """`super().forward` of a class whose base is `nn.Embedding`."""
    above = func.value
    of_base = isinstance(above, ast.Call) and getattr(above.func, "id", "") == "super"
    if func.attr != "forward" or not of_base or world_of.cls is None:
        return False
    bases = map(world_of.world.qualified, world_of.cls.bases)
    return any(
        each.startswith("torch.nn.") and class_of_torch(each.rpartition(".")[2]) == "leaf"
        for each in bases
    )


def _asks_for_tensors(node: ast.Call) -> bool:
    for each in node.keywords:
        if each.arg == "return_tensors" and isinstance(each.value, ast.Constant):
            return each.value.value == "pt"
    return False


def _is_told_where(called: Called) -> bool:
    """Something among the arguments may say where the parameters go."""
    told = called.unpacks or "device" in called.nodes
    return told or any(each.what is What.DEVICE for each in called.operands)


# --- methods of self -----------------------------------------------------------
def _of_self(world_of: Evaluating, called: Called, name: str, env: Environment) -> Held:
    func = called.node.func
    assert isinstance(func, ast.Attribute)
    held = env.values.get(f"self.{name}")
    if held is None and world_of.cls is not None:
        held = world_of.world.attribute(world_of.cls, name)
    if held is not None and held.what is What.MODULE:
        return of_module(world_of, called, replace(held, path=f"self.{name}"), env)
    if held is not None and is_put_somewhere(held):
        return of_moved(world_of, called, replace(held, path=f"self.{name}"), env)
    if name in names("modules", "leaf_getters"):
        return Held(What.MODULE, frozenset({Place(Where.SELF)}), cls="leaf")
    callee = world_of.world.callee(called.node)
    if callee is None:
        world_of.meetings.pass_on(called.node, called.operands, env)
    result = of_callee(world_of, called, callee)
    is_kept = held is not None and held.what is What.UNKNOWN and bool(held.places)
    if held is not None and is_kept and result is None:
        meet_the_given(world_of, called, held, env)
    return result if result is not None else _of_unknown_module(world_of, called, is_kept)
