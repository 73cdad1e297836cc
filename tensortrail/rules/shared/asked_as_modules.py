"""What a file treats as a model: it asks it for what only modules have."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Protocol

from tensortrail.rules.text_of import text_of

_ONLY_MODULES = (
    *("eval", "train", "parameters", "named_parameters", "zero_grad"),
    *("state_dict", "load_state_dict"),
)


class _HasCalls(Protocol):
    def calls(self, *names: str, inside: ast.AST | None = None) -> Iterator[ast.Call]: ...


def asked_as_modules(
    module: _HasCalls, *more: str, inside: ast.AST | None = None
) -> frozenset[str]:
    """The expressions, as `ast.unparse` writes them; with `more`, whose methods of these names are
    called too. An optimizer has some of these methods: look whether the thing is called."""
    called = (each.func for each in module.calls(*_ONLY_MODULES, *more, inside=inside))
    return frozenset(text_of(each.value) for each in called if isinstance(each, ast.Attribute))
