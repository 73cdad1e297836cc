"""What the expressions of a file hold: each function is run once, when something asks for it."""

from __future__ import annotations

import ast
from typing import cast

from tensortrail.analyzer.facts.project import Project
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.reading.limits import TooMuch
from tensortrail.analyzer.syntax.structure import Structure
from tensortrail.analyzer.syntax.tree import SCOPES
from tensortrail.analyzer.values import callers
from tensortrail.analyzer.values.attributes import joined
from tensortrail.analyzer.values.bound_once import names_bound_once
from tensortrail.analyzer.values.evaluating import Binding, World
from tensortrail.analyzer.values.flow import Flow
from tensortrail.rules.view import FunctionNode
from tensortrail.rules.words import UNKNOWN_VALUE, Kind, Owner, Placement, Value


class RunsFunctions(Structure):
    """The part of a `Module` that answers what a value is."""

    project: Project

    def __init__(self) -> None:
        super().__init__()
        self.running = self.asked_early = 0
        self._flows: dict[ast.AST, Flow] = {}
        self._globals: dict[str, Value] = {}
        self._callers_asked: set[ast.AST | None] = set()

    def value_of(self, node: ast.expr) -> Value:
        self.tick()
        flow = self._flow_of(node)
        found = flow.seen.get(node, UNKNOWN_VALUE)
        if flow.done and (not found.kinds or not found.sure):
            found = self._better_known(flow, found).seen.get(node, UNKNOWN_VALUE)
        return found

    def _better_known(self, flow: Flow, found: Value) -> Flow:
        """The same code, run again with what it was seen to use, or to be given, as tensors."""
        believed = flow.believed or frozenset(flow.used)
        given = found.owner is Owner.CALLER and self.project.depth == 0
        if given and flow.scope not in self._callers_asked:
            self._callers_asked.add(flow.scope)
            believed |= callers.tensors_given(cast("ProjectFile", self), flow.scope)
        if believed == flow.believed or flow.scope is None:
            return flow
        again = self._new_flow(flow.scope, believed)
        self._run(again, flow.scope)
        return again

    def kind_of(self, node: ast.expr) -> Kind:
        return self.value_of(node).kind

    def placement_at(self, node: ast.expr) -> Placement:
        return self.value_of(node).placement

    def _flow_of(self, node: ast.AST) -> Flow:
        function = self.tree.outermost_function_of(node)
        return self._flow(function if function is not None else self.tree.root)

    def _flow(self, scope: FunctionNode | ast.Module) -> Flow:
        if scope not in self._flows:
            flow = self._new_flow(scope)
            if self.project.is_deep:
                return flow
            self._run(flow, scope)
        return self._flows[scope]

    def _new_flow(self, scope: ast.AST, believed: frozenset[Binding] = frozenset()) -> Flow:
        cls = self.tree.class_of(scope)
        return Flow(cast("World", self), self._class_name(cls) if cls is not None else "", believed)

    def _run(self, flow: Flow, scope: ast.AST) -> None:
        self._flows[scope] = flow
        flow.scope = scope
        self.project.depth += 1
        self.running += 1
        try:
            if isinstance(scope, ast.Module):
                flow.run_top(scope.body)
            elif isinstance(scope, SCOPES):
                flow.run_function(scope)
        except RecursionError:
            if self.project.depth > 1:
                del self._flows[scope]  # the function that asked may be the deep one
                raise
            where = f"`{self.tree.qualname_of(scope)}`" if scope is not self.tree.root else "it"
            self.project.limit.notes.append(f"the values in {where}, which is nested too deeply")
        except TooMuch:
            del self._flows[scope]
            raise
        finally:
            self.running -= 1
            self.project.depth -= 1

    def _class_name(self, cls: ast.ClassDef) -> str:
        return ".".join(filter(None, (self.name, self.tree.qualname_of(cls))))

    def global_value(self, name: str) -> Value:
        found = self._at_top(name) if name in self.tree.bound else UNKNOWN_VALUE
        if found is UNKNOWN_VALUE and name.isupper():
            dotted = self.names.resolve(name)  # a constant of another file
            return (
                self.project.global_of(cast("ProjectFile", self), dotted)
                if "." in dotted
                else found
            )
        stores = self.tree.global_stores.get(name) if name in self.tree.bound else None
        if not stores:
            return found
        known = self._globals.get(name)
        if known is None:
            self._globals[name] = found  # a name that is made of itself ends here
            known = self._globals[name] = joined([found, *map(self.value_of, stores)])
        return known

    def _at_top(self, name: str) -> Value:
        """What the name is after all that stands at the top of the file."""
        top = self._flows.get(self.tree.root) or self._flow(self.tree.root)
        if not top.done and name not in self.tree.once(names_bound_once, self.tree.root):
            return UNKNOWN_VALUE
        return (top.end.values.get(name) if top.end is not None else None) or UNKNOWN_VALUE
