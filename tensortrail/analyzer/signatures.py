"""The parameters of what a call calls: a function, a method, or the constructor of a class."""

from __future__ import annotations

import ast

from tensortrail.analyzer.functions import params_of
from tensortrail.analyzer.project_file import ProjectFile
from tensortrail.analyzer.tree import SCOPES

_MAKERS = ("__init__", "__new__")
_ANCESTORS = 5
"""How many classes are looked into for a constructor."""


def parameters_of(file: ProjectFile, call: ast.Call) -> tuple[str, ...]:
    """In order, without `self`; empty if the callee is not known or takes `*args`."""
    owner, node = _definition(file, file.qualified(call.func), call)
    for _ in range(_ANCESTORS):
        if not isinstance(node, ast.ClassDef):
            break
        made_by = [each for each in node.body if isinstance(each, SCOPES) and each.name in _MAKERS]
        if made_by:
            node = made_by[0]
        elif node.bases:
            owner, node = _definition(owner, owner.qualified(node.bases[0]), None)
    if not isinstance(node, SCOPES) or node.args.vararg is not None:
        return ()
    return params_of(node, isinstance(owner.tree.parent(node), ast.ClassDef))


def _definition(
    file: ProjectFile, dotted: str, call: ast.Call | None
) -> tuple[ProjectFile, ast.AST | None]:
    first, _, rest = dotted.partition(".")
    if call is not None and first in ("self", "cls"):
        cls = file.tree.class_of(call)
        around = file.tree.qualname_of(cls) if cls is not None else ""
        return file, file.definition_named(f"{around}.{rest}")
    node = file.definition_named(dotted.removeprefix(f"{file.name}.") if file.name else dotted)
    if node is not None or "." not in dotted:
        return file, node
    return file.project.definition(file, dotted) or (file, None)
