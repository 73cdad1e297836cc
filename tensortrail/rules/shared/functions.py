"""The functions of a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.objects import called, last_name
from tensortrail.rules.text_of import text_of
from tensortrail.rules.view import FunctionNode, Module


def functions(module: Module) -> Iterator[FunctionNode]:
    """Every function and method of the file."""
    yield from module.nodes(ast.FunctionDef)
    yield from module.nodes(ast.AsyncFunctionDef)


def parameter_names(function: FunctionNode) -> set[str]:
    """Of all its parameters, `*args` and `**kwargs` too."""
    return {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}


def parameters(function: FunctionNode) -> list[ast.arg]:
    """Those that take one argument each, in order."""
    given = function.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


def names_of_parameters(function: FunctionNode) -> set[str]:
    """Of those that take one argument each."""
    return {each.arg for each in parameters(function)}


def is_static(function: FunctionNode) -> bool:
    """A method without an object of its own."""
    return any(text_of(each) == "staticmethod" for each in function.decorator_list)


def is_property(function: FunctionNode) -> bool:
    """It runs when its name is read: under `property`, `cached_property` and the like."""
    return any(last_name(each).endswith("property") for each in function.decorator_list)


def own_returns(module: Module, function: FunctionNode | None) -> list[ast.Return]:
    """Not those of functions inside of it."""
    found = module.nodes(ast.Return, function)
    return [each for each in found if module.function_of(each) is function]


def is_declared_outside(module: Module, function: FunctionNode | None, name: str) -> bool:
    """The function says `global` or `nonlocal` of the name."""
    return any(name in each.names for each in module.nodes(ast.Global, function)) or any(
        name in each.names for each in module.nodes(ast.Nonlocal, function)
    )


def called_here(module: Module, call: ast.Call) -> FunctionNode | None:
    """The function or method of that name, if the file has but one; `torch.save` is no function
    `save` of the file."""
    found = module.once(_named_once, module.top).get(called(call))
    is_method = isinstance(module.parent(found), ast.ClassDef) if found is not None else False
    return found if isinstance(call.func, ast.Attribute) == is_method else None


def _named_once(module: Module, _: ast.AST) -> dict[str, FunctionNode]:
    found: dict[str, FunctionNode] = {}
    twice: set[str] = set()
    for each in functions(module):
        if each.name in found:
            twice.add(each.name)
        found[each.name] = each
    return {name: each for name, each in found.items() if name not in twice}


def matched(function: FunctionNode, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Each parameter that the call gives, with its argument; `self` of a method is none."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    by_object = isinstance(call.func, ast.Attribute) or function.name == "__init__"
    bound = names[:1] in (["self"], ["cls"]) and by_object
    yield from zip(names[bound:], call.args, strict=False)
    yield from ((each.arg, each.value) for each in call.keywords if each.arg is not None)


def outermost_function(module: Module, node: ast.AST) -> FunctionNode | None:
    """The function around the node that has none around it; None at the top of the file."""
    found, around = None, module.function_of(node)
    while around is not None:
        found, around = around, module.function_of(around)
    return found
