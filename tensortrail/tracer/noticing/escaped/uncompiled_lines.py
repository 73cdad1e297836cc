"""A line that cannot be compiled, where a whole function has to be."""

from __future__ import annotations

import ast
import re
from typing import Any

from tensortrail.tracer.identity.assignments import tree_of
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.branches_on_data import line_told
from tensortrail.tracer.noticing.escaped.told import at, made_at, owners, told

REFUSED, COMPILED = "Unsupported", "OptimizedModule"
_HOOKS = re.compile(r"[/\\](accelerate|diffusers)[/\\]hooks\b")
CHANGE = (
    "move it out of the compiled code, put it under `if not torch.compiler.is_compiling():`, or "
    "remove `fullgraph=True`: the graph is then split in two there"
)


def uncompiled_line(error: BaseException, _: Storages) -> dict[str, Any] | None:
    if type(error).__name__ != REFUSED or not type(error).__module__.startswith("torch._dynamo"):
        return None
    file, line, _function = line_told(error)
    if not file:
        return _in_hook(error)
    what = _called(file, line)
    said = f"`{what}`" if what else "the line"
    return told(
        f"{said}{at(file, line)} cannot be compiled, and no graph break is allowed here",
        CHANGE,
    )


def _in_hook(error: BaseException) -> dict[str, Any] | None:
    """The compiler came into a hook that offloads, which is a library's."""
    found = _HOOKS.search(str(error).partition("from user code:")[2])
    if found is None:
        return None
    compiled = [each for each in owners(error) if type(each).__name__ == COMPILED]
    made = made_at(error, compiled[-1]).rstrip(",") if compiled else ""
    return told(
        f"the model is offloaded by hooks of {found[1]}, which cannot be compiled, and "
        f"`fullgraph=True` allows no graph break{made}",
        "leave out `fullgraph=True`: the graph is then split at the hooks",
    )


def _called(file: str, line: int) -> str:
    """The outermost call of the line."""
    tree = tree_of(file)
    calls = [
        node
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Call) and node.lineno == line
    ]
    return ast.unparse(calls[0].func) if calls else ""
