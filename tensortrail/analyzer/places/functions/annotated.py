"""What an annotation says of a parameter."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.analyzer.places.functions.world import World
from tensortrail.analyzer.places.libraries.components import COMPONENT, said_layer, says_model
from tensortrail.rules.places import NUMBER, Held, Place, What, Where
from tensortrail.rules.shared.objects import last_name

_PLAIN = frozenset(
    "int float str bool bytes dtype ndarray Callable Path Generator Image PIL np".split()
)
_BOXES = frozenset("list List tuple Tuple Sequence Iterable dict Dict Mapping".split())
_TENSORS = frozenset("Tensor FloatTensor LongTensor IntTensor BoolTensor Parameter".split())


def where_given(name: str) -> frozenset[Place]:
    return frozenset({Place(Where.OF, name)})


def by_annotation(argument: ast.arg, world: World) -> Held | None:
    """None if the annotation does not say."""
    name = argument.arg
    if argument.annotation is None:
        if name == "device" or name.endswith("_device"):
            return Held(What.DEVICE, frozenset({Place(Where.DEVICE, name)}), path=name)
        return None
    said = set(_names_in(argument.annotation))
    if "device" in said or name == "device":
        return Held(What.DEVICE, frozenset({Place(Where.DEVICE, name)}), path=name)
    if said & _TENSORS and not names_other_classes(argument.annotation, world):
        if said & _BOXES:
            boxed = Held(What.TENSOR, where_given(name))
            whole = not said & {"Union", "|"} and "|" not in ast.unparse(argument.annotation)
            return Held(What.BOX, each=boxed, path=name) if whole else None
        mixed = said & _PLAIN
        return Held(What.UNKNOWN if mixed else What.TENSOR, where_given(name), path=name)
    if said & _PLAIN and not said & {"Any", "object"}:
        return NUMBER if not said & _BOXES else Held(What.BOX, each=NUMBER)
    if says_model(argument.annotation, world):
        return Held(What.MODULE, where_given(name), path=name, cls=COMPONENT)
    layer = said_layer(argument.annotation, world)
    if layer is not None:
        return Held(What.MODULE, where_given(name), path=name, cls=layer)
    return Held(What.UNKNOWN, where_given(name), path=name)


def names_other_classes(annotation: ast.expr, world: World) -> bool:
    """What is called like torch's tensors there are classes of the project, and other ones."""
    named = [each for each in ast.walk(annotation) if last_name(each) in _TENSORS]
    return bool(named) and all(world.is_no_tensor(world.qualified(each)) for each in named)


def _names_in(annotation: ast.expr) -> Iterator[str]:
    for node in ast.walk(annotation):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                yield from _names_in(ast.parse(node.value, mode="eval").body)
            except (SyntaxError, ValueError):
                return
