"""The syntax tree of a file with the ways through it: up, sideways, by type, in running order."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from tensortrail.analyzer.syntax.blocks import block_fields, blocks_of, leaves
from tensortrail.analyzer.syntax.names import dotted_name
from tensortrail.analyzer.syntax.walk import Numbers, Walked, last_below, walk
from tensortrail.rules.shared.objects import last_name
from tensortrail.rules.view import FunctionNode

N = TypeVar("N", bound=ast.AST)
A = TypeVar("A")
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_ABSTRACT = frozenset({ast.AST, ast.stmt, ast.expr, ast.pattern, ast.excepthandler})
_BINDING: tuple[type[ast.AST], ...] = (
    *SCOPES, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping
)  # fmt: skip
"""What binds a name that is no node."""
_ASKING = frozenset({"isinstance", "hasattr", "is_tensor", "type"})


class Tree:
    """The walk over all nodes is put off until something asks for it."""

    def __init__(self, root: ast.Module) -> None:
        self.root = root
        self._answers: dict[tuple[Callable[..., Any], ast.AST], Any] = {}
        self._by_type: dict[type[ast.AST], tuple[list[ast.AST], Numbers]] = {}
        self._ends: dict[ast.AST, int] = {}
        self._ranges: dict[tuple[type[ast.AST], ast.AST], tuple[int, int]] = {}

    def once(self, question: Callable[[Tree, N], A], about: N) -> A:
        """`question(tree, about)`, answered once."""
        if (question, about) not in self._answers:
            self._answers[question, about] = question(self, about)
        answer: A = self._answers[question, about]
        return answer

    @cached_property
    def _walked(self) -> Walked:
        return walk(self.root)

    @property
    def _order(self) -> list[ast.AST]:
        return self._walked.order

    @cached_property
    def _number(self) -> dict[ast.AST, int]:
        return dict(zip(self._order, range(len(self._order)), strict=True))

    def _last(self, node: ast.AST) -> int:
        """The number of the last node below it."""
        if node not in self._ends:
            self._ends[node] = self._number[last_below(node)]
        return self._ends[node]

    @cached_property
    def _outline(self) -> Outline:
        return _outline(self.root)

    @cached_property
    def definitions(self) -> dict[str, ast.AST]:
        """Classes and functions by their dotted name in the file; the first of a name."""
        found: dict[str, ast.AST] = {}
        for name, node in self._outline.definitions:
            found.setdefault(name, node)
        return found

    @cached_property
    def top(self) -> FunctionNode:
        """What runs when the file itself does, as if it were the body of a function."""
        body = [each for each in self.root.body if not isinstance(each, (*SCOPES, ast.ClassDef))]
        made = ast.parse("def top(): pass").body[0]
        assert isinstance(made, ast.FunctionDef)
        made.name, made.body = "<module>", body or made.body
        return made

    @cached_property
    def _qualnames(self) -> dict[ast.AST, str]:
        return {node: name for name, node in self._outline.definitions}

    @cached_property
    def global_stores(self) -> dict[str, list[ast.Name]]:
        """Where functions assign to a name of the file that they declare `global`."""
        found: dict[str, list[ast.Name]] = {}
        for node in self.nodes(ast.Global):
            function = self.function_of(node)
            for name in self.nodes(ast.Name, function) if function is not None else ():
                if name.id in node.names and isinstance(name.ctx, ast.Store):
                    found.setdefault(name.id, []).append(name)
        return found

    @cached_property
    def bound(self) -> frozenset[str]:
        """Names of which the code of the file may say something, other than to import them."""
        found = {each.id for each in self.nodes(ast.Name) if isinstance(each.ctx, ast.Store)}
        for kind in _BINDING:
            for node in self.nodes(kind):
                for field in ("name", "rest"):
                    found.add(getattr(node, field, None) or "")
        return frozenset(found.union(self._asked))

    @property
    def _asked(self) -> Iterator[str]:
        """Names of which a condition tells what they are."""
        for call in self.nodes(ast.Call):
            first = call.args[0] if call.args else None
            if isinstance(first, ast.Name) and last_name(call.func) in _ASKING:
                yield first.id

    def is_unbound(self, node: ast.expr) -> bool:
        """A name of another file or of Python, or an attribute of one: no code here says of it what
        it is. Constants of other files are known there."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and not (node.id in self._said or node.id.isupper())

    @cached_property
    def _said(self) -> frozenset[str]:
        """Names that the file binds, takes as arguments, or puts something onto."""
        put = (each.value for each in self.nodes(ast.Attribute) if isinstance(each.ctx, ast.Store))
        owners = {dotted_name(each).partition(".")[0] for each in put}
        return self.bound.union(owners, (each.arg for each in self.nodes(ast.arg)))

    def imports(self) -> list[ast.AST]:
        """Every import statement, wherever it stands."""
        return self._outline.imports

    def nodes(self, kind: type[N], inside: ast.AST | None = None) -> Sequence[N]:
        if inside is None:
            return self._of_type(kind)[0]
        start, end = self.numbers(kind, inside)
        return self._of_type(kind)[0][start:end]

    def numbers(self, kind: type[ast.AST], inside: ast.AST | None) -> tuple[int, int]:
        """From which to which of all nodes of that type stand strictly below `inside`."""
        if inside is None:
            return 0, len(self._of_type(kind)[0])
        found = self._ranges.get((kind, inside))
        if found is None:
            number = 0 if inside is self.__dict__.get("top") else self._number[inside]
            found = self._between(number + 1, self._last(inside), kind)[1:]
            self._ranges[kind, inside] = found
        return found

    def _of_type(self, kind: type[N]) -> tuple[list[N], Numbers]:
        if kind not in self._by_type:
            order, _, numbers = self._walked
            found = numbers.get(kind, ())
            if kind in _ABSTRACT:
                found = sorted(
                    chain(*(numbers[each] for each in numbers if issubclass(each, kind)))
                )
            self._by_type[kind] = [order[number] for number in found], found
        return self._by_type[kind]  # type: ignore[return-value]

    def _between(self, first: int, last: int, kind: type[N]) -> tuple[list[N], int, int]:
        """All nodes of that type, and from where to where they have these numbers."""
        nodes, numbers = self._of_type(kind)
        return nodes, bisect_left(numbers, first), bisect_right(numbers, last)

    def _forwards(self, first: ast.AST, last: ast.AST, kind: type[N]) -> Iterator[N]:
        """What stands from the beginning of one node to the end of another one."""
        number, end_number = self._number[first], self._last(last)
        nodes, start, end = self._between(number, end_number, kind)
        return (nodes[at] for at in range(start, end))

    def _backwards(self, first: ast.AST, last: ast.AST, kind: type[N]) -> Iterator[N]:
        number, end_number = self._number[first], self._last(last)
        nodes, start, end = self._between(number, end_number, kind)
        return (nodes[at] for at in range(end - 1, start - 1, -1))

    def below(self, node: ast.AST) -> Sequence[ast.AST]:
        """The node and all below it, parents before children."""
        return self._order[self._number[node] : self._last(node) + 1]

    def parent(self, node: ast.AST) -> ast.AST | None:
        number = self._number.get(node)
        order, parents, _ = self._walked
        return order[parents[number]] if number else None

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        number = self._number.get(node)
        order, parents, _ = self._walked
        while number:  # neither the root nor a node of no tree
            number = parents[number]
            yield order[number]

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        return self._above(node, self._functions)  # type: ignore[return-value]

    def outermost_function_of(self, node: ast.AST) -> FunctionNode | None:
        """The function with no function around it: the unit that flow is run over."""
        number = self._number.get(node)
        return self._outermost[number] if number is not None else None  # type: ignore[return-value]

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        return self._above(node, self._class_nodes)  # type: ignore[return-value]

    def statement_of(self, node: ast.AST) -> ast.stmt:
        number = self._number[node]
        order, parents, _ = self._walked
        while not isinstance(order[number], (ast.stmt, ast.Module)):
            number = parents[number]
        return order[number]  # type: ignore[return-value]

    def _above(self, node: ast.AST, innermost: Sequence[ast.AST | None]) -> ast.AST | None:
        number = self._number.get(node)
        return innermost[self._walked.parents[number]] if number else None

    @cached_property
    def _functions(self) -> list[ast.AST | None]:
        return self._innermost(*SCOPES)

    @cached_property
    def _class_nodes(self) -> list[ast.AST | None]:
        return self._innermost(ast.ClassDef)

    @cached_property
    def _definitions_around(self) -> list[ast.AST | None]:
        return self._innermost(*SCOPES, ast.ClassDef)

    def _innermost(self, *kinds: type[ast.AST]) -> list[ast.AST | None]:
        """For each node the innermost one of these types that it is or stands in."""
        found: list[ast.AST | None] = [None] * len(self._order)
        for number in self._numbers_of(kinds):  # what stands inside comes later
            self._fill(found, number)
        return found

    @cached_property
    def _outermost(self) -> list[ast.AST | None]:
        found: list[ast.AST | None] = [None] * len(self._order)
        for number in self._numbers_of(SCOPES):
            if found[number] is None:
                self._fill(found, number)
        return found

    def _numbers_of(self, kinds: Iterable[type[ast.AST]]) -> list[int]:
        return sorted(chain(*(self._walked.numbers.get(each, ()) for each in kinds)))

    def _fill(self, found: list[ast.AST | None], number: int) -> None:
        node = self._order[number]
        end = self._last(node) + 1
        found[number:end] = [node] * (end - number)

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

    def qualname_of(self, node: ast.AST) -> str:
        """The "Class.method" of a definition, or of the definition around a node."""
        if node not in self._qualnames:  # of a file that is asked for one class no node is counted
            number = self._number.get(node)  # None for a condition that a `case` stands for
            node = (self._definitions_around[number] if number is not None else None) or self.root
        return self._qualnames.get(node, "")

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


class Outline(NamedTuple):
    """What one look at the statements of a file tells, without one into expressions."""

    definitions: list[tuple[str, ast.AST]]
    """Classes and functions by their dotted name in the file."""
    imports: list[ast.AST]
    holders: list[ast.AST]
    """What holds statements, handlers or cases."""


def _outline(root: ast.AST) -> Outline:
    found = Outline([], [], [])
    todo: list[tuple[ast.AST, str]] = [(root, "")]
    while todo:
        node, prefix = todo.pop()
        if isinstance(node, _IMPORTS):
            found.imports.append(node)
        fields = block_fields(type(node))  # type: ignore[arg-type]
        if not fields:
            continue
        found.holders.append(node)
        if isinstance(node, (*SCOPES, ast.ClassDef)):
            found.definitions.append((prefix + node.name, node))
            prefix += f"{node.name}."
        for name in reversed(fields):
            todo += [(each, prefix) for each in reversed(getattr(node, name, None) or ())]
    return found
