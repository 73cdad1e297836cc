"""What the parameters of a function are where a call leaves them out."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.objects import is_none


def with_defaults(arguments: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    """The parameters that may be left out, with what they are then."""
    positional = [*arguments.posonlyargs, *arguments.args]
    yield from zip(reversed(positional), reversed(arguments.defaults), strict=False)
    for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            yield each, default


def none_by_default(arguments: ast.arguments, name: str) -> ast.arg | None:
    """The parameter of that name, if it is None where a call leaves it out."""
    left_out = (each for each, default in with_defaults(arguments) if is_none(default))
    return next((each for each in left_out if each.arg == name), None)
