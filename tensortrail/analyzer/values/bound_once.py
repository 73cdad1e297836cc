"""Names of a file that one assignment binds: they can be known before all of it has been run."""

from __future__ import annotations

import ast
from collections import Counter

from tensortrail.rules.view import Module


def names_bound_once(module: Module, root: ast.AST) -> frozenset[str]:
    """Names that are assigned to once below the node, in whatever function."""
    names = module.nodes(ast.Name, root)
    stored = Counter(each.id for each in names if isinstance(each.ctx, ast.Store))
    return frozenset(name for name, count in stored.items() if count == 1)
