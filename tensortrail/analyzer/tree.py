"""The syntax tree of a file with the ways through it: up, sideways, by type, in running order."""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TypeVar

from tensortrail.rules.view import FunctionNode

N = TypeVar("N", bound=ast.AST)
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef)
_SHARED = (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop)
_IMPORTS = (ast.Import, ast.ImportFrom)
_HOLDERS = (ast.stmt, ast.excepthandler, ast.match_case)
_ABSTRACT = frozenset({ast.AST, ast.stmt, ast.expr, ast.pattern, ast.excepthandler})
_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


class Tree:
    """The walk over all nodes is put off until something asks for it."""

    def __init__(self, root: ast.Module) -> None:
        self.root = root

    @cached_property
    def _walked(self) -> tuple[list[ast.AST], list[int]]:
        return _walk(self.root)

    @property
    def _order(self) -> list[ast.AST]:
        return self._walked[0]

    @cached_property
    def _number(self) -> dict[ast.AST, int]:
        return {node: number for number, node in enumerate(self._order)}

    @cached_property
    def _parents(self) -> dict[ast.AST, ast.AST]:
        order, parents = self._walked
        pairs = zip(order, parents, strict=True)
        return {node: order[parent] for node, parent in pairs if node is not self.root}

    @cached_property
    def _last(self) -> list[int]:
        return _ends_of_subtrees(self._walked[1])

    @cached_property
    def definitions(self) -> dict[str, ast.AST]:
        """Classes and functions by their dotted name in the file; the first of a name."""
        found: dict[str, ast.AST] = {}
        for name, node in _definitions(self.root, ""):
            found.setdefault(name, node)
        return found

    @cached_property
    def _qualnames(self) -> dict[ast.AST, str]:
        return {node: name for name, node in _definitions(self.root, "")}

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

    def imports(self) -> list[ast.AST]:
        """Every import statement, wherever it stands."""
        return [each for each in _statements(self.root) if isinstance(each, _IMPORTS)]

    @cached_property
    def _by_type(self) -> dict[type[ast.AST], tuple[list[ast.AST], list[int]]]:
        found: dict[type[ast.AST], tuple[list[ast.AST], list[int]]] = {}
        for number, node in enumerate(self._order):
            nodes, numbers = found.setdefault(type(node), ([], []))
            nodes.append(node)
            numbers.append(number)
        return found

    def nodes(self, kind: type[N], inside: ast.AST | None = None) -> Sequence[N]:
        first, last = 0, len(self._order) - 1
        if inside is not None:
            number = self._number[inside]
            first, last = number + 1, self._last[number]
        if kind not in _ABSTRACT:
            nodes, numbers = self._by_type.get(kind, ([], []))
            start, end = bisect_left(numbers, first), bisect_right(numbers, last)
            return nodes[start:end]  # type: ignore[return-value]
        return [node for node in self._order[first : last + 1] if isinstance(node, kind)]

    def below(self, node: ast.AST) -> Sequence[ast.AST]:
        """The node and all below it, parents before children."""
        number = self._number[node]
        return self._order[number : self._last[number] + 1]

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        return next((up for up in self.ancestors(node) if isinstance(up, SCOPES)), None)

    def outermost_function_of(self, node: ast.AST) -> FunctionNode | None:
        """The function with no function around it: the unit that flow is run over."""
        around = [up for up in (node, *self.ancestors(node)) if isinstance(up, SCOPES)]
        return around[-1] if around else None

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        return next((up for up in self.ancestors(node) if isinstance(up, ast.ClassDef)), None)

    def statement_of(self, node: ast.AST) -> ast.stmt:
        return next(
            up for up in (node, *self.ancestors(node)) if isinstance(up, (ast.stmt, ast.Module))
        )  # type: ignore[return-value]

    def block_of(self, statement: ast.AST) -> list[ast.stmt]:
        """The list of statements this one stands in."""
        parent = self.parent(statement)
        for name in _BLOCKS:
            block = getattr(parent, name, None)
            if isinstance(block, list) and any(each is statement for each in block):
                return block
        return [statement] if isinstance(statement, ast.stmt) else []

    def contexts_of(self, node: ast.AST) -> Sequence[ast.expr]:
        return [
            item.context_expr
            for up, child in self._climb(node)
            if isinstance(up, (ast.With, ast.AsyncWith)) and child in up.body
            for item in reversed(up.items)
        ]

    def qualname_of(self, node: ast.AST) -> str:
        """The "Class.method" of a definition, or of the definition around a node."""
        if node in self._qualnames:
            return self._qualnames[node]
        around = [
            up for up in (node, *self.ancestors(node)) if isinstance(up, (*SCOPES, ast.ClassDef))
        ]
        return ".".join(up.name for up in reversed(around))

    def later(self, node: ast.AST, kind: type[N]) -> Iterator[N]:
        start = self.statement_of(node)
        yield from self._rest_of_statement(node, start, kind)
        loops: list[ast.AST] = []
        for up, child in self._climb(start, include_self=True):
            block = self.block_of(child)
            at = next((i for i, each in enumerate(block) if each is child), None)
            after = block[at + 1 :] if at is not None else []
            yield from _all(after, kind)
            if at is not None and _ends(after):
                break
            if isinstance(up, (ast.For, ast.AsyncFor, ast.While)) and child in up.body:
                loops.append(up)
            if isinstance(up, ast.Try) and child not in up.finalbody:
                yield from _all(up.finalbody, kind)
        for loop in loops:
            body: list[ast.stmt] = loop.body  # type: ignore[attr-defined]
            head = loop.test if isinstance(loop, ast.While) else None
            if head is not None:
                yield from (each for each in in_order(head) if isinstance(each, kind))
            for each in body:
                if each is start or any(up is each for up in self.ancestors(start)):
                    break
                yield from (below for below in in_order(each) if isinstance(below, kind))

    def _rest_of_statement(self, node: ast.AST, stop: ast.stmt, kind: type[N]) -> Iterator[N]:
        """What the statement itself still evaluates after `node`: enclosing calls, right sides."""
        for up in self.ancestors(node):
            if up is stop or isinstance(up, ast.stmt):
                break
            if isinstance(up, kind):
                yield up

    def earlier(self, node: ast.AST, kind: type[N]) -> Iterator[N]:
        for up, child in self._climb(node, include_self=True):
            block = self.block_of(child) if isinstance(child, ast.stmt) else []
            at = next((i for i, each in enumerate(block) if each is child), 0)
            for before in reversed(block[:at]):
                yield from reversed(list(_all([before], kind)))
            if isinstance(up, ast.Try) and not any(each is child for each in up.body):
                yield from reversed(list(_all(up.body, kind)))
            if isinstance(up, (ast.If, ast.While)):
                yield from (each for each in in_order(up.test) if isinstance(each, kind))

    def _climb(
        self, node: ast.AST, include_self: bool = False
    ) -> Iterator[tuple[ast.AST, ast.AST]]:
        """(parent, child) pairs upwards, to the end of the function around `node`."""
        child = node
        for up in self.ancestors(node):
            yield up, child
            if isinstance(up, (*SCOPES, ast.ClassDef)):
                return
            child = up


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements below, without a look into expressions."""
    for name in _BLOCKS:
        block = getattr(node, name, ())
        for each in block if isinstance(block, list) else ():
            if isinstance(each, ast.stmt):
                yield each
            if isinstance(each, _HOLDERS):
                yield from _statements(each)


def _definitions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for name in _BLOCKS:
        block = getattr(node, name, ())
        for each in block if isinstance(block, list) else ():
            if isinstance(each, (*SCOPES, ast.ClassDef)):
                yield prefix + each.name, each
                yield from _definitions(each, f"{prefix}{each.name}.")
            elif isinstance(each, _HOLDERS):
                yield from _definitions(each, prefix)


def in_order(node: ast.AST) -> Sequence[ast.AST]:
    """The node and all below it, parents before children; for a node of no tree at hand."""
    return _walk(node)[0]


def _walk(root: ast.AST) -> tuple[list[ast.AST], list[int]]:
    """All nodes, parents before children, and the number of each one's parent.

    Contexts and operators are left out: ast shares one object for all places."""
    order: list[ast.AST] = []
    parents: list[int] = []
    stack: list[tuple[ast.AST, int]] = [(root, 0)]
    while stack:
        node, parent = stack.pop()
        number = len(order)
        order.append(node)
        parents.append(parent)
        children: list[tuple[ast.AST, int]] = []
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                children += [(each, number) for each in value if isinstance(each, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, _SHARED):
                children.append((value, number))
        stack += reversed(children)
    return order, parents


def _ends_of_subtrees(parents: list[int]) -> list[int]:
    """For each node the number of the last one below it."""
    last = list(range(len(parents)))
    for number in range(len(parents) - 1, 0, -1):
        parent = parents[number]
        last[parent] = max(last[parent], last[number])
    return last


def _all(statements: Sequence[ast.stmt], kind: type[N]) -> Iterator[N]:
    for statement in statements:
        yield from (each for each in in_order(statement) if isinstance(each, kind))


def _ends(block: Sequence[ast.stmt]) -> bool:
    """The block always leaves the function or the loop round."""
    return any(leaves(statement) for statement in block)


def leaves(statement: ast.stmt) -> bool:
    """Control never passes from this statement to the next one of its block."""
    if isinstance(statement, (ast.Return, ast.Raise, ast.Continue, ast.Break)):
        return True
    if isinstance(statement, ast.If):
        return _ends(statement.body) and _ends(statement.orelse)
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return _ends(statement.body) and not suppresses(statement)
    if isinstance(statement, ast.Try):
        tried = _ends(statement.body) or _ends(statement.orelse)
        handled = all(_ends(handler.body) for handler in statement.handlers)
        return _ends(statement.finalbody) or (tried and handled)
    return False


def suppresses(statement: ast.With | ast.AsyncWith) -> bool:
    """`with suppress(...)`, `with raises(...)`: the body may end anywhere, and the code goes on."""
    called = (each.context_expr for each in statement.items)
    return any(
        isinstance(each, ast.Call) and _last_part(each.func) in ("suppress", "raises")
        for each in called
    )


def _last_part(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
