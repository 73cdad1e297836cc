"""An assignment to attributes of `self`, written as the registration of buffers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection

from tensortrail.rules.shared.assignments import pairs_of

Pair = tuple[ast.expr, ast.expr]
_CONTAINERS = (ast.List, ast.Tuple, ast.Dict, ast.Set)
_COMPREHENSIONS = (ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)


def registration(
    function: ast.AST,
    assigned: ast.Assign,
    names: Collection[str],
    text: Callable[[ast.expr], str],
) -> str | None:
    """The source that registers these attributes and assigns what else the statement in the
    function does; None if that would not do the same."""
    pairs = list(pairs_of(assigned))
    targets = {ast.unparse(target) for target, _ in pairs}
    if not targets.issuperset(f"self.{name}" for name in names) or _reads(pairs, targets):
        return None
    if _is_before_super(function, assigned) or any(_is_container(value) for _, value in pairs):
        return None
    lines = [_line(target, value, names, text) for target, value in pairs]
    return f"\n{' ' * assigned.col_offset}".join(lines)


def _reads(pairs: list[Pair], targets: set[str]) -> bool:
    """Whether a later value is made of what an earlier line has set by then."""
    later = [node for _, value in pairs[1:] for node in ast.walk(value)]
    return any(
        isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) in targets
        for node in later
    )


def _is_container(value: ast.expr) -> bool:
    """A buffer is one tensor."""
    return isinstance(value, (*_CONTAINERS, *_COMPREHENSIONS)) or (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Name)
        and value.func.id in ("list", "tuple", "dict", "set")
    )


def _is_before_super(function: ast.AST, assigned: ast.Assign) -> bool:
    """`nn.Module.__init__` makes what buffers are kept in."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "__init__"
        and node.lineno > assigned.lineno
        for node in ast.walk(function)
    )


def _line(
    target: ast.expr, value: ast.expr, names: Collection[str], text: Callable[[ast.expr], str]
) -> str:
    name = target.attr if isinstance(target, ast.Attribute) else ""
    if name in names and ast.unparse(target) == f"self.{name}":
        return f'self.register_buffer("{name}", {text(value)}, persistent=False)'
    return f"{text(target)} = {text(value)}"
