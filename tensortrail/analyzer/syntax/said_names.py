"""The names of which the code of a file says something."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from tensortrail.analyzer.syntax.blocks import SCOPES
from tensortrail.analyzer.syntax.enclosing import Enclosing
from tensortrail.analyzer.syntax.names import dotted_name
from tensortrail.rules.shared.objects import last_name

_BINDING: tuple[type[ast.AST], ...] = (
    *SCOPES, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping
)  # fmt: skip
"""What binds a name that is no node."""
_ASKING = frozenset({"isinstance", "hasattr", "is_tensor", "type"})


class SaidNames(Enclosing):
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
