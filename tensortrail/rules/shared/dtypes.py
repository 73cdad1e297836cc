"""Whether an argument names a dtype."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.objects import all_given
from tensortrail.rules.view import Module


def is_dtype(module: Module, node: ast.expr) -> bool:
    """An argument of `.to` that names a dtype."""
    if isinstance(node, ast.Attribute) and node.attr.endswith("dtype"):
        return True
    if isinstance(node, ast.Name) and node.id.endswith("dtype"):
        return True
    dotted = module.qualified(node)
    return dotted.startswith("torch.") and dotted.count(".") == 1 and not isinstance(node, ast.Call)


def is_cast(module: Module, call: ast.Call) -> bool:
    """`x.to(torch.float32)`, which moves nothing."""
    given = all_given(call)
    return len(given) == 1 and is_dtype(module, given[0])
