"""What a file stores under a name, seen without following values."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.view import Module

_UNPACKING = (ast.Tuple, ast.List, ast.Starred)


def stored_under(module: Module, name: str) -> Iterator[ast.expr]:
    """All that a name may be made of, anywhere in the file: the value of an assignment, what a loop
    goes through, the context of a `with`. Of what is unpacked, all its parts."""
    for use in module.uses(name):
        if isinstance(use.ctx, ast.Store):
            yield from _stored(module, use)


def _stored(module: Module, target: ast.expr) -> Iterator[ast.expr]:
    above = module.parent(target)
    is_part = isinstance(above, _UNPACKING)
    while isinstance(above, _UNPACKING):
        above = module.parent(above)
    source = next((found for each in _FIELDS if (found := getattr(above, each, None))), None)
    if not isinstance(source, ast.expr):
        return
    yield source
    if is_part:
        yield from module.nodes(ast.expr, source)


_FIELDS = ("value", "iter", "context_expr")
"""Where nodes that bind names have what they bind them to."""
