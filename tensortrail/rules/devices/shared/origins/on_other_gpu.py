"""Two results were computed on different GPUs, each where its model lies."""

from __future__ import annotations

import ast
import os

from tensortrail.findings import Fix, Safety
from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice
from tensortrail.rules.shared.mends import statement_at
from tensortrail.rules.shared.operands import operands

GPU = ("cuda", "xpu")


def origin(case: Case) -> Origin | None:
    odd = case.odd
    if case.placed or not odd.variable or not _are_gpus(case):
        return None
    came = [each for each in odd.behind if each.source]
    if not came:
        return None
    at = came[0]
    why = f"`{odd.variable}` is computed there at {os.path.basename(at.file)}:{at.line}"
    if len(came) > 1:
        last = came[-1]
        why += f", of what comes from {os.path.basename(last.file)}:{last.line}"
    return Origin(why, fixes=(_brought(case),))


def _are_gpus(case: Case) -> bool:
    return case.odd.device.startswith(GPU) and case.wanted.startswith(GPU)


def _brought(case: Case) -> Fix:
    """The operand, moved to the device of the other in the statement."""
    name, site = case.odd.variable, case.event.site
    given = operands(case.timeline, case.event)
    other = next((each.variable for each in given if each.device == case.wanted), "")
    text = f"`{name}.to({other}.device)`" if other else f"`{name}.to({case.wanted!r})`"
    told = f"bring it to {case.wanted}: {text}"
    tree = case.timeline.tree(site.file) if site else None
    statement = statement_at(tree, site.line) if tree and site else None
    found = [
        node
        for node in (ast.walk(statement) if statement else ())
        if isinstance(node, ast.expr)
        and isinstance(getattr(node, "ctx", None), ast.Load)
        and ast.unparse(node) == name
    ]
    if site is None or len(found) != 1 or not other.isidentifier():
        return advice(told)
    edit = case.timeline.replace(site.file, found[0], text.strip("`"))
    return case.timeline.fix(told, Safety.UNSAFE, edit) or advice(told)
