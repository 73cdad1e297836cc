"""A part of the code in a file of its own."""

from __future__ import annotations

import ast

from tensortrail.testing.paraphrases.rewriting import Rewrite, Rewritten, finished

BASES, CONSTANTS = "paraphrase_bases", "paraphrase_constants"


def _base_elsewhere(source: str) -> Rewritten | None:
    """`class A(torch.nn.Module)` -> `class A(Base1)`, and `Base1` in another file."""
    tree = ast.parse(source)
    imports = [each for each in tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    lines = [ast.unparse(each) for each in imports]
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.bases and _is_of_a_library(node.bases[0]):
            names.append(f"Base{len(names) + 1}")
            lines.append(f"class {names[-1]}({ast.unparse(node.bases[0])}):\n    pass")
            node.bases[0] = ast.Name(names[-1], ast.Load())
    return _taken_from(tree, source, BASES, names, lines)


def _constant_elsewhere(source: str) -> Rewritten | None:
    """Texts and numbers that code compares with or calls with, imported from another file."""
    tree = ast.parse(source)
    names: list[str] = []
    lines: list[str] = []

    class Named(ast.NodeTransformer):
        def visit_Compare(self, node: ast.Compare) -> ast.AST:
            node.comparators = [self._named(each) for each in node.comparators]
            return self.generic_visit(node)

        def visit_Call(self, node: ast.Call) -> ast.AST:
            node.args = [self._named(each) for each in node.args]
            for keyword in node.keywords:
                keyword.value = self._named(keyword.value)
            return self.generic_visit(node)

        def _named(self, node: ast.expr) -> ast.expr:
            value = node.value if isinstance(node, ast.Constant) else None
            if isinstance(value, bool) or not isinstance(value, (str, int, float)):
                return node
            names.append(f"WORD_{len(names) + 1}")
            lines.append(f"{names[-1]} = {value!r}")
            return ast.Name(names[-1], ast.Load())

    Named().visit(tree)
    return _taken_from(tree, source, CONSTANTS, names, lines)


def _taken_from(
    tree: ast.Module, source: str, file: str, names: list[str], lines: list[str]
) -> Rewritten | None:
    if not names:
        return None
    tree.body.insert(_place(tree), ast.ImportFrom(file, [ast.alias(name) for name in names], 0))
    return finished(tree, source, {f"{file}.py": "\n".join(lines) + "\n"})


def _place(tree: ast.Module) -> int:
    future = [
        at
        for at, each in enumerate(tree.body)
        if isinstance(each, ast.ImportFrom) and each.module == "__future__"
    ]
    return future[-1] + 1 if future else 0


def _is_of_a_library(base: ast.expr) -> bool:
    return isinstance(base, ast.Attribute)


REWRITES: dict[str, Rewrite] = {
    "base in another file": _base_elsewhere,
    "constant in another file": _constant_elsewhere,
}
