"""Statements of a `to()` that ask about an attribute, and then do nothing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import Module

_ABOUT_A_DEVICE = re.compile(r"(^|_)(device|dtype)$")


def asked_in_vain(module: Module, function: ast.FunctionDef) -> Iterator[tuple[ast.stmt, str]]:
    """`if self.table is not None: pass`, and the same of a loop, with what they ask about. The
    method names it nowhere else."""
    named = Counter(_attributes(module, function))
    asked: list[tuple[ast.If | ast.For, ast.expr]] = [
        *((each, each.test) for each in module.nodes(ast.If, function)),
        *((each, each.iter) for each in module.nodes(ast.For, function)),
    ]
    for statement, about in asked:
        if statement.orelse or not all(isinstance(each, ast.Pass) for each in statement.body):
            continue
        counts = Counter(_attributes(module, about))
        name = next((each for each, count in counts.items() if count == named[each]), None)
        if name is not None:
            yield statement, name


def _attributes(module: Module, node: ast.AST) -> Iterator[str]:
    """What is asked for of an object, by a dot or by name, that is no device and no method."""
    for each in ast.walk(node):
        above = module.parent(each)
        if isinstance(each, ast.Attribute) and isinstance(each.value, (ast.Name, ast.Attribute)):
            is_method = isinstance(above, ast.Call) and above.func is each
            if not (is_method or each.attr.startswith("__") or _ABOUT_A_DEVICE.search(each.attr)):
                yield each.attr
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            of_object = isinstance(above, ast.Call) and called(above) == "hasattr"
            if of_object or isinstance(above, ast.Subscript):
                yield each.value
