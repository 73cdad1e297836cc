"""Buffers that hold what a constructor computes of its settings."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.shared.objects import called

_TABLES = frozenset(
    (
        "arange range linspace logspace eye tril triu tril_indices triu_indices meshgrid "
        "cartesian_prod hann_window hamming_window diag_embed block_diag vander cumprod cumsum"
    ).split()
)
_FRESH = frozenset("empty zeros ones full tensor".split())
_FROM_ELSEWHERE = tuple(
    (
        "rand load normal uniform from_pretrained open read parameters buffers state_dict "
        "from_numpy clone sample download"
    ).split()
)
_WHERE = ("device", "dtype", "self.device", "self.dtype")
_DEPTH = 6


def tables(module: Module) -> Iterator[tuple[ast.Call, str, list[str]]]:
    """`self.register_buffer(name, table)`, its name, and the settings it is computed from."""
    for call in module.calls("register_buffer"):
        name = _name(module, call)
        if name and not _decides(call) and not _is_written(module, call, name):
            settings = _settings(module, call)
            if settings:
                yield call, name, settings


def _name(module: Module, call: ast.Call) -> str:
    """The name under which it is a buffer of `self`, where that is written out."""
    if module.text(call.func) != "self.register_buffer" or len(call.args) != 2:
        return ""
    constant = module.value_of(call.args[0]).constant
    return constant if isinstance(constant, str) else ""


def _decides(call: ast.Call) -> bool:
    return any(each.arg in ("persistent", None) for each in call.keywords)


def _is_written(module: Module, call: ast.Call, name: str) -> bool:
    """Something else than the registration gives it values: it is a state, not a table."""
    cls, text = module.class_of(call), f"self.{name}"
    if cls is None:
        return True
    for node in module.nodes(ast.Attribute, cls):
        if module.text(node) != text:
            continue
        if not isinstance(node.ctx, ast.Load) or _changes(module, node):
            return True
    return False


def _changes(module: Module, node: ast.expr) -> bool:
    """`self.x[0] = 1`, `self.x.copy_(y)`, `self.x.data = y`."""
    up = module.parent(node)
    if isinstance(up, (ast.Attribute, ast.Subscript)):
        if not isinstance(up.ctx, ast.Load):
            return True
        return up.attr.endswith("_") if isinstance(up, ast.Attribute) else _changes(module, up)
    return False


def _settings(module: Module, call: ast.Call) -> list[str]:
    """What the value is computed from; nothing unless it is a table of settings alone."""
    nodes = list(_all(module, call.args[1]))
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    if any(called(each).startswith(_FROM_ELSEWHERE) for each in calls):
        return []
    if not any(called(each) in _TABLES for each in calls) and not _is_filled(module, call, nodes):
        return []
    known = [each for each in nodes if isinstance(each, ast.expr) and _is_leaf(module, each)]
    if any(_holds_tensors(module, each) for each in known):
        return []
    return [each for each in dict.fromkeys(map(module.text, known)) if each not in _WHERE]


def _holds_tensors(module: Module, given: ast.expr) -> bool:
    """A tensor, or a module whose weights are read."""
    up = module.parent(given)
    of_module = isinstance(up, ast.Attribute) and up.attr in ("weight", "bias", "data")
    return of_module or module.value_of(given).is_tensor


def _all(module: Module, node: ast.AST, depth: int = _DEPTH) -> Iterator[ast.AST]:
    """Every node the value is made of, names followed to what they were bound to."""
    for each in (node, *ast.walk(node)):
        yield each
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and depth:
            for origin in module.value_of(each).origins:
                if origin is not each and origin is not node:
                    yield from _all(module, origin, depth - 1)
            for value in _put_into(module, each):
                yield from _all(module, value, depth - 1)


def _put_into(module: Module, name: ast.Name) -> Iterator[ast.expr]:
    """`value` of `name[i] = value`."""
    function = module.function_of(name)
    for assign in module.nodes(ast.Assign, function):
        target = assign.targets[0]
        owner = target.value if isinstance(target, ast.Subscript) else None
        if isinstance(owner, ast.Name) and owner.id == name.id:
            yield assign.value


def _is_filled(module: Module, call: ast.Call, nodes: list[ast.AST]) -> bool:
    """A fresh tensor whose elements the function computes one by one."""
    value = call.args[1]
    fresh = any(isinstance(each, ast.Call) and called(each) in _FRESH for each in nodes)
    return fresh and isinstance(value, ast.Name) and any(True for _ in _put_into(module, value))


def _is_leaf(module: Module, node: ast.AST) -> bool:
    """A parameter of the function, or an attribute of `self` that is no method."""
    if isinstance(node, ast.Name):
        function = module.function_of(node)
        given = function.args if function is not None else None
        names = [*given.posonlyargs, *given.args, *given.kwonlyargs] if given else []
        return node.id in {each.arg for each in names} - {"self", "cls"}
    if not isinstance(node, ast.Attribute) or module.text(node.value) != "self":
        return False
    up = module.parent(node)
    return not (isinstance(up, ast.Call) and up.func is node)
