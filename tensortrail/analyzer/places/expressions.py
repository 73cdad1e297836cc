"""What an expression holds, and where: by the parts it is made of."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from tensortrail.analyzer.places.attribute_reads import value_of_attribute
from tensortrail.analyzer.places.calls.value_of_call import value_of_call
from tensortrail.analyzer.places.conditions import condition_of, narrow
from tensortrail.analyzer.places.functions.world import World
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.joins import join, member, tagged_join
from tensortrail.analyzer.places.held.mappings import mapping_of
from tensortrail.analyzer.places.held.meetings import Meetings
from tensortrail.analyzer.places.held.operations import combined
from tensortrail.analyzer.places.subscripts import value_of_subscript
from tensortrail.analyzer.places.targets import Targets
from tensortrail.rules.places import NUMBER, UNKNOWN_HELD, Held, What


class Expressions(Targets):
    """Evaluates the expressions of one function and remembers what each one was."""

    def __init__(self, world: World, cls: ast.ClassDef | None) -> None:
        self.world = world
        self.cls = cls
        self.seen: dict[ast.expr, Held] = {}
        self.meetings = Meetings()

    @property
    def shaped(self) -> Collection[str]:
        """What the function asks for its shape: beside a tensor it is one, and no number."""
        return frozenset()

    def value(self, node: ast.expr, env: Environment) -> Held:
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            found = handler(self, node, env)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.value(child, env)
            found = NUMBER if isinstance(node, (ast.JoinedStr, ast.Slice)) else UNKNOWN_HELD
        self.seen[node] = found
        return found

    # --- leaves --------------------------------------------------------------------------
    def _constant(self, node: ast.Constant, env: Environment) -> Held:
        return Held(What.NONE) if node.value is None else NUMBER

    def _name(self, node: ast.Name, env: Environment) -> Held:
        found = env.values.get(node.id)
        return found if found is not None else self.world.global_held(node.id)

    # --- combinations --------------------------------------------------------------------
    def _sequence(self, node: ast.Tuple | ast.List | ast.Set, env: Environment) -> Held:
        parts = tuple(self.values(node.elts, env))
        starred = any(isinstance(each, ast.Starred) for each in node.elts)
        return Held(What.BOX, each=_joined(parts)) if starred else Held(What.BOX, parts=parts)

    def _dict(self, node: ast.Dict, env: Environment) -> Held:
        for key in node.keys:
            if key is not None:
                self.value(key, env)
        members = self.values(node.values, env)
        return mapping_of(node.keys, members) or Held(What.BOX, each=_joined(members))

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, env: Environment
    ) -> Held:
        inside = env.copy()
        for generator in node.generators:
            self.bind_elements(generator.target, generator.iter, inside)
            self.values(generator.ifs, inside)
        if isinstance(node, ast.DictComp):
            self.value(node.key, inside)
            return Held(What.BOX, each=self.value(node.value, inside))
        return Held(What.BOX, each=self.value(node.elt, inside))

    def _conditional(self, node: ast.IfExp, env: Environment) -> Held:
        self.value(node.test, env)
        yes, no = env.copy(), env.copy()
        narrow(node.test, True, yes, self.world)
        narrow(node.test, False, no, self.world)
        first, second = self.value(node.body, yes), self.value(node.orelse, no)
        return tagged_join(first, second, condition_of(node.test))

    def _either(self, node: ast.BoolOp, env: Environment) -> Held:
        found = self.values(node.values, env)
        whats = {each.what for each in found}
        return _joined(found) or UNKNOWN_HELD if whats == {What.TENSOR} else UNKNOWN_HELD

    def _unary(self, node: ast.UnaryOp, env: Environment) -> Held:
        held = self.value(node.operand, env)
        return NUMBER if isinstance(node.op, ast.Not) else held

    def _binary(self, node: ast.BinOp, env: Environment) -> Held:
        left, right = self.value(node.left, env), self.value(node.right, env)
        if What.BOX in (left.what, right.what):
            return Held(What.BOX, each=_joined([member(left), member(right)]))
        return self.operate(node, type(node.op).__name__, [left, right], env)

    def operate(
        self,
        node: ast.expr,
        operation: str,
        operands: Sequence[Held],
        env: Environment,
        argument: int = 0,
    ) -> Held:
        strictly = operation == "MatMult"
        operands = self._beside_tensors(operands, strictly)
        if any(each.places for each in operands):
            self.meetings.meet(node, operation, operands, env, not strictly, argument)
        found = combined(operands)
        return replace(found, what=What.TENSOR) if strictly else found

    def _beside_tensors(self, operands: Sequence[Held], strictly: bool) -> Sequence[Held]:
        """An argument beside a tensor is one where no number can stand, or if it has a shape."""
        if not any(each.what is What.TENSOR for each in operands):
            return operands
        return [
            replace(each, what=What.TENSOR)
            if each.what is What.UNKNOWN and each.places and (strictly or each.path in self.shaped)
            else each
            for each in operands
        ]

    def _compare(self, node: ast.Compare, env: Environment) -> Held:
        left = self.value(node.left, env)
        found = NUMBER
        for op, other in zip(node.ops, node.comparators, strict=True):
            right = self.value(other, env)
            if not isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)):
                found = self.operate(node, type(op).__name__, [left, right], env)
            left = right
        return found

    def _walrus(self, node: ast.NamedExpr, env: Environment) -> Held:
        found = self.value(node.value, env)
        env.values[node.target.id] = found
        return found

    def _inner(self, node: ast.Starred | ast.Await, env: Environment) -> Held:
        return self.value(node.value, env)

    def _lambda(self, node: ast.Lambda, env: Environment) -> Held:
        return NUMBER


def _joined(found: Sequence[Held]) -> Held | None:
    result: Held | None = None
    for each in found:
        result = each if result is None else join(result, each)
    return result


_HANDLERS: dict[type[ast.expr], Callable[[Expressions, Any, Environment], Held]] = {
    ast.Constant: Expressions._constant,
    ast.Name: Expressions._name,
    ast.Attribute: value_of_attribute,
    ast.Tuple: Expressions._sequence,
    ast.List: Expressions._sequence,
    ast.Set: Expressions._sequence,
    ast.Dict: Expressions._dict,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: Expressions._comprehension,
    ast.IfExp: Expressions._conditional,
    ast.BoolOp: Expressions._either,
    ast.UnaryOp: Expressions._unary,
    ast.BinOp: Expressions._binary,
    ast.Compare: Expressions._compare,
    ast.Subscript: value_of_subscript,
    ast.Call: value_of_call,
    ast.NamedExpr: Expressions._walrus,
    ast.Starred: Expressions._inner,
    ast.Await: Expressions._inner,
    ast.Lambda: Expressions._lambda,
}
