"""Whose dtype, shape or length a factory call takes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.rules.devices.shared.meetings.going_along import (
    goes_with_callers,
    place_of_callers,
)
from tensortrail.rules.places import FunctionPlaces, Place, What, Where
from tensortrail.rules.shared.objects import called, last_name
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module


def whose_dtype(places: FunctionPlaces, made: ast.Call) -> ast.expr | None:
    """`x` of `dtype=x.dtype`, if it is a tensor: only these have a dtype that torch takes."""
    like = dtype_taken_of(made)
    held = places.seen.get(like) if like is not None else None
    return like if held is not None and goes_with_callers(held) else None


def dtype_taken_of(made: ast.Call) -> ast.expr | None:
    """`x` of `dtype=x.dtype`, whatever it is."""
    said = next((each.value for each in made.keywords if each.arg == "dtype"), None)
    return said.value if isinstance(said, ast.Attribute) and said.attr == "dtype" else None


def whose_shape(module: Module, places: FunctionPlaces, made: ast.Call) -> ast.expr | None:
    """`x` of `x.shape` or `x.size()` among the sizes, if it is a tensor."""
    asked = (_shaped_in(module, places, each) for each in _sizes(made))
    return next(filter(None, asked), None)


def _shaped_in(module: Module, places: FunctionPlaces, size: ast.expr) -> ast.expr | None:
    for node in (size, *module.nodes(ast.Attribute, size)):
        asked = isinstance(node, ast.Attribute) and node.attr in ("shape", "size")
        if asked and isinstance(node, ast.Attribute) and _is_tensor(places, node.value):
            return node.value
    return None


def has_its_shape(module: Module, places: FunctionPlaces, made: ast.AST, there: Place) -> bool:
    """`x * torch.linspace(0, 1, x.shape[2])`: it is made for the argument whose place it meets."""
    return there.subject in _shaped_as(module, places, made)


def has_shape_of_an_argument(module: Module, places: FunctionPlaces, made: ast.AST) -> bool:
    """It is made for one of the tensors that the function is given, whichever it meets."""
    return bool(_shaped_as(module, places, made))


def _shaped_as(module: Module, places: FunctionPlaces, made: ast.AST) -> set[str]:
    """The arguments that the sizes are read of."""
    if not isinstance(made, ast.Call):
        return set()
    asked = (whose_shape, whose_size, _whose_length)
    like = next(filter(None, (each(module, places, made) for each in asked)), None)
    held = places.seen.get(like) if like is not None else None
    found = held.places if held is not None else frozenset()
    return {each.subject for each in found if each.where is Where.OF}


def _whose_length(module: Module, places: FunctionPlaces, made: ast.Call) -> ast.expr | None:
    """`x` of `torch.arange(len(x))`, which numbers its rows, or of `torch.zeros(len(x), n)`."""
    asked = (_counted_in(module, places, each) for each in _sizes(made))
    return next(filter(None, asked), None)


def _counted_in(module: Module, places: FunctionPlaces, size: ast.expr) -> ast.expr | None:
    for node in (size, *module.nodes(ast.Call, size)):
        asked = isinstance(node, ast.Call) and called(node) == "len" and node.args
        if asked and isinstance(node, ast.Call) and _is_tensor(places, node.args[0]):
            return node.args[0]
    return None


def whose_size(module: Module, places: FunctionPlaces, made: ast.Call) -> ast.expr | None:
    """`x` of `rows = x.size(0)`, `n, rows = x.shape` or `rows = len(x)`, if `rows` is among the
    sizes."""
    arguments = _sizes(made)
    names = [name for each in arguments for name in (each, *module.nodes(ast.Name, each))]
    bound = module.once(_bound_to_sizes, module.top)
    for name in names:
        if not isinstance(name, ast.Name) or name.id not in bound:
            continue
        origins = module.value_of(name).origins
        for origin in origins if len(origins) == 1 else ():
            listed = behind(module, origin)
            asked = (ask(module, places, listed) for ask in (_shaped_in, _counted_in))
            found = next(filter(None, asked), None)
            if found is not None:
                return found
    return None


def _bound_to_sizes(module: Module, file: ast.AST) -> set[str]:
    """Names that the file assigns from something with `x.shape`, `x.size` or `len(x)` in it."""
    found: set[str] = set()
    asked = (*module.members("shape"), *module.members("size"), *module.calls("len"))
    for node in asked:
        for above in module.ancestors(node):
            targets = getattr(above, "targets", None) or [getattr(above, "target", None)]
            below = (part for each in targets if each is not None for part in ast.walk(each))
            found.update(each.id for each in below if isinstance(each, ast.Name))
            if isinstance(above, ast.stmt):
                break
    return found | set(_unpacked(module, found))


def _unpacked(module: Module, sizes: set[str]) -> Iterator[str]:
    """`n`, `h`, `w` of `n, h, w = shape`, after `shape = list(x.shape)`."""
    for statement in module.nodes(ast.Assign):
        if isinstance(statement.value, ast.Name) and statement.value.id in sizes:
            yield from (
                each.id
                for target in statement.targets
                for each in ast.walk(target)
                if isinstance(each, ast.Name)
            )


def _sizes(made: ast.Call) -> Sequence[ast.expr]:
    """Its arguments, if they say how large it is, and not what is in it."""
    func = made.func
    name = last_name(func)
    return () if name in ("tensor", "as_tensor", "asarray") else made.args


def _is_tensor(places: FunctionPlaces, node: ast.expr) -> bool:
    held = places.seen.get(node)
    if held is None or held.what is not What.UNKNOWN:
        return held is not None and place_of_callers(held) is not None
    return held.only is not None and held.only in _taken_as_tensors(places)


def _taken_as_tensors(places: FunctionPlaces) -> Iterator[Place]:
    """Where the operands lie that operations take as tensors: what the argument `x` of
    `n = x.shape[0]` is, `x * torch.arange(n)` says."""
    for meeting in places.meetings:
        for held in (meeting.left, meeting.right):
            if held.what is What.TENSOR and held.only is not None:
                yield held.only
