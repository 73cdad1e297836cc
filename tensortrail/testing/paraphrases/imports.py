"""Libraries by other names."""

from __future__ import annotations

import ast

from tensortrail.testing.paraphrases.rewriting import Rewrite, of_tree


class _Swap(ast.NodeTransformer):
    def __init__(self, names: dict[str, ast.expr]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._names.get(node.id, node)


def _alias(tree: ast.Module) -> None:
    """`import torch` -> `import torch as torch_`; `from x import y` -> `from x import y as y_`."""
    changed: dict[str, ast.expr] = {}
    for node in tree.body:
        if not isinstance(node, (ast.Import, ast.ImportFrom)) or _is_of_the_language(node):
            continue
        for each in node.names:
            bound = each.asname or each.name
            if "." not in bound and bound != "*":
                each.asname = f"{bound}_"
                changed[bound] = ast.Name(each.asname, ast.Load())
    _Swap(changed).visit(tree)


def _whole_module(tree: ast.Module) -> None:
    """`from x import y` -> `import x as whole`, and `whole.y` for `y`."""
    changed: dict[str, ast.expr] = {}
    for at, node in enumerate(tree.body):
        plain = (
            isinstance(node, ast.ImportFrom) and not node.level and not _is_of_the_language(node)
        )
        if not plain or not isinstance(node, ast.ImportFrom) or node.names[0].name == "*":
            continue
        alias = f"whole_{at}"
        tree.body[at] = ast.Import([ast.alias(node.module or "", alias)])
        for each in node.names:
            held = ast.Attribute(ast.Name(alias, ast.Load()), each.name, ast.Load())
            changed[each.asname or each.name] = held
    _Swap(changed).visit(tree)


def _is_of_the_language(node: ast.Import | ast.ImportFrom) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module in ("__future__", "typing")


REWRITES: dict[str, Rewrite] = {
    "aliased import": of_tree(_alias),
    "whole module": of_tree(_whole_module),
}
