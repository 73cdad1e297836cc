"""What a method gives, and where: of tensors, of boxes, of arguments that may be tensors."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.places.attributes.moved_attributes import the_module_itself
from tensortrail.analyzer.places.calls.called import Called, device_given, device_places
from tensortrail.analyzer.places.calls.evaluating import Evaluating
from tensortrail.analyzer.places.calls.left_out_keys import with_a_default
from tensortrail.analyzer.places.calls.modules import RUNS, meet_the_given, of_callee, of_module
from tensortrail.analyzer.places.held.devices import used_as_devices
from tensortrail.analyzer.places.held.elements import part_of_box
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.joins import join, member
from tensortrail.analyzer.places.held.mappings import entry, forget_entries
from tensortrail.analyzer.places.held.operations import combined, is_put_somewhere, written
from tensortrail.analyzer.places.held.ranks import rank_after
from tensortrail.analyzer.places.libraries.components import COMPONENT
from tensortrail.analyzer.places.libraries.library import names
from tensortrail.patterns import pattern
from tensortrail.rules.places import (
    MAYBE_SCALAR,
    NUMBER,
    UNKNOWN_HELD,
    Held,
    Place,
    What,
    Where,
)
from tensortrail.rules.shared.moves import ACCELERATORS, MOVES
from tensortrail.rules.text_of import text_of

_DEVICE_NAME = pattern(r"(cpu|cuda|meta|mps|xpu|npu|hpu|xla)(:\d+)?")
_MOST_PARTS = 8
"""Members that a list is remembered by; of a longer one, only what any of them is."""
MOVES_OR_CASTS = MOVES | {"type"}
"""`x.type(...)` may name a type of the CPU."""
_CAST = pattern(r"type|prec|half|float|fp\d|bf\d|bit")
_DTYPES = pattern(r"torch\.(b?float|int|uint|half|long|double|bool|short|complex)\w*")


def value_of_method(
    world_of: Evaluating, called: Called, name: str, base: Held, env: Environment
) -> Held:
    if base.what is What.MODULE:
        return _of_module(world_of, called, name, base, env)
    if base.what is What.BOX:
        return _of_box(world_of, called, name, base, env)
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


def moved(world_of: Evaluating, called: Called, name: str, base: Held, env: Environment) -> Held:
    """After `.to(...)`, `.cpu()`, `.cuda()`: elsewhere, or only of another dtype."""
    node = called.node
    base = replace(base, was=base.places if base.moved is None else base.was)
    if name == "cpu":
        return replace(base, places=frozenset({Place(Where.LITERAL, "cpu", node)}), moved=node)
    if name in ACCELERATORS:
        target = node.args[0] if node.args else called.nodes.get("device")
        if target is None or isinstance(target, ast.Constant):
            literal = frozenset({Place(Where.LITERAL, name, node)})
            return replace(base, places=literal, moved=node)
        places = device_places(world_of, target, node, env)
        return replace(base, places=places, moved=node)
    if called.unpacks:
        return replace(base, places=frozenset())
    if "device" in called.nodes:
        places = device_places(world_of, called.nodes["device"], node, env)
        return replace(base, places=places, moved=node)
    if name == "type":
        return _typed_like(world_of, base, node, env)
    if not node.args:
        return base
    return _moved_to(world_of, called, base, node.args[0], env)


def _typed_like(world_of: Evaluating, base: Held, node: ast.Call, env: Environment) -> Held:
    """`x.type(y.type())`: the name of a type says the device too, and so may a variable."""
    asked = node.args[0] if node.args else None
    if asked is None or _is_dtype(world_of, asked):
        return base
    like = asked.func if isinstance(asked, ast.Call) and not asked.args else None
    if isinstance(like, ast.Attribute) and like.attr == "type":
        return replace(base, places=world_of.value(like.value, env).places, moved=node)
    return replace(base, places=frozenset(), moved=node)


def _is_dtype(world_of: Evaluating, node: ast.expr) -> bool:
    """`torch.float32` or `x.dtype`, which a name that is bound to nothing else stands for too."""
    dotted = world_of.world.qualified(node)
    return dotted.endswith(".dtype") or bool(_DTYPES.fullmatch(dotted))


def _moved_to(
    world_of: Evaluating, called: Called, base: Held, target: ast.expr, env: Environment
) -> Held:
    held = called.first or UNKNOWN_HELD
    node = called.node
    if isinstance(target, ast.Constant):
        if isinstance(target.value, str) and not _DEVICE_NAME.fullmatch(target.value):
            return base
    elif held.what is What.TENSOR:  # x.to(y): device and dtype of y
        return replace(base, places=held.places, moved=node)
    elif _says_a_dtype(world_of, target):
        return base
    elif held.what is not What.DEVICE and not _names_device(world_of, base, target):
        return replace(base, places=frozenset(), moved=node)  # a device, a dtype or a tensor
    places = device_places(world_of, target, node, env)
    return replace(base, places=places, moved=node)


def _says_a_dtype(world_of: Evaluating, target: ast.expr) -> bool:
    """`torch.half`, `x.dtype`, a choice of such, or what is called a dtype."""
    if isinstance(target, ast.IfExp):
        return all(_says_a_dtype(world_of, each) for each in (target.body, target.orelse))
    return text_of(target).endswith("dtype") or _is_dtype(world_of, target)


def _names_device(world_of: Evaluating, base: Held, target: ast.expr) -> bool:
    """By its name, by what else the file does with it, or because it moves a module: those are
    seldom only cast, and then to what is called so."""
    text, tree = text_of(target).lower(), world_of.world.tree
    if "device" in text:
        return True
    if isinstance(target, ast.Name) and target.id in tree.once(used_as_devices, tree.root):
        return True
    plain = isinstance(target, (ast.Name, ast.Attribute)) and not _CAST.search(text)
    if not plain or base.what is not What.MODULE:
        return False
    casts = (each for each in tree.nodes(ast.keyword) if each.arg in ("dtype", "torch_dtype"))
    return all(text_of(each.value).lower() != text for each in casts)


def _of_box(world_of: Evaluating, called: Called, name: str, base: Held, env: Environment) -> Held:
    func = called.node.func
    assert isinstance(func, ast.Attribute)
    if name == "to":
        after = Held(What.BOX, each=moved(world_of, called, name, member(base), env))
        if any(each.where is Where.HOST for each in member(base).places):
            _moved_itself(func, after, env)  # what a tokenizer gives is moved in place
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
        _moved_itself(called.node.func, after, env)
        return after
    callee = world_of.world.callee_of(base.cls, name) if base.cls else None
    result = of_callee(world_of, called, callee, base)
    return result if result is not None else UNKNOWN_HELD


def _moved_itself(func: ast.expr, after: Held, env: Environment) -> None:
    """A module is moved in place: its name means the moved one, bound again or not."""
    owner = text_of(the_module_itself(func.value)) if isinstance(func, ast.Attribute) else ""
    if owner in env.values or owner.startswith("self."):
        env.values[owner] = after
