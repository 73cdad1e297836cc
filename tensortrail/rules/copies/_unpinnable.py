"""Batches of a class that a loader cannot pin."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.functions import called_here
from tensortrail.rules.shared.objects import called, keyword
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module


def own_batch(module: Module, loader: ast.Call) -> ast.ClassDef | None:
    """The plain class of what its `collate_fn` gives, if it cannot be pinned."""
    collate = keyword(loader, "collate_fn")
    name = module.text(collate) if isinstance(collate, ast.Name) else ""
    functions = [each for each in module.nodes(ast.FunctionDef) if each.name == name]
    made = set(_made_by(module, functions[0])) if len(functions) == 1 else set()
    classes = [each for each in module.nodes(ast.ClassDef) if each.name in made]
    if len(made) != 1 or len(classes) != 1:
        return None
    cls = classes[0]
    facts = module.class_facts(cls)
    is_plain = facts is not None and not facts.bases and facts.complete and not cls.keywords
    has_one = facts is not None and "pin_memory" in facts.methods
    return cls if is_plain and not has_one and not cls.bases else None


def _made_by(module: Module, function: ast.FunctionDef, depth: int = 2) -> Iterator[str]:
    """The names of what is called to make what the function gives, "" for all else."""
    for each in module.nodes(ast.Return, function):
        made = behind(module, each.value) if each.value is not None else None
        inner = called_here(module, made) if isinstance(made, ast.Call) and depth else None
        if isinstance(inner, ast.FunctionDef) and inner.name != "__init__":
            yield from _made_by(module, inner, depth - 1)
        else:
            yield called(made) if isinstance(made, ast.Call) else ""
