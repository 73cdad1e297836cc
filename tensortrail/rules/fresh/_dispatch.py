"""Finding, in a tensor subclass, the code that answers one op."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Guard, Module

Answer = tuple[ast.AST, list[ast.stmt]]
"""The condition or function that answers the op, and its body."""


def answers(module: Module, op: str) -> Iterator[Answer]:
    """`if func == aten.<op>...:` in a dispatch, or a function registered for the op."""
    for branch in module.branches():
        asked = [each for each in branch.guards if _compares_with(module, each, op)]
        if asked and _in_dispatch(module, branch.node):
            yield asked[0].test, branch.body
    yield from _tabled(module, op)
    for function in module.nodes(ast.FunctionDef):
        for decorator in function.decorator_list:
            if isinstance(decorator, ast.Call) and _only_names(module, decorator, op):
                yield function, function.body


def _tabled(module: Module, op: str) -> Iterator[Answer]:
    """`{aten.<op>.default: cls.handler}`: the functions a table has for the op."""
    for table in module.nodes(ast.Dict):
        for key, value in zip(table.keys, table.values, strict=True):
            if key is None or not names_op(module, key, op):
                continue
            name = module.text(value).rpartition(".")[2]
            for function in module.nodes(ast.FunctionDef):
                same = module.class_of(function) in (None, module.class_of(value))
                if function.name == name and same:
                    yield function, function.body


def names_op(module: Module, node: ast.AST, op: str) -> bool:
    """`aten.<op>` or `aten.<op>.<overload>`."""
    parts = module.qualified(node).split(".")
    return "aten" in parts and parts[parts.index("aten") + 1 :][:1] == [op]


def _compares_with(module: Module, guard: Guard, op: str) -> bool:
    test = guard.test
    same = (ast.Eq, ast.Is) if guard.holds else (ast.NotEq, ast.IsNot)
    return (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], same)
        and names_op(module, test.comparators[0], op)
    )


def _only_names(module: Module, decorator: ast.Call, op: str) -> bool:
    """The decorator registers the function for this op, and for no other."""
    attributes = [
        each
        for argument in decorator.args
        for each in ast.walk(argument)
        if isinstance(each, ast.Attribute) and "aten" in module.qualified(each).split(".")
    ]
    full = [each for each in attributes if module.qualified(each).split(".")[-2:-1] != ["ops"]]
    named = [each for each in full if module.qualified(each).split("aten.")[-1:] != [""]]
    ops = {module.qualified(each).split("aten.")[-1].split(".")[0] for each in named} - {
        "torch",
        "",
    }
    return ops == {op}


def _in_dispatch(module: Module, node: ast.AST) -> bool:
    function = module.function_of(node)
    return function is not None and "torch_dispatch" in function.name
