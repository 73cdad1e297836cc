"""What of a function runs before a node of it, and what after it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TypeVar

from tensortrail.analyzer.syntax.blocks import SCOPES, blocks_of, leaves
from tensortrail.analyzer.syntax.enclosing import Enclosing
from tensortrail.analyzer.syntax.outline import Outline, outline

N = TypeVar("N", bound=ast.AST)


class RunningOrder(Enclosing):
    @cached_property
    def _outline(self) -> Outline:
        return outline(self.root)

    @cached_property
    def _places(self) -> dict[ast.AST, tuple[list[ast.stmt], int]]:
        return {
            each: (block, at)
            for node in self._outline.holders
            for block in blocks_of(node)
            for at, each in enumerate(block)
        }

    def block_of(self, statement: ast.AST) -> tuple[list[ast.stmt], int]:
        """The list of statements this one stands in, and its index there; ([], 0) for none."""
        return self._places.get(statement, ([], 0))

    @cached_property
    def leaving(self) -> set[ast.AST]:
        """The statements after which control never passes to the next one of their block."""
        found: set[ast.AST] = set()
        for node in reversed(self.nodes(ast.stmt)):  # what one holds comes before itself
            if leaves(node, found):
                found.add(node)
        return found

    @cached_property
    def _last_leaving(self) -> dict[int, int]:
        """For the id of a block, the index of its last statement that leaves."""
        found: dict[int, int] = {}
        for statement in self.leaving:
            block, at = self.block_of(statement)
            found[id(block)] = max(at, found.get(id(block), -1))
        return found

    def contexts_of(self, node: ast.AST) -> Sequence[ast.expr]:
        return [
            item.context_expr
            for up, child in self._climb(node)
            if isinstance(up, (ast.With, ast.AsyncWith)) and self.block_of(child)[0] is up.body
            for item in reversed(up.items)
        ]

    def later(self, node: ast.AST, kind: type[N]) -> Iterator[N]:
        start = self.statement_of(node)
        yield from self._rest_of_statement(node, start, kind)
        loops: list[tuple[ast.For | ast.AsyncFor | ast.While, int]] = []
        for up, child in self._climb(start):
            block, at = self.block_of(child)
            follows = isinstance(child, ast.stmt)  # of cases and handlers one runs
            if follows and at + 1 < len(block):
                yield from self._forwards(block[at + 1], block[-1], kind)
            if self._last_leaving.get(id(block), -1) > at:
                break
            if isinstance(up, (ast.For, ast.AsyncFor, ast.While)) and block is up.body:
                loops.append((up, at))
            if isinstance(up, ast.Try) and up.finalbody and block is not up.finalbody:
                yield from self._forwards(up.finalbody[0], up.finalbody[-1], kind)
        for loop, at in loops:
            if isinstance(loop, ast.While):
                yield from self._forwards(loop.test, loop.test, kind)
            if at:
                yield from self._forwards(loop.body[0], loop.body[at - 1], kind)

    def _rest_of_statement(self, node: ast.AST, stop: ast.stmt, kind: type[N]) -> Iterator[N]:
        """What the statement itself still evaluates after `node`: enclosing calls, right sides."""
        for up in self.ancestors(node):
            if up is stop or isinstance(up, ast.stmt):
                break
            if isinstance(up, kind):
                yield up

    def earlier(self, node: ast.AST, kind: type[N]) -> Iterator[N]:
        for up, child in self._climb(node):
            block, at = self.block_of(child) if isinstance(child, ast.stmt) else ([], 0)
            if at:
                yield from self._backwards(block[0], block[at - 1], kind)
            if isinstance(up, ast.Try) and block is not up.body:
                yield from self._backwards(up.body[0], up.body[-1], kind)
            if isinstance(up, (ast.If, ast.While)):
                yield from self._forwards(up.test, up.test, kind)

    def _climb(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """(parent, child) pairs upwards, to the end of the function around `node`."""
        child = node
        for up in self.ancestors(node):
            yield up, child
            if isinstance(up, (*SCOPES, ast.ClassDef)):
                return
            child = up
