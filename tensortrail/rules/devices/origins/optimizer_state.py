"""The operand is state of an optimizer, made before the model was moved."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from tensortrail.findings import Fix, Safety
from tensortrail.rules.devices.origins.case import Case, Origin, advice
from tensortrail.rules.shared.lines import where
from tensortrail.rules.timeline import Did, Event

OPTIMIZERS = os.path.join("torch", "optim") + os.sep


def origin(case: Case) -> Origin | None:
    last = case.placed[-1] if case.placed else None
    if last is None or last.did is not Did.CREATE or last.by is None:
        return None
    if OPTIMIZERS not in last.by.file:
        return None
    kind = last.by.function.partition(".")[0]
    moved = _move_of_model(case, last)
    since = ", before the model was moved" if moved else ""
    after = f" to {case.wanted or 'another device'}{where(moved)}" if moved else ""
    why = (
        f"the state of `{kind}` was made on {case.odd.device}{where(last)}{since}{after}, and "
        "stays where it was made"
    )
    return Origin(why, fixes=(_brought_along(case, kind, moved),))


def _move_of_model(case: Case, made: Event) -> Event | None:
    """The first move of a module to where the weights are now, after the state was made."""
    for event in case.timeline.events(Did.MOVE):
        there = event.storage is not None and event.storage.device == case.wanted
        if there and event.time >= made.time and event.site and event.by:
            return event
    return None


def _brought_along(case: Case, kind: str, moved: Event | None) -> Fix:
    """A line behind the move, after which the state lies where the weights are."""
    text = f"move the model before `{kind}` is made, or let its state follow the weights"
    site = moved.site if moved else None
    tree = case.timeline.tree(site.file) if site else None
    if site is None or tree is None:
        return advice(text)
    name = next(_optimizers(tree, kind), "")
    move = next((each for each in _statements(tree) if each.lineno == site.line), None)
    if not name or move is None:
        return advice(text)
    line = f"{' ' * move.col_offset}{name}.load_state_dict({name}.state_dict())\n"
    edit = case.timeline.insert(site.file, (move.end_lineno or move.lineno) + 1, line)
    return case.timeline.fix(text, Safety.UNSAFE, edit) or advice(text)


def _optimizers(tree: ast.Module, kind: str) -> Iterator[str]:
    """Names that hold an optimizer of this class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            called = ast.unparse(node.value.func).rpartition(".")[2]
            if called == kind and isinstance(node.targets[0], (ast.Name, ast.Attribute)):
                yield ast.unparse(node.targets[0])


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    yield from (node for node in ast.walk(tree) if isinstance(node, (ast.Expr, ast.Assign)))
