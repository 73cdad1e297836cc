"""Layers in a plain list or dict of a module, which does not know that it has them."""

from __future__ import annotations

import ast

from tensortrail.findings import Edit, Fix, Safety, Site
from tensortrail.rules.timeline import Timeline


def container_registered(timeline: Timeline, line: Site | None, holder: str) -> Fix:
    """The assignment, with `nn.ModuleList` around its value."""
    name = holder.rpartition(".")[2]
    text = f"make `{name}` an `nn.ModuleList`, or an `nn.ModuleDict`: its layers go along then"
    edit = _edit(timeline, line, name) if line else None
    return (edit and timeline.fix(text, Safety.UNSAFE, edit)) or Fix(text, Safety.DISPLAY, ())


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
