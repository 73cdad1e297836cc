"""Changes of a block of statements: each yields the block as it then is."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator

Block = list[ast.stmt]
Change = Callable[[ast.AST, Block], Iterator[Block]]
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.If, ast.For, ast.With)


def _unguarded(_: ast.AST, block: Block) -> Iterator[Block]:
    """`if c: a` -> `a`; `try: a finally: b` -> `a`, then `b`; `a if c else b` is left alone."""
    for at, each in enumerate(block):
        if isinstance(each, ast.If) and not each.orelse:
            yield [*block[:at], *each.body, *block[at + 1 :]]
        if isinstance(each, ast.Try) and each.finalbody and not each.handlers:
            yield [*block[:at], *each.body, *each.finalbody, *block[at + 1 :]]


def _without_statement(_: ast.AST, block: Block) -> Iterator[Block]:
    """`stream.synchronize()` as a statement, an `assert`, `x.part = y`, `x = f(x)` and `x = None`
    are not there."""
    for at, each in enumerate(block):
        if _can_go(each):
            yield block[:at] + block[at + 1 :]


def _can_go(each: ast.stmt) -> bool:
    """What comes after it can still run."""
    if isinstance(each, ast.Expr):
        return isinstance(each.value, ast.Call)
    if isinstance(each, ast.Assign):
        named = any(isinstance(to, ast.Name) for to in each.targets)
        return not named or _is_rebound(each) or ast.unparse(each.value) == "None"
    return isinstance(each, ast.Assert)


def _is_rebound(each: ast.Assign) -> bool:
    return bool(_names(each, ast.Store) & _names(each.value, ast.Load))


def _dropped(_: ast.AST, block: Block) -> Iterator[Block]:
    """`x = f(x)` -> `f(x)`."""
    for at, each in enumerate(block):
        if isinstance(each, ast.Assign) and _is_rebound(each):
            yield [*block[:at], ast.Expr(each.value), *block[at + 1 :]]


def _goes_on(_: ast.AST, block: Block) -> Iterator[Block]:
    """`return x` -> `x`; `return None`, `raise`, `continue` and `break` are not there."""
    for at, each in enumerate(block):
        if isinstance(each, ast.Return) and not isinstance(each.value, (ast.Constant, type(None))):
            yield [*block[:at], ast.Expr(each.value), *block[at + 1 :]]
        elif isinstance(each, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
            yield block[:at] + block[at + 1 :]


def _swapped(_: ast.AST, block: Block) -> Iterator[Block]:
    """A statement and the next one, the other way round."""
    for at, (one, other) in enumerate(itertools.pairwise(block)):
        if not isinstance(one, _SIMPLE) or not isinstance(other, _SIMPLE):
            continue
        if not _names_first(one) & _names(other, ast.Load):
            yield [*block[:at], other, one, *block[at + 2 :]]


def _names_first(each: ast.stmt) -> set[str]:
    """What nothing may have been before: names that the statement binds and does not read."""
    return _names(each, ast.Store) - _names(each, ast.Load)


def _names(part: ast.AST, use: type[ast.expr_context]) -> set[str]:
    names = (each for each in ast.walk(part) if isinstance(each, ast.Name))
    return {each.id for each in names if isinstance(each.ctx, use)}


def _before_its_block(_: ast.AST, block: Block) -> Iterator[Block]:
    """The first statement of a `with` stands before it."""
    for at, each in enumerate(block):
        if isinstance(each, ast.With) and len(each.body) > 1:
            rest = ast.copy_location(ast.With(each.items, each.body[1:]), each)
            yield [*block[:at], each.body[0], rest, *block[at + 1 :]]


def _into_its_block(_: ast.AST, block: Block) -> Iterator[Block]:
    """What stands before a `with`, or after it, stands in it."""
    for at, (one, other) in enumerate(itertools.pairwise(block)):
        if isinstance(other, ast.With) and isinstance(one, (ast.Assign, ast.Expr)):
            inner = ast.copy_location(ast.With(other.items, [one, *other.body]), other)
            yield [*block[:at], inner, *block[at + 2 :]]
        elif isinstance(one, ast.With) and isinstance(other, (ast.Assign, ast.Expr)):
            inner = ast.copy_location(ast.With(one.items, [*one.body, other]), one)
            yield [*block[:at], inner, *block[at + 2 :]]


def _at_each_turn(_: ast.AST, block: Block) -> Iterator[Block]:
    """What stands before a loop, or after it, is done at each of its turns."""
    for at, (one, other) in enumerate(itertools.pairwise(block)):
        if isinstance(other, ast.For) and isinstance(one, ast.Assign):
            yield [*block[:at], _turning(other, [one, *other.body]), *block[at + 2 :]]
        elif isinstance(one, ast.For) and isinstance(other, (ast.Assign, ast.Expr)):
            yield [*block[:at], _turning(one, [*one.body, other]), *block[at + 2 :]]


def _turning(loop: ast.For, body: Block) -> ast.For:
    return ast.copy_location(ast.For(loop.target, loop.iter, body, loop.orelse), loop)


def _without_method(holder: ast.AST, block: Block) -> Iterator[Block]:
    """A class has one method less."""
    for at, each in enumerate(block) if isinstance(holder, ast.ClassDef) else ():
        if isinstance(each, ast.FunctionDef) and each.name not in ("__init__", "__new__"):
            yield block[:at] + block[at + 1 :]


BLOCKS: dict[str, Change] = {
    "guard removed": _unguarded,
    "statement left out": _without_statement,
    "result dropped": _dropped,
    "leaving left out": _goes_on,
    "statements swapped": _swapped,
    "moved before its block": _before_its_block,
    "moved into the block": _into_its_block,
    "done at each turn": _at_each_turn,
    "method left out": _without_method,
}
"""By the name of the change."""
