"""What a call gives, and where: functions of libraries and of the project, modules, methods."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.places import methods, ranks
from tensortrail.analyzer.places.called import Called, device_given, evaluated, evaluator
from tensortrail.analyzer.places.components import COMPONENT, is_of_library
from tensortrail.analyzer.places.devices import places_on
from tensortrail.analyzer.places.elements import element_of
from tensortrail.analyzer.places.environment import Environment
from tensortrail.analyzer.places.evaluating import Evaluating
from tensortrail.analyzer.places.joins import member
from tensortrail.analyzer.places.library import factories, names
from tensortrail.analyzer.places.mappings import forget_entries, mapping
from tensortrail.analyzer.places.modules import of_callee, of_module, of_moved, run_by_torch
from tensortrail.analyzer.places.objects import method_of_object
from tensortrail.analyzer.places.operations import as_operand, combined, is_put_somewhere
from tensortrail.analyzer.places.partials import by_partial, is_partial_factory
from tensortrail.analyzer.places.ranks import rank_of_fresh
from tensortrail.analyzer.places.torch_classes import (
    class_of_torch,
    of_torch_class,
    without_device,
)
from tensortrail.rules.places import (
    MAYBE_SCALAR,
    NUMBER,
    UNKNOWN_HELD,
    Held,
    Place,
    What,
    Where,
)
from tensortrail.rules.set_by_name import is_one_of_many, read_by_name, set_by_name


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
        found = _of_library(world_of, called, env)
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
        if base.what is not What.UNKNOWN or base.places or func.attr in methods.MOVES_OR_CASTS:
            return methods.value_of_method(world_of, called, func.attr, base, env)
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
    return _of_unknown_module(world_of, called)


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


def _of_unknown_module(world_of: Evaluating, called: Called) -> Held:
    """What a module gives lies where the tensors lie that it is given."""
    given = [as_operand(each) for each in called.operands if each.places]
    at = {each.only for each in given if each.what is What.TENSOR}
    place = at.pop() if len(at) == 1 else None
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


# --- functions of libraries ----------------------------------------------------------------
def _of_library(world_of: Evaluating, called: Called, env: Environment) -> Held | None:
    dotted = called.dotted
    if dotted in factories() and not called.draws_around_tensors:
        return _fresh(world_of, called, env)
    if (held := _on_the_cpu(called)) is not None:
        return held
    if dotted.endswith(".from_pretrained") and is_of_library(dotted.rpartition(".")[0]):
        return _loaded(called)
    if (run := run_by_torch(world_of, called, env)) is not None:
        return run
    if is_partial_factory(world_of.world, called.node):
        return Held(made=called.node)
    if dotted == "torch.device":
        evaluate = evaluator(world_of, env)
        return Held(What.DEVICE, places_on(called.node, called.node, evaluate, dotted))
    if dotted in names("plain", "functions"):
        return NUMBER
    if dotted.partition(".")[0] in names("plain", "modules"):
        return NUMBER
    if dotted in ("torch.as_tensor", "torch.asarray"):
        return _as_tensor(world_of, called, env)
    if dotted in names("follows", "like"):
        place = device_given(world_of, called, env)
        first = called.first or UNKNOWN_HELD
        places = place if place is not None else first.places
        return Held(What.TENSOR, frozenset(places), rank=first.rank)
    if dotted in names("follows", "first"):
        return called.first or UNKNOWN_HELD
    if dotted == "torch.compile" and called.first is not None:
        return called.first  # the same module, or function, that is called the same way
    if dotted in names("returns_leaf_input", "on_device"):
        place = device_given(world_of, called, env)
        if place is None and len(called.args) < _DEVICE_OF_RANDN:
            place = without_device(world_of, called, env)
        return Held(What.TENSOR, place or frozenset())
    if dotted in names("modules", "wrappers"):
        return UNKNOWN_HELD
    if dotted.startswith("torch.nn.") and dotted.endswith(".from_pretrained"):
        return UNKNOWN_HELD  # an embedding around the tensor that is given
    of_audio = dotted.startswith("torchaudio.transforms.")
    if (of_audio and called.last_name in names("modules", "of_audio")) or (
        dotted.startswith("torch.nn.") and called.last_name[:1].isupper()
    ):
        return of_torch_class(world_of, called, env)
    if dotted.startswith("torch.") and not dotted.startswith(_NO_OPERATIONS):
        return _operation(world_of, called, env)
    if dotted.startswith("torch.distributed.") and called.last_name in names("meets", "processes"):
        sent = [*called.args, *called.named.values()]  # a list is all here or all there
        members = [member(each) if each.what is What.BOX else each for each in sent]
        world_of.meetings.meet(called.node, called.last_name, members, env, False)
    if dotted in names("meets", "elsewhere") or dotted in names("meets", "reshaped"):
        return _elsewhere(world_of, called, env)
    if dotted == "einops.unpack" and called.args:
        return Held(What.BOX, each=replace(called.args[0], rank=None, path=""))
    if dotted == "next" and called.args:
        return element_of(called.args[0])
    if dotted in ("list", "tuple", "reversed", "sorted", "iter", "tqdm.tqdm") and called.args:
        first = called.args[0]
        return first if first.what is What.BOX else Held(What.BOX, each=element_of(first))
    if dotted == "zip":
        return Held(What.BOX, each=Held(What.BOX, parts=tuple(map(element_of, called.args))))
    if dotted == "enumerate" and called.args:
        return Held(What.BOX, each=Held(What.BOX, parts=(NUMBER, element_of(called.args[0]))))
    if dotted == "dict" and called.node.keywords and not called.node.args and not called.unpacks:
        given = {each.arg: world_of.value(each.value, env) for each in called.node.keywords}
        return mapping({name: held for name, held in given.items() if name is not None})
    if dotted in ("abs", "min", "max", "sum"):
        if len(called.args) > 1:  # they are compared with each other
            world_of.meetings.meet(called.node, dotted, called.operands, env, by_element=True)
        return combined(called.operands)
    return None


_NO_OPERATIONS = (
    "torch.nn.init.", "torch.distributed", "torch.utils", "torch.jit", "torch.autograd",
    "torch.cuda", "torch.compile", "torch.load", "torch.ops", "torch.fx", "torch.export",
    "torch.library", "torch.package", "torch.distributions", "torch.profiler",
    "torch.multiprocessing",
)  # fmt: skip


_DEVICE_OF_RANDN = 3
"""The position of `device` among the arguments of `randn_tensor`."""


def _on_the_cpu(called: Called) -> Held | None:
    """What a library always gives on the CPU."""
    dotted = called.dotted
    if dotted in names("host", "functions"):
        return _host(called)
    if dotted in names("host", "loaders") and "collate_fn" not in called.nodes:
        return Held(What.BOX, each=_host(called))
    to_cpu = getattr(called.nodes.get("map_location"), "value", None) == "cpu"
    if (dotted == "torch.load" and to_cpu) or (
        dotted in names("host", "mappings") and "device" not in called.nodes
    ):
        return Held(What.BOX, each=replace(_host(called), rank=MAYBE_SCALAR))
    return None


def _host(called: Called) -> Held:
    return Held(What.TENSOR, frozenset({Place(Where.HOST, by=called.node)}))


def _loaded(called: Called) -> Held:
    """A model made of a checkpoint: on the default device, unless a map spreads it."""
    spread = called.unpacks or "device_map" in called.nodes
    places = frozenset() if spread else frozenset({Place(Where.DEFAULT, by=called.node)})
    return Held(What.MODULE, places, cls=COMPONENT)


def _fresh(world_of: Evaluating, called: Called, env: Environment) -> Held:
    if called.dotted in names("fresh", "legacy"):
        first = called.first
        if first is None or first.what is What.TENSOR:
            return first or Held(What.TENSOR)
    places = device_given(world_of, called, env)
    copied = called.first if called.dotted == "torch.tensor" else None
    if places is None and copied is not None and copied.what is What.TENSOR:
        return replace(copied, moved=None)  # a copy lies where the tensor does
    if places is None:
        places = without_device(world_of, called, env)
    rank = rank_of_fresh(called.dotted, called.node, called.first)
    return Held(What.TENSOR, frozenset(places), rank=rank)


def _as_tensor(world_of: Evaluating, called: Called, env: Environment) -> Held:
    places = device_given(world_of, called, env)
    first = called.first or UNKNOWN_HELD
    if places is not None:
        return Held(What.TENSOR, places, rank=first.rank)
    if first.what is What.TENSOR:
        return first
    data = called.node.args[0] if called.node.args else None
    if isinstance(data, (ast.List, ast.ListComp)) and member(first).what is What.NUMBER:
        return Held(What.TENSOR, without_device(world_of, called, env))
    if first.what is What.NUMBER:
        return Held(What.TENSOR)  # a number, or an array of numpy
    return Held(What.TENSOR, first.places)


def _is_told_where(called: Called) -> bool:
    """Something among the arguments may say where the parameters go."""
    told = called.unpacks or "device" in called.nodes
    return told or any(each.what is What.DEVICE for each in called.operands)


def _operation(world_of: Evaluating, called: Called, env: Environment) -> Held:
    last = called.last_name
    by_element = last in names("meets", "by_element") or _is_of_two(called)
    strictly = last in names("meets", "strictly")
    operands = called.operands
    if by_element and operands and operands[0].what is What.UNKNOWN:
        operands[0] = replace(operands[0], what=What.TENSOR)  # torch takes no number there
    if by_element or strictly:
        world_of.meetings.meet(called.node, last, operands, env, by_element)
    found = combined(operands)
    if found.what is not What.TENSOR:
        return Held(What.TENSOR) if by_element or strictly else UNKNOWN_HELD
    if not by_element and (last in names("keeps", "reductions") or last in _MANY):
        return methods.after_reduction(called, last, found, given=1)
    kept_shape = by_element or (last not in names("keeps", "shapes") and not strictly)
    return found if kept_shape else replace(found, rank=None)


def _elsewhere(world_of: Evaluating, called: Called, env: Environment) -> Held:
    """An operation of einops or torchvision."""
    operands = called.operands
    if called.dotted in names("meets", "elsewhere") or len(operands) > len(called.args):
        world_of.meetings.meet(called.node, called.last_name, operands, env, by_element=False)
    found = combined(operands)
    if found.what is not What.TENSOR:
        return UNKNOWN_HELD
    found = replace(found, rank=ranks.rank_of_pattern(called.dotted, called.node), moved=None)
    packed = called.dotted == "einops.pack"
    return Held(What.BOX, parts=(found, NUMBER)) if packed else found


def _is_of_two(called: Called) -> bool:
    """`torch.max(a, b)`, not `torch.max(a, dim)`."""
    if called.dotted not in ("torch.max", "torch.min") or len(called.args) != 2:
        return False
    return all(each.what is What.TENSOR for each in called.args)


_MANY = frozenset({"topk", "sort", "chunk", "split", "unbind", "unique", "meshgrid", "kthvalue"})


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
    return result if result is not None else _of_unknown_module(world_of, called)
