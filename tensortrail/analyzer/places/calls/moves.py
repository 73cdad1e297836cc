"""Where a tensor or module lies after `.to(...)`, `.cpu()`, `.cuda()` or `.type(...)`."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.places.attributes.moved_attributes import the_module_itself
from tensortrail.analyzer.places.calls.called import Called, device_places
from tensortrail.analyzer.places.calls.evaluating import Evaluating
from tensortrail.analyzer.places.held.devices import used_as_devices
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.patterns import pattern
from tensortrail.rules.places import UNKNOWN_HELD, Held, Place, What, Where
from tensortrail.rules.shared.moves import ACCELERATORS, MOVES
from tensortrail.rules.text_of import text_of

_DEVICE_NAME = pattern(r"(cpu|cuda|meta|mps|xpu|npu|hpu|xla)(:\d+)?")
MOVES_OR_CASTS = MOVES | {"type"}
"""`x.type(...)` may name a type of the CPU."""
_CAST = pattern(r"type|prec|half|float|fp\d|bf\d|bit")
_DTYPES = pattern(r"torch\.(b?float|int|uint|half|long|double|bool|short|complex)\w*")


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


def moved_itself(func: ast.expr, after: Held, env: Environment) -> None:
    """A module is moved in place: its name means the moved one, bound again or not."""
    owner = text_of(the_module_itself(func.value)) if isinstance(func, ast.Attribute) else ""
    if owner in env.values or owner.startswith("self."):
        env.values[owner] = after
