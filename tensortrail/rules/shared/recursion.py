"""Functions that call themselves, and what they leave out then."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.functions import names_of_parameters
from tensortrail.rules.shared.objects import names_in, unpacks
from tensortrail.rules.view import FunctionNode, Module


def options_left_out(module: Module, call: ast.Call, function: FunctionNode) -> tuple[str, ...]:
    """Options that the function was given and reads, and that this call of itself leaves out."""
    if unpacks(call):
        return ()
    arguments = function.args
    positional = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
    if positional[:1] in (["self"], ["cls"]) and isinstance(call.func, ast.Attribute):
        positional = positional[1:]
    optional = positional[max(0, len(positional) - len(arguments.defaults)) :]
    optional += [each.arg for each in arguments.kwonlyargs]
    given = {*positional[: len(call.args)], *(each.arg for each in call.keywords)}
    read = {each.id for each in module.nodes(ast.Name, function) if isinstance(each.ctx, ast.Load)}
    left_out = [name for name in optional if name not in given and name in read]
    return tuple(name for name in left_out if not _is_of_one_level(module, function, name))


def _is_of_one_level(module: Module, function: FunctionNode, name: str) -> bool:
    """`index = first` that counts the members of a loop: the next level has others. And a flag
    under which the function calls itself without it: it is meant for the first call."""
    counts = {name, *_copies_of(module, function, name)}
    if any(module.text(each.target) in counts for each in module.nodes(ast.AugAssign, function)):
        return True
    return any(
        name not in names_in(call) and any(_asks(up, name) for up in module.ancestors(call))
        for call in module.calls(function.name, inside=function)
    )


def _copies_of(module: Module, function: FunctionNode, name: str) -> Iterator[str]:
    for each in module.nodes(ast.Assign, function):
        if module.text(each.value) == name:
            yield module.text(each.targets[0])


def _asks(node: ast.AST, flag: str) -> bool:
    """`if flag:`, `if flag and more:`"""
    test = node.test if isinstance(node, ast.If) else None
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    return any(isinstance(each, ast.Name) and each.id == flag for each in parts)


def _is_imported_in(module: Module, function: FunctionNode) -> bool:
    """Inside of the function its name is something else: `from .torch_engine import train`."""
    return any(
        (each.asname or each.name) == function.name
        for statement in module.nodes(ast.ImportFrom, function)
        for each in statement.names
    )


def _is_bound_in(function: FunctionNode) -> bool:
    """`def diagnostic(data, diagnostic)`: its name is a parameter's within."""
    return function.name in names_of_parameters(function)


def calls_itself(module: Module, call: ast.Call, function: FunctionNode) -> bool:
    """The call is of the function around it: by its name, by `self`, by its class, or as the
    method of an object that was asked to be of the same class."""
    func, cls = call.func, module.parent(function)
    if not isinstance(cls, ast.ClassDef):
        named = isinstance(func, ast.Name) and func.id == function.name
        return named and not _is_imported_in(module, function) and not _is_bound_in(function)
    if not isinstance(func, ast.Attribute) or func.attr != function.name:
        return False
    owner = module.text(func.value)
    if owner in ("self", "cls"):
        return True
    own = {cls.name, "type(self)", "self.__class__", "cls"}
    return any(
        isinstance(guard.test, ast.Call)
        and guard.holds
        and module.qualified(guard.test.func) == "isinstance"
        and len(guard.test.args) == 2
        and ast.unparse(guard.test.args[0]) == owner
        and ast.unparse(guard.test.args[1]) in own
        for guard in module.guards_of(call)
    )
