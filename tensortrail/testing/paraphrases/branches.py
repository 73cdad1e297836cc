"""The same decision, taken the other way round."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.testing.conditions import denied
from tensortrail.testing.paraphrases.rewriting import (
    FUNCTIONS,
    Rewrite,
    blocks,
    of_tree,
    replaced,
)

_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def _invert(tree: ast.Module) -> None:
    """`if c: a` -> `if not c: pass`, `else: a`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If):
            node.test = denied(node.test)
            node.body, node.orelse = node.orelse or [ast.Pass()], node.body


def _leave_early(tree: ast.Module) -> None:
    """A last `if c: a` of a function or loop -> `if not c: return`, then `a`."""
    for node in list(ast.walk(tree)):
        if not isinstance(node, (*FUNCTIONS, *_LOOPS)):
            continue
        last = node.body[-1]
        if isinstance(last, ast.If) and not last.orelse:
            away: ast.stmt = ast.Continue() if isinstance(node, _LOOPS) else ast.Return(None)
            node.body[-1:] = [ast.If(denied(last.test), [away], []), *last.body]


def _leave_late(tree: ast.Module) -> None:
    """`if c: return x`, then the rest -> the rest under `else`."""
    for block in list(blocks(tree)):
        for at, statement in enumerate(block[:-1]):
            if not isinstance(statement, ast.If) or statement.orelse:
                continue
            if isinstance(statement.body[-1], (ast.Return, ast.Raise, ast.Continue)):
                statement.orelse = block[at + 1 :]
                del block[at + 1 :]
                break


def _match(tree: ast.Module) -> None:
    """`if isinstance(x, C)`, `if x == "a"`, `if x is None` -> `match x`; else `match bool(c)`."""

    def change(statement: ast.stmt) -> Sequence[ast.stmt]:
        if not isinstance(statement, ast.If):
            return [statement]
        subject, pattern = _matched(statement.test)
        cases = [ast.match_case(pattern, None, statement.body)]
        if statement.orelse:
            cases.append(ast.match_case(ast.MatchAs(), None, statement.orelse))
        return [ast.Match(subject, cases)]

    for block in list(blocks(tree)):
        replaced(block, change)


def _matched(test: ast.expr) -> tuple[ast.expr, ast.pattern]:
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        right = test.comparators[0]
        if isinstance(right, ast.Constant):
            if isinstance(test.ops[0], ast.Eq):
                return test.left, ast.MatchValue(right)
            if isinstance(test.ops[0], ast.Is) and right.value is None:
                return test.left, ast.MatchSingleton(None)
    if isinstance(test, ast.Call) and getattr(test.func, "id", "") == "isinstance":
        wanted = test.args[1]
        if isinstance(wanted, (ast.Name, ast.Attribute)):
            return test.args[0], ast.MatchClass(wanted, [], [], [])
    asked = ast.Call(ast.Name("bool", ast.Load()), [test], [])
    return asked, ast.MatchSingleton(True)


REWRITES: dict[str, Rewrite] = {
    "inverted if": of_tree(_invert),
    "early return": of_tree(_leave_early),
    "late return": of_tree(_leave_late),
    "match": of_tree(_match),
}
