"""Classes of the file that is read."""

from __future__ import annotations

import ast

from tensortrail.rules.view import Module


def classes_named(module: Module, name: str) -> list[ast.ClassDef]:
    """By its own name, wherever it stands in the file."""
    return [each for each in module.nodes(ast.ClassDef) if each.name == name]
