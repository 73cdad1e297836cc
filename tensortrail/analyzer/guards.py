"""Dominating conditions: what must be true (or false) wherever a node runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from tensortrail.analyzer.tree import SCOPES, Tree, leaves
from tensortrail.rules.words import Guard

Origins = Callable[[ast.expr], tuple[ast.expr, ...]]
_EXPANSIONS = 4


def guards_of(tree: Tree, node: ast.AST, origins: Origins) -> list[Guard]:
    """Innermost first. `origins` gives the expressions a name was assigned from."""
    found: list[Guard] = []
    child = node
    for up in tree.ancestors(node):
        for test, holds in _conditions(tree, up, child):
            found += _atoms(test, holds, origins, _EXPANSIONS)
        if isinstance(up, SCOPES):
            break
        child = up
    return found


def _conditions(tree: Tree, up: ast.AST, child: ast.AST) -> Iterator[tuple[ast.expr, bool]]:
    if isinstance(child, ast.stmt):
        yield from _passed(tree.block_of(child), child)
    if isinstance(up, (ast.If, ast.While)):
        if _in(child, up.body):
            yield up.test, True
        elif isinstance(up, ast.If) and _in(child, up.orelse):
            yield up.test, False
    elif isinstance(up, ast.IfExp):
        if child is up.body:
            yield up.test, True
        elif child is up.orelse:
            yield up.test, False
    elif isinstance(up, ast.BoolOp):
        holds = isinstance(up.op, ast.And)
        for value in up.values:
            if value is child:
                break
            yield value, holds
    elif isinstance(up, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        if not isinstance(child, ast.comprehension):
            for generator in up.generators:
                for test in generator.ifs:
                    yield test, True
    elif isinstance(up, ast.match_case) and child is not up.pattern and up.guard is not None:
        yield up.guard, True


def _passed(block: list[ast.stmt], child: ast.stmt) -> Iterator[tuple[ast.expr, bool]]:
    """Conditions established by statements before `child` in its block."""
    before = block[: next((i for i, each in enumerate(block) if each is child), 0)]
    for statement in reversed(before):
        if isinstance(statement, ast.Assert):
            yield statement.test, True
        elif isinstance(statement, ast.If):
            if any(leaves(each) for each in statement.body):
                yield statement.test, False
            elif any(leaves(each) for each in statement.orelse):
                yield statement.test, True


def _atoms(test: ast.expr, holds: bool, origins: Origins, depth: int) -> list[Guard]:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _atoms(test.operand, not holds, origins, depth)
    if isinstance(test, ast.NamedExpr):
        return _atoms(test.value, holds, origins, depth)
    if isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) == holds:
            return [atom for each in test.values for atom in _atoms(each, holds, origins, depth)]
        return [Guard(test, holds, exact=False)]
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        plain = _against_constant(test, holds)
        if plain is not None:
            return _atoms(*plain, origins, depth)
    if isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "bool":
        return _atoms(test.args[0], holds, origins, depth) if test.args else []
    found = [Guard(test, holds)]
    if isinstance(test, ast.Name) and depth:
        sources = origins(test)
        if len(sources) == 1 and sources[0] is not test:
            found += _atoms(sources[0], holds, origins, depth - 1)
    return found


def _against_constant(test: ast.Compare, holds: bool) -> tuple[ast.expr, bool] | None:
    """`x is True`, `x == False` and the like as (x, polarity)."""
    right = test.comparators[0]
    if not (isinstance(right, ast.Constant) and isinstance(right.value, bool)):
        return None
    if isinstance(test.ops[0], (ast.Is, ast.Eq)):
        return test.left, holds == right.value
    if isinstance(test.ops[0], (ast.IsNot, ast.NotEq)):
        return test.left, holds != right.value
    return None


def _in(child: ast.AST, block: list[ast.stmt]) -> bool:
    return any(each is child for each in block)
