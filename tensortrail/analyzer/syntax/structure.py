"""The part of a `Module` that the syntax tree and the text of the file answer."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeVar, cast

from tensortrail.analyzer.reading.source import Source
from tensortrail.analyzer.syntax.evaluation import targets_last
from tensortrail.analyzer.syntax.name_index import NameIndex
from tensortrail.analyzer.syntax.names import Names, dotted_name
from tensortrail.analyzer.syntax.shadows import Shadows, is_shadowed, shadows
from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.findings import Edit, Site
from tensortrail.rules.view import FunctionNode

N = TypeVar("N", bound=ast.AST)
A = TypeVar("A")


class Structure:
    """Where nodes stand: below, around, before and after each other."""

    name: str
    tree: Tree
    source: Source
    names: Names
    kept: bytes
    tick: Callable[[], None]

    def __init__(self) -> None:
        self._qualified: dict[ast.AST, str] = {}
        self._answers: dict[tuple[Callable[..., Any], ast.AST], Any] = {}

    def once(self, question: Callable[[Any, N], A], about: N) -> A:
        if (question, about) not in self._answers:
            self._answers[question, about] = question(self, about)
        answer: A = self._answers[question, about]
        return answer

    # --- names ---------------------------------------------------------------------------
    def qualified(self, node: ast.AST) -> str:
        known = self._qualified.get(node)
        if known is None:
            self.tick()
            known = self._qualified[node] = self.resolved(node)
        return known

    def definition_named(self, dotted: str) -> ast.AST | None:
        """The class or function of that name inside this file ("Class.method" too)."""
        return self.tree.definitions.get(dotted)

    def local_name(self, name: str) -> str:
        """A qualified name of this file as it stands in it."""
        return name.removeprefix(f"{self.name}.") if self.name else name

    def resolved(self, node: ast.AST) -> str:
        """The dotted name, its first part replaced by what it is imported from."""
        if self._shadows and is_shadowed(self.tree, self._shadows, node):
            return dotted_name(node)
        return self.names.qualified(node)

    @cached_property
    def _shadows(self) -> Shadows:
        return shadows(self.tree, self.names.imported, self.kept)

    def text(self, node: ast.AST) -> str:
        """Rules ask for that of the same nodes."""
        self.tick()
        known = self._texts.get(node)
        if known is None:
            known = self._texts[node] = self.source.text(*self.source.span(node))
        return known

    @cached_property
    def _texts(self) -> dict[ast.AST, str]:
        return {}

    def nodes(self, kind: type[N], inside: ast.AST | None = None) -> Sequence[N]:
        return self.tree.nodes(kind, inside)

    def uses(self, name: str, inside: ast.AST | None = None) -> Sequence[ast.Name]:
        return self._uses.named(name, *self.tree.numbers(ast.Name, inside))

    def members(self, name: str, inside: ast.AST | None = None) -> Sequence[ast.Attribute]:
        return self._members.named(name, *self.tree.numbers(ast.Attribute, inside))

    @cached_property
    def _uses(self) -> NameIndex[ast.Name]:
        return NameIndex(self.tree.nodes(ast.Name), attrgetter("id"))

    @cached_property
    def _members(self) -> NameIndex[ast.Attribute]:
        return NameIndex(self.tree.nodes(ast.Attribute), attrgetter("attr"))

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self.tree.parent(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        return self.tree.ancestors(node)

    @property
    def top(self) -> FunctionNode:
        return self.tree.top

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        return self.tree.function_of(node)

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        return self.tree.class_of(node)

    def statement_of(self, node: ast.AST) -> ast.stmt:
        return self.tree.statement_of(node)

    def contexts_of(self, node: ast.AST) -> Sequence[ast.expr]:
        return self.tree.contexts_of(node)

    def comments_on(self, node: ast.AST) -> str:
        line: int = node.lineno  # type: ignore[attr-defined]
        found = [self.source.line(line).partition("#")[2]]
        above = line - 1
        while self.source.line(above).lstrip().startswith("#"):
            found.insert(0, self.source.line(above).lstrip().lstrip("#"))
            above -= 1
        return "\n".join(each.strip() for each in found if each)

    def later(self, node: ast.AST, kind: type[N]) -> Iterator[N]:
        found = self.tree.later(node, kind)
        if kind is not ast.Name:
            return found
        names = cast("Iterator[ast.Name]", found)
        return cast("Iterator[N]", targets_last(names, self.tree.statement_of))

    def earlier(self, node: ast.AST, kind: type[N]) -> Iterator[N]:
        return self.tree.earlier(node, kind)

    def site(self, node: ast.AST) -> Site:
        """Of a statement with a body, its first line: nobody wants a class underlined whole."""
        start, end = self.source.span(node)
        if isinstance(getattr(node, "body", None), list):
            line: int = node.lineno  # type: ignore[attr-defined]
            head = self.source.line(line).partition("#")[0].rstrip()
            end = min(end, self.source.offset(line, len(head.encode())))
        return self.source.site(start, end, self.tree.qualname_of(node))

    def replace(self, node: ast.AST, text: str) -> Edit:
        return Edit(self.site(node), text)

    def insert_before(self, node: ast.AST, text: str) -> Edit:
        start, _ = self.source.span(node)
        return Edit(self.source.site(start, start), text)

    def insert_after(self, node: ast.AST, text: str) -> Edit:
        _, end = self.source.span(node)
        return Edit(self.source.site(end, end), text)
