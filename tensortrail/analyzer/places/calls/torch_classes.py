"""What a class of torch gives when it is called: a module, and where its parameters lie."""

from __future__ import annotations

from tensortrail.analyzer.places.calls.called import Called, device_given
from tensortrail.analyzer.places.calls.evaluating import Evaluating
from tensortrail.analyzer.places.calls.local_layers import stays_here
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.libraries.library import names
from tensortrail.rules.places import Held, Place, What, Where


def without_device(world_of: Evaluating, called: Called, env: Environment) -> frozenset[Place]:
    if env.ambient is not None:
        return env.ambient
    if world_of.world.sets_default_device or called.unpacked or "out" in called.nodes:
        return frozenset()
    return frozenset({Place(Where.DEFAULT, by=called.node)})


def _in_module(world_of: Evaluating) -> bool:
    """In a method of what is a module, or may be one by a base that is not known."""
    cls = world_of.cls
    return cls is not None and (bool(cls.bases) or world_of.world.is_module(cls))


def of_torch_class(world_of: Evaluating, called: Called, env: Environment) -> Held:
    last = called.dotted.rpartition(".")[2]
    in_class = _in_module(world_of) and not stays_here(world_of.world.tree, called.node)
    if last in ("Parameter", "Buffer"):
        return Held(What.TENSOR, frozenset({Place(Where.SELF, last.lower())}))
    made = frozenset({Place(Where.SELF)}) if in_class else _put(world_of, called, env)
    cls = class_of_torch(last)
    if cls == "box" and not in_class:
        made = _of_its_parts(called, made)
    if cls == "box" and any(each.cls == "leaf" for each in called.operands):
        whole = last == "Sequential"
        return Held(What.MODULE, made, cls="leaf" if whole else cls, each=_member(called))
    if cls == "box":
        return Held(What.MODULE, made, cls=cls, each=_member(called))
    weights = _weights(called) if cls == "bare" and not in_class else None
    if weights is not None:
        return Held(What.MODULE, weights.places, cls="weighted")
    return Held(What.MODULE, made, cls=cls)


def _member(called: Called) -> Held | None:
    """What any member of `ModuleList([a, b])` is, if all are of one class."""
    classes = {each.cls if each.what is What.MODULE else "" for each in called.operands}
    alike = classes.pop() if len(classes) == 1 else ""
    return Held(What.MODULE, cls=alike) if alike else None


def _of_its_parts(called: Called, made: frozenset[Place]) -> frozenset[Place]:
    """Of `Sequential(a, b)`: where the parts are, once one of them was put somewhere."""
    parts = [each.places for each in called.operands if each.what is What.MODULE]
    put = [each for each in parts if any(place.where is not Where.DEFAULT for place in each)]
    if not put:
        return made
    return put[0] if all(each == put[0] for each in parts) else frozenset()


def _put(world_of: Evaluating, called: Called, env: Environment) -> frozenset[Place]:
    """Where a module of torch puts its parameters; nothing is known of `**factory_kwargs`."""
    given = device_given(world_of, called, env)
    if given is not None or called.unpacks:
        return given or frozenset()
    return without_device(world_of, called, env)


def _weights(called: Called) -> Held | None:
    """The tensor that a loss is made with: it has to lie where what it is computed of lies."""
    for each in called.operands:
        if each.what is What.TENSOR and each.places and not each.may_be_scalar:
            return each
    return None


def class_of_torch(last: str) -> str:
    if last in names("modules", "leaf") or last in names("modules", "of_audio"):
        return "leaf"
    if last in names("modules", "any_place"):
        return ""
    return "box" if last in names("modules", "box") else "bare"
