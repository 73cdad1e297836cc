"""What an expression holds, and where: by the parts it is made of."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from tensortrail.analyzer.places.attributes.settings import is_settings
from tensortrail.analyzer.places.calls import value_of_call as calls
from tensortrail.analyzer.places.calls.objects import attribute_of_object
from tensortrail.analyzer.places.conditions import condition_of, narrow
from tensortrail.analyzer.places.functions.world import World
from tensortrail.analyzer.places.held import ranks
from tensortrail.analyzer.places.held.elements import element_of, is_output, part_of_box
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.joins import join, member, tagged_join
from tensortrail.analyzer.places.held.mappings import entry, mapping_of, with_entry
from tensortrail.analyzer.places.held.operations import Meetings, as_operand, combined
from tensortrail.analyzer.places.libraries.library import names
from tensortrail.rules.places import (
    NUMBER,
    UNKNOWN_HELD,
    Held,
    Place,
    What,
    Where,
)
from tensortrail.rules.text_of import text_of


class Expressions:
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

    def values(self, nodes: Sequence[ast.expr], env: Environment) -> list[Held]:
        return [self.value(each, env) for each in nodes]

    # --- leaves --------------------------------------------------------------------------
    def _constant(self, node: ast.Constant, env: Environment) -> Held:
        return Held(What.NONE) if node.value is None else NUMBER

    def _name(self, node: ast.Name, env: Environment) -> Held:
        found = env.values.get(node.id)
        return found if found is not None else self.world.global_held(node.id)

    def _attribute(self, node: ast.Attribute, env: Environment) -> Held:
        base = self.value(node.value, env)
        if base.what is What.SELF:
            return self._of_self(node.attr, env)
        if node.attr in names("plain", "attributes") or self._is_a_number(node):
            return NUMBER
        if node.attr == "device" and base.what is not What.BOX:
            asked = Place(Where.DEVICE, text_of(node), node)
            unknown = Place(Where.SELF) if base.what is What.MODULE else asked
            known = {each for each in base.places if each.where is not Where.LOCAL}
            if base.what is What.UNKNOWN and is_settings(self.world.tree, node.value):
                known = {asked}
            return Held(What.DEVICE, frozenset(known or {unknown}))
        if base.what is What.TENSOR:
            of_output = is_output(base) and node.attr in names("outputs", "attributes")
            kept = of_output or node.attr in names("keeps", "attributes")
            return base if kept else UNKNOWN_HELD
        if base.what is What.MODULE:
            return self._of_module(node.attr, base)
        if base.what is What.OBJECT:
            return attribute_of_object(self.world, base, node.attr)
        if base.what is What.BOX:
            in_mapping = node.attr in names("mappings", "attributes")
            return member(base) if in_mapping else UNKNOWN_HELD
        if base.what is What.UNKNOWN and base.path and base.places:
            path = f"{base.path}.{node.attr}"
            if all(each.where is Where.OF for each in base.places):
                return Held(What.UNKNOWN, frozenset({Place(Where.OF, path)}), path=path)
        return UNKNOWN_HELD

    def _is_a_number(self, node: ast.Attribute) -> bool:
        """`math.pi`, `numpy.inf`: written in a library that makes no tensors."""
        return self.world.qualified(node) in names("plain", "constants")

    def _of_module(self, name: str, module: Held) -> Held:
        path = f"{module.path}.{name}"
        if name in ("weight", "bias") and module.cls in ("leaf", ""):
            return Held(What.TENSOR, module.places, path=path)
        if module.cls in ("leaf", "box", "bare", ""):
            return UNKNOWN_HELD
        found = self.world.attribute_of(module.cls, name)
        inside = found.what in (What.TENSOR, What.MODULE) and all(
            each.where in (Where.SELF, Where.STAYS) for each in found.places
        )
        return replace(found, path=path) if inside else UNKNOWN_HELD

    def _of_self(self, name: str, env: Environment) -> Held:
        path = f"self.{name}"
        known = env.values.get(path)
        if known is not None:
            return known
        if self.cls is None:
            return UNKNOWN_HELD
        found = self.world.attribute(self.cls, name)
        if name == "device" and found.what not in (What.TENSOR, What.NUMBER):
            if found.what is What.DEVICE and found.places:
                return found
            of_module = self.world.is_module(self.cls)
            own = Place(Where.SELF) if of_module else Place(Where.DEVICE, path)
            return Held(What.DEVICE, frozenset({own}))
        return found if found.path else replace(found, path=path)

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

    def _subscript(self, node: ast.Subscript, env: Environment) -> Held:
        base = self.value(node.value, env)
        slices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices = self.values(slices, env)
        if base.what is What.TENSOR:
            for index in map(as_operand, indices):
                if index.what in (What.TENSOR, What.UNKNOWN):  # of an argument callers know
                    self.meetings.index(node, base, index, env)
            rank = ranks.rank_of_part(base.rank, slices, indices)
            return replace(base, rank=rank, path="")
        if base.what is What.BOX:
            if isinstance(node.slice, ast.Slice):
                return Held(What.BOX, each=member(base))
            named = entry(base, node.slice)
            if named is not None:
                return named
            at = getattr(node.slice, "value", None)
            if base.parts is not None and isinstance(at, int):
                inside = -len(base.parts) <= at < len(base.parts)
                return base.parts[at] if inside else UNKNOWN_HELD
            return member(base)
        if base.what is What.MODULE and base.cls == "box":
            return part_of_box(base)
        if base.what is What.UNKNOWN and base.places and (base.path or base.moved is not None):
            path = f"{base.path}[{text_of(node.slice)}]" if base.path else ""
            return replace(base, path=path)
        return NUMBER if base.what is What.NUMBER else UNKNOWN_HELD

    def _call(self, node: ast.Call, env: Environment) -> Held:
        return calls.value_of_call(self, node, env)

    def _walrus(self, node: ast.NamedExpr, env: Environment) -> Held:
        found = self.value(node.value, env)
        env.values[node.target.id] = found
        return found

    def _inner(self, node: ast.Starred | ast.Await, env: Environment) -> Held:
        return self.value(node.value, env)

    def _lambda(self, node: ast.Lambda, env: Environment) -> Held:
        return NUMBER

    # --- binding -------------------------------------------------------------------------
    def bind_elements(self, target: ast.expr, source: ast.expr, env: Environment) -> None:
        """What a step of a loop over `source` binds."""
        self.bind(target, element_of(self.value(source, env)), env)

    def bind_members(self, target: ast.expr, value: ast.expr, env: Environment) -> bool:
        """`a, b, c = *x.shape, x.device`: what is written out after the star belongs to the last
        names, and what stands before it to the first. False for any other pair."""
        written = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        wanted = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
        stars = [at for at, each in enumerate(written) if isinstance(each, ast.Starred)]
        if len(stars) != 1 or len(wanted) < len(written) - 1:
            return False
        if any(isinstance(each, ast.Starred) for each in wanted):
            return False
        before, after = stars[0], len(written) - stars[0] - 1
        inside = element_of(self.seen[written[before]])
        behind = len(wanted) - after
        for at, each in enumerate(wanted):
            if at < before:
                self.bind(each, self.seen[written[at]], env)
            else:
                held = self.seen[written[at - len(wanted)]] if at >= behind else inside
                self.bind(each, held, env)
        return True

    def bind(self, target: ast.expr, held: Held, env: Environment) -> None:
        if isinstance(target, ast.Name):
            env.values[target.id] = held
            self.seen[target] = held
        elif isinstance(target, (ast.Tuple, ast.List)):
            for index, each in enumerate(target.elts):
                inner = each.value if isinstance(each, ast.Starred) else each
                self.bind(inner, _part(held, index, len(target.elts)), env)
        elif isinstance(target, ast.Attribute):
            base = self.value(target.value, env)
            if base.what is What.SELF:
                env.values[f"self.{target.attr}"] = held
            self.seen[target] = held
        elif isinstance(target, ast.Subscript):
            self._store(target, held, env)

    def _store(self, target: ast.Subscript, held: Held, env: Environment) -> None:
        base = self.value(target.value, env)
        slices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        by = [each for each in self.values(slices, env) if each.what is What.TENSOR]
        if base.what is What.TENSOR:
            for index in by:
                self.meetings.index(target, base, index, env)
            advanced = any(not index.may_be_scalar for index in by) or any(
                self.seen[each].what is What.BOX and not isinstance(each, ast.Attribute)
                for each in slices  # what is kept may be a tuple of slices
            )
            if advanced and not _is_one_number(held):  # a slice is copied from anywhere
                self.meetings.meet(target, "write by index", [base, held], env, by_element=True)
        if base.what is What.BOX and isinstance(target.value, ast.Name):
            after = with_entry(base, target.slice, held)
            if after is not None:
                env.values[target.value.id] = after
                return
            if not isinstance(target.slice, ast.Constant):  # one of many keys
                held = join(held, Held(held.what, frozenset({Place(Where.UNKNOWN)})))
            each = join(member(base), held) if base.each or base.parts else held
            env.values[target.value.id] = Held(What.BOX, each=each)


def _is_one_number(held: Held) -> bool:
    """`torch.tensor([1])`, which a mask takes from anywhere."""
    made = held.only.by if held.only is not None else None
    data = made.args[0] if isinstance(made, ast.Call) and made.args else None
    return isinstance(data, (ast.List, ast.Tuple)) and len(data.elts) == 1


def _joined(found: Sequence[Held]) -> Held | None:
    result: Held | None = None
    for each in found:
        result = each if result is None else join(result, each)
    return result


def _part(held: Held, index: int, count: int) -> Held:
    if held.parts is not None and not held.keys and len(held.parts) == count:
        return held.parts[index]
    if held.what is What.UNKNOWN and held.path.isidentifier() and held.places:  # `x, y = batch`
        path = f"{held.path}[{index}]"
        if all(each.where is Where.OF for each in held.places):
            return Held(What.UNKNOWN, frozenset({Place(Where.OF, path)}), path=path)
    return element_of(held)


_HANDLERS: dict[type[ast.expr], Callable[[Expressions, Any, Environment], Held]] = {
    ast.Constant: Expressions._constant,
    ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute,
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
    ast.Subscript: Expressions._subscript,
    ast.Call: Expressions._call,
    ast.NamedExpr: Expressions._walrus,
    ast.Starred: Expressions._inner,
    ast.Await: Expressions._inner,
    ast.Lambda: Expressions._lambda,
}
