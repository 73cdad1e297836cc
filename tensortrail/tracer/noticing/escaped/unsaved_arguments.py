"""A checkpoint of Lightning that does not have the arguments its class is made with."""

from __future__ import annotations

import ast
import re
from typing import Any

from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.told import at, frames_of, source_of, told

LOADS = "load_from_checkpoint"
_MISSING = re.compile(r"missing \d+ required (?:positional|keyword-only) arguments?: (.{1,300})")


def unsaved_arguments(error: BaseException, _: Storages) -> dict[str, Any] | None:
    found = _MISSING.search(str(error)) if isinstance(error, TypeError) else None
    loading = [each for each in frames_of(error) if LOADS in each.f_code.co_name] if found else ()
    owner = next((each.f_locals.get("cls") for each in loading), None)
    given = source_of(getattr(owner, "__init__", None))
    if found is None or given is None:
        return None
    file, function = given
    name = getattr(owner, "__name__", "")
    if any(_keeps(node) for node in ast.walk(function)):
        return None
    first = found[1].split("'")[1] if "'" in found[1] else "..."
    return told(
        f"the checkpoint has no {found[1]}: `{name}.__init__`{at(file, function.lineno)} does not "
        "call `self.save_hyperparameters()`",
        f"call it there before the checkpoint is saved, or pass the value: "
        f"`{name}.load_from_checkpoint(path, {first}=...)`",
    )


def _keeps(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "save_hyperparameters"
