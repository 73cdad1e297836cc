"""The operand came out of a DataLoader, and nothing moved the batch."""

from __future__ import annotations

import ast

from tensortrail.findings import Fix, Safety
from tensortrail.rules.devices.origins.case import Case, Origin, advice
from tensortrail.rules.shared.device_names import device_here
from tensortrail.rules.shared.lines import where
from tensortrail.rules.timeline import Did, Event

OP = "DataLoader"


def origin(case: Case) -> Origin | None:
    last = case.placed[-1] if case.placed else None
    if last is None or last.did is not Did.CREATE or last.op != OP:
        return None
    why = (
        f"the batch came out of the DataLoader{where(last)} on {case.odd.device}, and nothing "
        f"moved it to {case.wanted or 'where the module is'}"
    )
    return Origin(why, fixes=(_moved(case, last),))


def _moved(case: Case, batch: Event) -> Fix:
    """A line that moves the batch, at the beginning of the loop's body."""
    text = "move the batch at the beginning of the loop"
    loop = _loop(case, batch)
    names = _names(loop.target) if loop else ()
    if loop is None or batch.site is None or not names or not case.wanted:
        return advice(text)
    device = device_here(case.timeline, batch.site, case.wanted)
    first = loop.body[0]
    moves = ", ".join(f"{name}.to({device})" for name in names)
    line = f"{' ' * first.col_offset}{', '.join(names)} = {moves}\n"
    edit = case.timeline.insert(batch.site.file, first.lineno, line)
    return case.timeline.fix(text, Safety.UNSAFE, edit) or advice(text)


def _loop(case: Case, batch: Event) -> ast.For | None:
    site = batch.site
    tree = case.timeline.tree(site.file) if site else None
    for node in ast.walk(tree) if site and tree else ():
        if isinstance(node, ast.For) and site and node.iter.lineno == site.line:
            return node if node.body[0].lineno > node.lineno else None
    return None


def _names(target: ast.expr) -> tuple[str, ...]:
    """Of a batch that is one tensor or a flat tuple of them."""
    if isinstance(target, ast.Name):
        return (target.id,)
    parts = target.elts if isinstance(target, ast.Tuple) else []
    names = tuple(each.id for each in parts if isinstance(each, ast.Name))
    return names if len(names) == len(parts) else ()
