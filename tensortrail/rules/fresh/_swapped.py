"""Objects that put averaged weights into a model and can take them out again, and who uses them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.objects import called, is_self, loop_around, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module

_LIBRARIES = (
    "diffusers.training_utils.EMAModel",
    "diffusers.EMAModel",
    "torch_ema.ExponentialMovingAverage",
    "torch_ema.ema.ExponentialMovingAverage",
)
_OF_LIBRARIES = ("store", "copy_to", "restore")


class Way(NamedTuple):
    """The methods of a class: one keeps the weights, one puts others in, one gives them back."""

    keeps: str
    puts: str
    gives_back: str


def put_and_left(module: Module) -> Iterator[tuple[ast.Call, Way]]:
    """Calls in a loop that put averaged weights in, where nothing of the file takes them out."""
    own = module.once(_own_ways, module.top)
    for call in module.nodes(ast.Call):
        owner = receiver(call)
        if owner is None or loop_around(module, call) is None:
            continue
        way = _way(module, owner, own)
        if way is None or called(call) != way.puts:
            continue
        asked = {called(e) for e in module.nodes(ast.Call) if _is_asked(module, e, owner)}
        if way.keeps in asked and way.gives_back not in asked:
            yield call, way


def _is_asked(module: Module, call: ast.Call, owner: ast.expr) -> bool:
    asked = receiver(call)
    return asked is not None and module.text(asked) == module.text(owner)


def _way(module: Module, owner: ast.expr, own: dict[str, Way]) -> Way | None:
    made = _made(module, owner)
    name = module.qualified(made.func) if made is not None else ""
    if name in _LIBRARIES:
        return Way(*_OF_LIBRARIES)
    return own.get(name.rpartition(".")[2]) if name else None


def _made(module: Module, owner: ast.expr) -> ast.Call | None:
    """What made the object, also if it is an attribute that the class binds once."""
    made = behind(module, owner)
    if isinstance(owner, ast.Attribute) and is_self(owner.value):
        bound = [
            each.value
            for each in module.nodes(ast.Assign, module.class_of(owner))
            if module.text(each.targets[0]) == module.text(owner)
        ]
        made = bound[0] if len(bound) == 1 else owner
    return made if isinstance(made, ast.Call) else None


def _own_ways(module: Module, file: ast.AST) -> dict[str, Way]:
    """Of the file's classes, by what their methods do: `self.kept[n] = p.data; p.data = self.x[n]`
    in one, `p.data = self.kept[n]` in another."""
    found = {}
    for cls in module.nodes(ast.ClassDef):
        puts = {m.name: kept for m in _methods(cls) for kept in _kept_by(module, m) if _writes(m)}
        for name, kept in puts.items():
            back = [m.name for m in _methods(cls) if m.name != name and _gives(module, m, kept)]
            if len(back) == 1:
                found[cls.name] = Way(name, name, back[0])
    return found


def _methods(cls: ast.ClassDef) -> list[ast.FunctionDef]:
    return [each for each in cls.body if isinstance(each, ast.FunctionDef)]


def _kept_by(module: Module, method: ast.FunctionDef) -> Iterator[str]:
    """`self.kept` of `self.kept[name] = p.data`."""
    for assign in module.nodes(ast.Assign, method):
        target = assign.targets[0]
        of_own = isinstance(target, ast.Subscript) and isinstance(target.value, ast.Attribute)
        if of_own and any(_is_data(each) for each in ast.walk(assign.value)):
            yield module.text(target.value)  # type: ignore[attr-defined]


def _is_data(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "data"


def _writes(method: ast.FunctionDef) -> bool:
    """`p.data = ...` or `p.data.copy_(...)`."""
    return any(_written(each) is not None for each in ast.walk(method))


def _written(node: ast.AST) -> ast.expr | None:
    """What is put into the memory of a parameter."""
    if isinstance(node, ast.Assign) and _is_data(node.targets[0]):
        return node.value
    if isinstance(node, ast.Call) and called(node) == "copy_" and node.args:
        owner = receiver(node)
        return node.args[0] if owner is not None and _is_data(owner) else None
    return None


def _gives(module: Module, method: ast.FunctionDef, kept: str) -> bool:
    written = (_written(each) for each in ast.walk(method))
    return any(each is not None and module.text(each).startswith(f"{kept}[") for each in written)
