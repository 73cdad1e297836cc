"""The value of an expression, from the values of its parts."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tensortrail.analyzer.facts import known
from tensortrail.analyzer.values import containers, narrowing, uses
from tensortrail.analyzer.values.attribute_reads import attribute_of
from tensortrail.analyzer.values.calls import value_of_call
from tensortrail.analyzer.values.displays import of_comprehension, of_dict, of_display
from tensortrail.analyzer.values.evaluating import Binding, World
from tensortrail.analyzer.values.leaves import of_constant, unknown_named
from tensortrail.analyzer.values.narrowing import index_text
from tensortrail.analyzer.values.state import State, join_values
from tensortrail.analyzer.values.targets import Targets
from tensortrail.rules.words import NOWHERE, UNKNOWN_VALUE, Kind, Owner, Placement, Value

OTHER = containers.OTHER.kinds
_MADE_HERE = Value(kinds=OTHER, owner=Owner.HERE)


class Evaluator(Targets):
    """Evaluates expressions in a state and remembers what it found for every node."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.seen: dict[ast.expr, Value] = {}
        self.moves: list[tuple[str, Placement]] = []
        """(path, new placement) of every in-place move met, in order."""
        self.used: set[Binding] = set()
        """Bindings that are used as tensors somewhere, and were not known to be."""
        self.believed: frozenset[Binding] = frozenset()
        """Those of an earlier run over the same code."""

    def value(self, node: ast.expr, state: State) -> Value:
        self.world.tick()
        handler = _HANDLERS.get(node.__class__, Evaluator._of_parts)
        return self._noted(node, handler(self, node, state), state)

    def _of_parts(self, node: ast.expr, state: State) -> Value:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, state)
        return _MADE_HERE

    def _noted(self, node: ast.expr, found: Value, state: State) -> Value:
        if self.believed:
            found = self.by_use(found)
        if found.path and state.has_moved and not found.placement:
            moved = state.place_of(found.path)
            if moved:
                found = replace(found, placement=moved)
        self.seen[node] = found
        return found

    def by_use(self, value: Value) -> Value:
        """The value, a tensor if an earlier run has seen it used as one."""
        known = self.believed and uses.is_open(value)
        return uses.by_use(value) if known and self.is_believed(value) else value

    def is_believed(self, value: Value) -> bool:
        return uses.binding_of(value) in self.believed

    # --- leaves --------------------------------------------------------------------------
    def _constant(self, node: ast.Constant, state: State) -> Value:
        return of_constant(node.value)

    def _name(self, node: ast.Name, state: State) -> Value:
        found = state.values.get(node.id)
        if found is None:
            found = self.world.global_value(node.id)
            if found is UNKNOWN_VALUE:
                return unknown_named(node.id)
        return found if found.path else found.called(node.id)

    def _attribute(self, node: ast.Attribute, state: State) -> Value:
        return self._member(node, self.value(node.value, state), state)

    def member(self, node: ast.Attribute, base: Value, state: State) -> None:
        """The attribute of a value that is known: once more for each link of a chain of calls
        would double the work with every link."""
        self._noted(node, self._member(node, base, state), state)

    def _member(self, node: ast.Attribute, base: Value, state: State) -> Value:
        path = f"{base.path}.{node.attr}" if base.path else ""
        bound = state.values.get(path) if path else None
        if bound is not None:
            return bound
        found = attribute_of(self.world, node, base)
        owner = Owner.CALLER if base.owner in (Owner.CALLER, Owner.UNKNOWN) else base.owner
        if base.path == "self" and found.owner == Owner.HERE:
            owner = Owner.HERE
        return found.called(path, owner)

    # --- combinations --------------------------------------------------------------------
    def _subscript(self, node: ast.Subscript, state: State) -> Value:
        base = self.value(node.value, state)
        self.value(node.slice, state)
        path = f"{base.path}[{index_text(node.slice)}]" if base.path else ""
        bound = state.values.get(path) if path else None
        if bound is not None:
            return bound
        if base.is_tensor:
            return Value(
                frozenset({Kind.TENSOR}),
                base.placement,
                base.sure,
                path=path,
                owner=base.owner,
                shares=(base.path,),
            )
        if base.contents is not None and isinstance(node.slice, ast.Slice):
            return replace(base, path=path, contents=replace(base.contents, parts=()))
        held = containers.item_of(base, node.slice)
        if held is not None and (held.kinds or held.cls):
            return held.called(path)
        if base.kind is Kind.STATE_DICT:
            return Value(frozenset({Kind.TENSOR}), sure=False, path=path, owner=base.owner)
        if base.cls and isinstance(node.slice, ast.Constant):
            field = containers.declared_key(self.world, base.cls, node.slice.value)
            return field.called(path, base.owner)
        return Value(path=path, owner=base.owner)

    def _operation(self, node: ast.BinOp | ast.UnaryOp | ast.Compare, state: State) -> Value:
        if isinstance(node, ast.BinOp):
            return self._sum(node, state)
        if isinstance(node, ast.UnaryOp):
            return self._combined(node, [self.value(node.operand, state)])
        parts = [self.value(each, state) for each in (node.left, *node.comparators)]
        return self._combined(node, parts)

    def _sum(self, node: ast.BinOp, state: State) -> Value:
        """From the first term to the last: a long sum is a tree as deep as it is long."""
        inner: list[ast.BinOp] = [node]
        while isinstance(inner[-1].left, ast.BinOp):
            inner.append(inner[-1].left)
        found = self.value(inner[-1].left, state)
        for each in reversed(inner):
            found = self._combined(each, [found, self.value(each.right, state)])
            self.seen[each] = found
        return found

    def _combined(self, node: ast.expr, parts: Sequence[Value]) -> Value:
        tensors = [part for part in parts if part.is_tensor]
        identity = isinstance(node, ast.Compare) and any(
            isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops
        )
        if tensors and not identity:
            places = {part.placement for part in tensors}
            place = places.pop() if len(places) == 1 else NOWHERE
            return Value(
                frozenset({Kind.TENSOR}),
                place,
                sure=any(part.sure for part in tensors),
                owner=Owner.HERE,
            )
        if isinstance(node, ast.Compare) or all(part.is_only(Kind.OTHER) for part in parts):
            return _MADE_HERE
        return Value(owner=Owner.HERE)

    def _bool_op(self, node: ast.BoolOp, state: State) -> Value:
        scratch = state.copy()
        found: Value | None = None
        for part in node.values:
            value = self.value(part, scratch)
            narrowing.narrow(self, part, isinstance(node.op, ast.And), scratch)
            found = value if found is None else join_values(found, value)
        return found or UNKNOWN_VALUE

    def _if_exp(self, node: ast.IfExp, state: State) -> Value:
        self.value(node.test, state)
        yes, no = state.copy(), state.copy()
        narrowing.narrow(self, node.test, True, yes)
        narrowing.narrow(self, node.test, False, no)
        return join_values(self.value(node.body, yes), self.value(node.orelse, no))

    def _named(self, node: ast.NamedExpr, state: State) -> Value:
        value = self.value(node.value, state)
        self.assign(node.target, value, node.value, state)
        return value

    def _lambda(self, node: ast.Lambda, state: State) -> Value:
        inner = state.copy()
        for name in (each.arg for each in (*node.args.args, *node.args.kwonlyargs)):
            inner.bind(name, Value(known.kind_by_name(name), sure=False, path=name))
        self.value(node.body, inner)
        return _MADE_HERE

    def _through(self, node: ast.Await | ast.Starred, state: State) -> Value:
        return self.value(node.value, state)

    def _yield(self, node: ast.Yield, state: State) -> Value:
        self.yielded(self.value(node.value, state) if node.value is not None else UNKNOWN_VALUE)
        return UNKNOWN_VALUE

    def yielded(self, value: Value) -> None:
        """A function that is run as a whole remembers what it yields."""


_HANDLERS: dict[type[ast.expr], Callable[[Evaluator, Any, State], Value]] = {
    ast.Constant: Evaluator._constant,
    ast.Name: Evaluator._name,
    ast.Attribute: Evaluator._attribute,
    ast.Call: value_of_call,
    ast.Subscript: Evaluator._subscript,
    ast.BinOp: Evaluator._operation,
    ast.UnaryOp: Evaluator._operation,
    ast.Compare: Evaluator._operation,
    ast.BoolOp: Evaluator._bool_op,
    ast.IfExp: Evaluator._if_exp,
    ast.NamedExpr: Evaluator._named,
    ast.ListComp: of_comprehension,
    ast.SetComp: of_comprehension,
    ast.GeneratorExp: of_comprehension,
    ast.DictComp: of_comprehension,
    ast.List: of_display,
    ast.Tuple: of_display,
    ast.Set: of_display,
    ast.Lambda: Evaluator._lambda,
    ast.Dict: of_dict,
    ast.Await: Evaluator._through,
    ast.Starred: Evaluator._through,
    ast.Yield: Evaluator._yield,
}
