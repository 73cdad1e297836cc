"""The operand took the place of a weight when a state dict was loaded with `assign=True`."""

from __future__ import annotations

import ast

from tensortrail.findings import Edit, Fix, Safety
from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice
from tensortrail.rules.devices.shared.origins.read import mapped
from tensortrail.rules.shared.lines import where
from tensortrail.rules.timeline import Did, Event

CALL, META = "load_state_dict", "meta"


def origin(case: Case) -> Origin | None:
    put = next((each for each in reversed(case.placed) if _is_assignment(each)), None)
    if put is None or put is not case.placed[-1] or put.other is None or case.odd.device == META:
        return None
    read = next((each for each in reversed(case.placed) if each.did is Did.LOAD), None)
    source = f", read there by `{read.op}`{where(read)}" if read else ""
    why = (
        f"{case.name} was on {put.other.device} until `{CALL}(assign=True)`{where(put)} put the "
        f"tensor of the state dict in its place, which is on {case.odd.device}{source}"
    )
    settings = mapped(case, read) if read else ()
    return Origin(why, fixes=(_without_assign(case, put),), settings=settings)


def _is_assignment(event: Event) -> bool:
    return event.did is Did.SWAP and event.op.endswith(CALL)


def _without_assign(case: Case, put: Event) -> Fix:
    """The call as it is, without the argument: values are copied to where the weights are."""
    text = "drop `assign=True`: the values are then copied to where the weights are"
    edit = _edit(case, put)
    return (edit and case.timeline.fix(text, Safety.UNSAFE, edit)) or advice(text)


def _edit(case: Case, put: Event) -> Edit | None:
    site = put.site
    tree = case.timeline.tree(site.file) if site else None
    if site is None or tree is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.lineno == site.line and _is_load(node):
            kept = [each for each in node.keywords if each.arg != "assign"]
            if len(kept) < len(node.keywords):
                given = [ast.unparse(each) for each in (*node.args, *kept)]
                text = f"{ast.unparse(node.func)}({', '.join(given)})"
                return case.timeline.replace(site.file, node, text)
    return None


def _is_load(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == CALL
