"""Types that annotations name, under whatever names the file knows them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.view import Module

DEVICE = "torch.device"


def names_type(module: Module, annotation: ast.AST | None, name: str) -> bool:
    """`device: torch.device`, `device: "str | torch.device" = "cpu"`, `isinstance(x, th.device)`:
    the type is named in it, alone or among others."""
    return annotation is not None and name in names_said(module, annotation)


def names_said(module: Module, annotation: ast.AST) -> Iterator[str]:
    """The resolved names in an annotation, in order; in a text too."""
    for each in ast.walk(annotation):
        if isinstance(each, (ast.Name, ast.Attribute)):
            yield module.qualified(each)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            try:
                inner = ast.parse(each.value, mode="eval").body
            except (SyntaxError, ValueError):
                continue
            if not isinstance(inner, ast.Constant):
                yield from names_said(module, inner)
