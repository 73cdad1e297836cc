"""The operand is made by a graph that was captured on another device, which it holds as it was."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tensortrail.rules.devices.shared.origins.case import Case, Origin, advice
from tensortrail.rules.shared.imports import imported_names
from tensortrail.rules.shared.lines import place

OPS = "aten."
"""What a captured graph calls by itself."""
CAPTURES = ("export", "trace", "symbolic_trace", "make_fx")


def origin(case: Case) -> Origin | None:
    site = case.event.site
    if not case.event.op.startswith(OPS) or case.placed or case.odd.behind or not case.wanted:
        return None
    tree = case.timeline.tree(site.file) if site else None
    names = imported_names(tree) if tree else {}
    made = [line for node in ast.walk(tree) if (line := _captured(node, names))] if tree else []
    if site is None or len(made) != 1:
        return None
    at = place(type(site)(site.file, made[0]))
    why = (
        f"the graph makes {case.name} itself, on {case.odd.device}, where it was captured{at}: a "
        "move changes where its weights are, but not the devices that are written in it"
    )
    return Origin(why, fixes=(advice(f"capture it on {case.wanted}: move the model and its inputs "
                                     f"there before line {made[0]}"),))  # fmt: skip


def _captured(node: ast.AST, names: Mapping[str, str]) -> int:
    """The line of `torch.export.export(...)`, `torch.jit.trace(...)`, under other names too; 0 of
    all else."""
    func = node.func if isinstance(node, ast.Call) else None
    if not isinstance(func, (ast.Name, ast.Attribute)):
        return 0
    first, _, rest = ast.unparse(func).partition(".")
    dotted = ".".join(filter(None, (names.get(first, first), rest)))
    captures = dotted.rpartition(".")[2] in CAPTURES and "torch" in dotted.rpartition(".")[0]
    return func.lineno if captures else 0
