"""Names of a file that one assignment binds: they can be known before all of it has been run."""

from __future__ import annotations

import ast
from collections import Counter

from tensortrail.analyzer.syntax.tree import Tree


def names_bound_once(tree: Tree, root: ast.AST) -> frozenset[str]:
    """Names that are assigned to once below the node, in whatever function."""
    names = tree.nodes(ast.Name, root)
    stored = Counter(each.id for each in names if isinstance(each.ctx, ast.Store))
    return frozenset(name for name, count in stored.items() if count == 1)
