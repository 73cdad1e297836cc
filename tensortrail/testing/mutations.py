"""Good examples made bad by one small change: a guard removed, a condition turned, a keyword, a
statement, a move or a `detach` left out. A rule whose good example holds by it must notice."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from tensortrail.rules.examples import Good


@dataclass(frozen=True)
class Mutant:
    """A good example that may no longer be one."""

    name: str
    """Of the change."""
    source: str


def mutants(example: Good) -> Iterator[Mutant]:
    """Every change that can be made to the example, one at a time."""
    before = ast.unparse(ast.parse(example.source))
    for name, change in _CHANGES.items():
        for place in range(sum(1 for _ in ast.walk(ast.parse(example.source)))):
            tree = ast.parse(example.source)
            node = list(ast.walk(tree))[place]
            if not change(node):
                continue
            after = ast.unparse(ast.fix_missing_locations(tree))
            if after != before and _compiles(after):
                yield Mutant(name, after + "\n")


def _unguarded(node: ast.AST) -> bool:
    """`if c: a` -> `a`; `a if c else b` is left alone."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if not isinstance(block, list):
            continue
        for at, each in enumerate(block):
            if isinstance(each, ast.If) and not each.orelse:
                block[at : at + 1] = each.body
                return True
            if isinstance(each, ast.Try) and each.finalbody and not each.handlers:
                block[at : at + 1] = [*each.body, *each.finalbody]
                return True
    return False


def _turned(node: ast.AST) -> bool:
    """`if c:` -> `if not c:`."""
    if isinstance(node, (ast.If, ast.IfExp)):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return True
    return False


def _without_keyword(node: ast.AST) -> bool:
    """`f(x, device=d)` -> `f(x)`."""
    if isinstance(node, ast.Call) and node.keywords and node.keywords[-1].arg:
        node.keywords.pop()
        return True
    return False


def _halved(node: ast.AST) -> bool:
    """`a and b` -> `a`."""
    if isinstance(node, ast.BoolOp) and len(node.values) == 2:
        node.values[1] = node.values[0]
        return True
    return False


def _without_statement(node: ast.AST) -> bool:
    """`stream.synchronize()` as a statement is not there."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        node.value = ast.Constant(value=None)
        return True
    return False


def _unmoved(node: ast.AST) -> bool:
    """`x.to(d)` -> `x`."""
    return _is_left_out(node, ("to", "cpu", "cuda"))


def _undetached(node: ast.AST) -> bool:
    """`x.detach()` -> `x`, `x.item()` -> `x`."""
    return _is_left_out(node, ("detach", "item"))


def _is_left_out(node: ast.AST, methods: Collection[str]) -> bool:
    for name, field in ast.iter_fields(node):
        for at, each in enumerate(field if isinstance(field, list) else [field]):
            func = each.func if isinstance(each, ast.Call) else None
            if not (isinstance(func, ast.Attribute) and func.attr in methods):
                continue
            if isinstance(field, list):
                field[at] = func.value
            else:
                setattr(node, name, func.value)
            return True
    return False


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True


_CHANGES: dict[str, Callable[[ast.AST], bool]] = {
    "guard removed": _unguarded,
    "condition turned": _turned,
    "keyword left out": _without_keyword,
    "half a condition": _halved,
    "statement left out": _without_statement,
    "move left out": _unmoved,
    "detach left out": _undetached,
}
