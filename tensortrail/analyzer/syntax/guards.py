"""Dominating conditions: what must be true (or false) wherever a node runs."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import chain, islice

from tensortrail.analyzer.syntax.cases import condition_of
from tensortrail.analyzer.syntax.tree import SCOPES, Tree
from tensortrail.rules.words import Branch, Guard

Origins = Callable[[ast.expr], tuple[ast.expr, ...]]
Condition = tuple[ast.expr, bool]
_EXPANSIONS = 4
MOST = 100
"""Guards of one node: of those further out nothing is said."""


class Guards:
    """The guards of one file's nodes. `origins` gives the expressions a name was assigned from."""

    def __init__(self, tree: Tree, origins: Origins) -> None:
        self._tree = tree
        self._origins = origins
        self._known: dict[Condition, list[Guard]] = {}
        self._of_blocks: dict[int, tuple[list[int], list[Condition]]] = {}
        self._parts: dict[ast.expr, int] = {}
        self._of_cases: dict[ast.match_case, Condition | None] = {}
        self._refused: dict[ast.Match, list[Guard]] = {}
        self._refused_before: dict[ast.match_case, int] = {}
        self._found: dict[ast.AST, tuple[Guard, ...]] = {}

    def of(self, node: ast.AST) -> tuple[Guard, ...]:
        """Innermost first."""
        climbed: list[tuple[ast.AST, ast.AST]] = []
        child = node
        for up in self._tree.ancestors(node):
            if child in self._found:
                break
            climbed.append((up, child))
            child = up
            if isinstance(up, SCOPES):
                break
        for up, child in reversed(climbed):
            outer = () if isinstance(up, SCOPES) else self._found.get(up, ())
            own = tuple(islice(self._own(up, child), MOST))
            self._found[child] = (*own, *outer)[:MOST] if own else outer
        return self._found.get(node, ())

    def _atoms(self, condition: Condition) -> list[Guard]:
        if condition not in self._known:
            self._known[condition] = _atoms(*condition, self._origins, _EXPANSIONS)
        return self._known[condition]

    def branches(self, inside: ast.AST | None = None) -> Iterator[Branch]:
        """Every block that runs under a condition, with what holds in it: the branches of an
        `if`, the cases of a `match`, and what follows an `if` that leaves."""
        for statement in self._tree.nodes(ast.If, inside):
            yes, no = self._atoms((statement.test, True)), self._atoms((statement.test, False))
            yield Branch(statement, tuple(yes), statement.body)
            block, at = self._tree.block_of(statement)
            rest = block[at + 1 : at + 1 + MOST]
            if statement.orelse:
                yield Branch(statement, tuple(no), statement.orelse)
            elif rest and any(each in self._tree.leaving for each in statement.body):
                yield Branch(statement, tuple(no), rest)
        for match in self._tree.nodes(ast.Match, inside):
            for case in match.cases:
                yield Branch(match, tuple(self._of_case(match, case)), case.body)

    def _case(self, match: ast.Match, case: ast.match_case) -> Condition | None:
        """What the pattern asks, as the same condition each time."""
        if case not in self._of_cases:
            self._of_cases[case] = condition_of(match, case)
        return self._of_cases[case]

    def _of_case(self, match: ast.Match, taken: ast.match_case) -> Iterator[Guard]:
        """What holds in a case: its own condition, and none of those before it."""
        own = self._case(match, taken)
        if match not in self._refused:
            self._refuse(match)
        refused = self._refused[match][: min(self._refused_before[taken], MOST)]
        return chain(self._atoms(own) if own is not None else (), refused)

    def _refuse(self, match: ast.Match) -> None:
        """Note what does not hold after each case: in one list for all, as there may be many."""
        refused: list[Guard] = []
        before: dict[ast.match_case, int] = {}
        for case in match.cases:
            before[case] = len(refused)
            asked = self._case(match, case)
            if asked is not None and case.guard is None:
                refused += self._atoms((asked[0], not asked[1]))
        self._refused_before.update(before)
        self._refused[match] = refused

    def _own(self, up: ast.AST, child: ast.AST) -> Iterator[Guard]:
        """What `child` being a part of `up` says, and what stands before it there."""
        yield from (atom for each in self._conditions(up, child) for atom in self._atoms(each))
        if isinstance(up, ast.match_case) and isinstance(child, ast.stmt):
            match = self._tree.parent(up)
            if isinstance(match, ast.Match):
                yield from self._of_case(match, up)

    def _conditions(self, up: ast.AST, child: ast.AST) -> Iterator[Condition]:
        block, at = self._tree.block_of(child)
        if isinstance(child, ast.stmt):
            yield from self._passed(block, at)
        if isinstance(up, (ast.If, ast.While)):
            if block is up.body:
                yield up.test, True
            elif isinstance(up, ast.If) and block is up.orelse:
                yield up.test, False
        elif isinstance(up, ast.IfExp):
            if child is up.body:
                yield up.test, True
            elif child is up.orelse:
                yield up.test, False
        elif isinstance(up, ast.BoolOp):
            yield from self._parts_before(up, child)
        elif isinstance(up, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            if not isinstance(child, ast.comprehension):
                for generator in up.generators:
                    for test in generator.ifs:
                        yield test, True
        elif isinstance(up, ast.match_case) and child is not up.pattern and up.guard is not None:
            yield up.guard, True

    def _parts_before(self, whole: ast.BoolOp, child: ast.AST) -> Iterator[Condition]:
        """Those that decided whether the evaluation comes to `child` at all."""
        if whole.values[0] not in self._parts:
            self._parts.update((each, at) for at, each in enumerate(whole.values))
        at = self._parts[child] if isinstance(child, ast.expr) else 0
        for value in whole.values[max(0, at - MOST) : at]:
            yield value, isinstance(whole.op, ast.And)

    def _passed(self, block: list[ast.stmt], at: int) -> Iterator[Condition]:
        """Conditions established by the statements before this place in a block, nearest first."""
        if id(block) not in self._of_blocks:
            some = [
                (number, condition)
                for number, each in enumerate(block)
                if (condition := self._established(each)) is not None
            ]
            self._of_blocks[id(block)] = [number for number, _ in some], [each for _, each in some]
        numbers, conditions = self._of_blocks[id(block)]
        end = bisect_left(numbers, at)
        return reversed(conditions[max(0, end - MOST) : end])

    def _established(self, statement: ast.stmt) -> Condition | None:
        leaving = self._tree.leaving
        if isinstance(statement, ast.Assert):
            return statement.test, True
        if isinstance(statement, ast.If):
            if any(each in leaving for each in statement.body):
                return statement.test, False
            if any(each in leaving for each in statement.orelse):
                return statement.test, True
        if isinstance(statement, ast.Match):
            for case in statement.cases:
                asked = self._case(statement, case)
                if asked and case.guard is None and any(each in leaving for each in case.body):
                    return asked[0], not asked[1]
        return None


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
