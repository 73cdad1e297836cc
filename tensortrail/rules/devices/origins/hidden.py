"""The operand belongs to a layer in a plain list, which its model does not move."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tensortrail.findings import Edit, Fix, Safety, Site
from tensortrail.rules.devices.origins.case import Case, Origin, advice
from tensortrail.rules.shared.lines import place, where
from tensortrail.rules.timeline import Did, Event, Timeline


def origin(case: Case) -> Origin | None:
    holder = str(case.odd.hidden.get("holder", ""))
    if not holder:
        return None
    line = assigned(case.odd.hidden)
    moved = _moved(case)
    since = f", so the move{where(moved)} left it on {case.odd.device}" if moved else ""
    why = (
        f"`{holder}` is a plain container{place(line)}, in which `nn.Module` does not look for "
        f"layers{since}"
    )
    return Origin(why, fixes=(registered(case.timeline, line, holder),))


def assigned(hidden: object) -> Site | None:
    match hidden:
        case {"assigned": [str(file), int(line)]}:
            return Site(file, line)
    return None


def _moved(case: Case) -> Event | None:
    """The last move of a model before, to where the others are."""
    for event in reversed(case.timeline.events(Did.MODULE)):
        after = event.facts.get("after")
        if event.time <= case.event.time and isinstance(after, Mapping) and case.wanted in after:
            return event
    return None


def registered(timeline: Timeline, line: Site | None, holder: str) -> Fix:
    """The assignment, with `nn.ModuleList` around its value."""
    name = holder.rpartition(".")[2]
    text = f"make `{name}` an `nn.ModuleList`, or an `nn.ModuleDict`: its layers go along then"
    edit = _edit(timeline, line, name) if line else None
    return (edit and timeline.fix(text, Safety.UNSAFE, edit)) or advice(text)


def _edit(timeline: Timeline, line: Site, name: str) -> Edit | None:
    tree = timeline.tree(line.file)
    for node in ast.walk(tree) if tree else ():
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        own = isinstance(target, ast.Attribute) and target.attr == name
        if tree and own and isinstance(node, ast.Assign) and node.lineno == line.line:
            kind = _kind(node.value)
            source = timeline.replace(line.file, node.value, "").site.source
            known = "nn" if _imports_nn(tree) else "torch.nn"
            wrapped = f"{known}.{kind}({source})"
            return timeline.replace(line.file, node.value, wrapped) if kind else None
    return None


def _kind(value: ast.expr) -> str:
    match value:
        case ast.List() | ast.ListComp() | ast.Tuple():
            return "ModuleList"
        case ast.Dict() | ast.DictComp():
            return "ModuleDict"
    return ""


def _imports_nn(tree: ast.Module) -> bool:
    return any(
        each.asname == "nn" or (each.name == "nn" and not each.asname)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for each in node.names
    )
