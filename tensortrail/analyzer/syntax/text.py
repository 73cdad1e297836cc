"""The source of a node as `ast.unparse` writes it, written once: loops are run more than once."""

from __future__ import annotations

import ast
from typing import Any

_KEPT = "_tensortrail_text"


def text_of(node: ast.expr) -> str:
    kept: dict[str, Any] = vars(node)
    found: str | None = kept.get(_KEPT)
    if found is None:
        found = kept[_KEPT] = ast.unparse(node)
    return found
