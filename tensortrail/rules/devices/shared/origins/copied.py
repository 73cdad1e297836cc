"""The operand is a copy of a weight, made before the model was moved."""

from __future__ import annotations

import ast

from tensortrail.findings import Fix, Safety
from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice
from tensortrail.rules.shared.lines import where
from tensortrail.rules.shared.mends import line_behind, statement_at
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.timeline import Did, Event, Storage


def origin(case: Case) -> Origin | None:
    last = case.placed[-1] if case.placed else None
    number = last.facts.get("copy of") if last is not None and last.did is Did.CREATE else None
    source = case.timeline.storage(last.process, number) if last and number else None
    if last is None or source is None:
        return None
    moved = _moved_since(case, source, last)
    of = f" of `{case.timeline.name(source)}`" if case.timeline.is_named(source) else ""
    since = f", which was moved to {case.wanted} later{where(moved)}" if moved else ""
    why = f"{case.name} is a copy{of}{since}; `{last.op}` made it on {case.odd.device}{where(last)}"
    is_weight = "." in case.timeline.name(source)  # a module has it, and moves in place
    fix = _moved_too(case, last, moved) if is_weight else None
    change = "make the copy after the model is moved, or move the copy too"
    return Origin(why, fixes=(fix or advice(change),))


def _moved_since(case: Case, source: Storage, copied: Event) -> Event | None:
    for event in case.timeline.events(Did.MOVE):
        if event.other is not None and event.other.key == source.key and event.time > copied.time:
            return event
    return None


def _moved_too(case: Case, copied: Event, moved: Event | None) -> Fix | None:
    """The copy of a module follows the line that moves the original, in the same block."""
    site, at = (moved.site if moved else None), copied.site
    tree = case.timeline.tree(site.file) if site and at and site.file == at.file else None
    if tree is None or site is None or at is None:
        return None
    copy, move = statement_at(tree, at.line), statement_at(tree, site.line)
    name, original = _copies(copy)
    line = _again(case, site.file, move, name, original) if name else ""
    if copy is None or move is None or not line or not _in_one_block(tree, copy, move):
        return None
    edit = line_behind(case.timeline, site.file, move, line)
    text = f"move the copy too: `{line}` after `{ast.unparse(move)}`"
    return case.timeline.fix(text, Safety.UNSAFE, edit)


def _copies(copy: ast.stmt | None) -> tuple[str, str]:
    """`average` and `model` of `average = copy.deepcopy(model)`."""
    if not isinstance(copy, ast.Assign) or not isinstance(copy.value, ast.Call):
        return "", ""
    target, called = copy.targets[0], ast.unparse(copy.value.func)
    if called.rpartition(".")[2] != "deepcopy" or not isinstance(target, ast.Name):
        return "", ""
    return target.id, ", ".join(map(ast.unparse, copy.value.args))


def _again(case: Case, file: str, move: ast.stmt | None, name: str, original: str) -> str:
    """`average.to("cuda")` for `model = model.to("cuda")`; "" for what is no such move."""
    call = move.value if isinstance(move, (ast.Expr, ast.Assign)) else None
    func = call.func if isinstance(call, ast.Call) else None
    if call is None or not isinstance(func, ast.Attribute) or func.attr not in TO_DEVICE:
        return ""
    whole, owner = (
        case.timeline.replace(file, each, "").site.source for each in (call, func.value)
    )
    return name + whole[len(owner) :] if owner == original else ""


def _in_one_block(tree: ast.Module, first: ast.stmt, then: ast.stmt) -> bool:
    blocks = (getattr(node, "body", None) for node in ast.walk(tree))
    return any(
        isinstance(block, list) and first in block and then in block[block.index(first) + 1 :]
        for block in blocks
    )
