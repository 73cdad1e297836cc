"""What is learnt from a condition: `isinstance`, `type(x) is`, a tested device."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.facts import hints
from tensortrail.analyzer.values.evaluating import Evaluating
from tensortrail.analyzer.values.state import State
from tensortrail.rules.text_of import text_of
from tensortrail.rules.words import UNKNOWN_VALUE, Kind, Placement


def narrow(evaluator: Evaluating, test: ast.expr, holds: bool, state: State) -> None:
    """Learn from a condition that is known to hold, or not to."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        narrow(evaluator, test.operand, not holds, state)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) == holds:
        for part in test.values:
            narrow(evaluator, part, holds, state)
    elif isinstance(test, ast.Call) and _is_isinstance(test):
        subject, classes = test.args
        narrow_instance(evaluator, subject, classes, holds, state)
    elif isinstance(test, ast.Call) and test.args:
        _narrow_asked(evaluator, test, holds, state)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and holds:
        _narrow_compare(evaluator, test, state)


def narrow_instance(
    evaluator: Evaluating, subject: ast.expr, classes: ast.expr, holds: bool, state: State
) -> None:
    path = path_of(subject)
    if not path:
        return
    before = evaluator.seen.get(subject, UNKNOWN_VALUE)
    parts = classes.elts if isinstance(classes, ast.Tuple) else [classes]
    kinds: set[Kind] = set()
    cls = ""
    for part in parts:
        kind, name = _instance_kind(evaluator, part, path)
        if kind is None:
            _told_apart(evaluator, subject, classes, holds, state)
            apart = state.values.get(path)
            if holds and name and len(parts) == 1 and apart is not None:
                state.values[path] = replace(apart, cls=name, sure=True)
            return
        kinds.add(kind)
        cls = name
    if holds and before.kind is Kind.STATE_DICT and kinds == {Kind.OTHER}:
        return  # a state dict is a dict
    if holds:
        cls = cls if len(parts) == 1 else ""
        place = before.placement
        state.values[path] = replace(
            before, kinds=frozenset(kinds), sure=True, cls=cls, path=before.path or path,
            placement=place,
        )  # fmt: skip
    elif not before.kinds or evaluator.is_believed(before):
        _told_apart(evaluator, subject, classes, holds, state)
    elif before.kinds - kinds:
        state.values[path] = replace(before, kinds=before.kinds - kinds, path=before.path or path)


def _narrow_asked(evaluator: Evaluating, test: ast.Call, holds: bool, state: State) -> None:
    """`torch.is_tensor(x)`, `hasattr(x, "contiguous")`."""
    name = evaluator.world.qualified(test.func)
    subject = test.args[0]
    path = path_of(subject)
    if name == "torch.is_tensor" and path and holds:
        before = evaluator.seen.get(subject, UNKNOWN_VALUE)
        kinds = before.kinds if before.is_tensor else frozenset({Kind.TENSOR})
        state.values[path] = replace(before, kinds=kinds, sure=True, path=before.path or path)
    elif name in ("hasattr", "torch.is_tensor"):
        _told_apart(evaluator, subject, test, holds, state)


def _told_apart(
    evaluator: Evaluating, subject: ast.expr, asked: ast.expr, holds: bool, state: State
) -> None:
    """The code asks what an unknown value is: how it is used on this way says nothing of others."""
    path = path_of(subject)
    before = evaluator.seen.get(subject, UNKNOWN_VALUE)
    if not path or (before.kinds and not evaluator.is_believed(before)):
        return
    apart = replace(before, kinds=frozenset(), path=before.path or path)
    way = (asked,) if holds else (asked, subject)
    state.values[path] = evaluator.by_use(replace(apart, asked=(*before.asked, *way)))


def _instance_kind(evaluator: Evaluating, part: ast.expr, path: str) -> tuple[Kind | None, str]:
    world = evaluator.world
    said = hints.read(part, world.qualified, world.kind_of_class_named, path)
    if len(said.kinds) == 1:
        return next(iter(said.kinds)), said.cls
    return None, said.cls


def _narrow_compare(evaluator: Evaluating, test: ast.Compare, state: State) -> None:
    left, op, right = test.left, test.ops[0], test.comparators[0]
    if isinstance(op, ast.Is) and isinstance(left, ast.Call) and left.args:
        if evaluator.world.qualified(left.func) == "type":
            narrow_instance(evaluator, left.args[0], right, True, state)
        return
    if not isinstance(op, ast.Eq) or not isinstance(right, ast.Constant):
        return
    if not (isinstance(left, ast.Attribute) and isinstance(right.value, str)):
        return
    chain = text_of(left) if left.attr == "type" else ""
    subject = chain.removesuffix(".type").removesuffix(".device")
    if chain.endswith(".device.type"):
        before = state.values.get(subject)
        placed = Placement(right.value, test)
        if before is not None:
            state.values[subject] = replace(before, placement=placed)
        else:
            state.places[subject] = placed


def path_of(node: ast.expr) -> str:
    """The access path of a name, attribute or subscript chain; "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = path_of(node.value)
        return f"{base}.{node.attr}" if base else ""
    if isinstance(node, ast.Subscript):
        base = path_of(node.value)
        return f"{base}[{index_text(node.slice)}]" if base else ""
    return ""


def index_text(index: ast.expr) -> str:
    """As `ast.unparse` writes it, which takes its time even for the simple ones."""
    if isinstance(index, ast.Name):
        return index.id
    if isinstance(index, ast.Constant) and type(index.value) is int:
        return repr(index.value)
    return text_of(index)


def _is_isinstance(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "isinstance" and len(call.args) == 2
