"""Which classes are models of a library, by their names, and which arguments they compute with."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Protocol

from tensortrail.analyzer.places.libraries.library import names
from tensortrail.rules.places import Held

COMPONENT = "component"
"""The `cls` of a module of a library: its code is not read."""


class Named(Protocol):
    def qualified(self, node: ast.AST) -> str: ...
    def is_module_named(self, dotted: str) -> bool:
        """The class is a module, of this project or of a library."""


def is_of_library(dotted: str) -> bool:
    first, _, rest = dotted.partition(".")
    return first in names("components", "packages") and may_be_model(rest.rpartition(".")[2])


def may_be_model(name: str) -> bool:
    """A class of this name is worth looking up."""
    starts, ends = names("components", "starts"), names("components", "ends")
    return name.startswith(tuple(starts)) or name.endswith(tuple(ends))


def says_model(annotation: ast.expr, world: Named) -> bool:
    """The annotation allows for nothing but models, and None."""
    classes = list(_members(annotation))
    return bool(classes) and all(world.is_module_named(world.qualified(each)) for each in classes)


def said_layer(annotation: ast.expr, world: Named) -> str | None:
    """The `cls` of a module for which the annotation names a class of torch; None for others."""
    classes = [world.qualified(each) for each in _members(annotation)]
    if not classes or not all(each.startswith("torch.nn.") for each in classes):
        return None
    lasts = {each.rpartition(".")[2] for each in classes}
    if lasts <= names("modules", "leaf"):
        return "leaf"
    return "" if lasts == {"Module"} else None


def _members(annotation: ast.expr) -> Iterator[ast.expr]:
    """The alternatives of a union, without None."""
    if isinstance(annotation, ast.BinOp):
        yield from _members(annotation.left)
        yield from _members(annotation.right)
    elif isinstance(annotation, ast.Subscript):
        outer = annotation.value
        union = getattr(outer, "attr", getattr(outer, "id", "")) in ("Optional", "Union")
        inner = annotation.slice
        if not union:
            yield annotation
            return
        for each in inner.elts if isinstance(inner, ast.Tuple) else [inner]:
            yield from _members(each)
    elif isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            yield from _members(ast.parse(annotation.value, mode="eval").body)
        except (SyntaxError, ValueError):
            yield annotation
    elif not (isinstance(annotation, ast.Constant) and annotation.value is None):
        yield annotation


def computed_with(args: list[Held], named: dict[str, Held], unpacked: list[Held]) -> list[Held]:
    """Of what is passed to a model of a library, that which meets its parameters."""
    demanded = names("components", "demanded")
    return [*args[:1], *(held for key, held in named.items() if key in demanded), *unpacked]
