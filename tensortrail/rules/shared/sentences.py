"""How pieces of code are shown in a sentence."""

from __future__ import annotations

import ast

from tensortrail.rules.view import Module

_LONGEST = 80


def one_line(module: Module, node: ast.AST) -> str:
    """The source of the node for a sentence: on one line, without comments, not too long."""
    text = module.text(node)
    if "\n" in text:
        text = ast.unparse(node).replace("\n", " ")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
