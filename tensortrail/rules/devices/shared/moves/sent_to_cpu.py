"""Moves of a model to the CPU, and what in a loop may move it back."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.functions import called_here, matched
from tensortrail.rules.shared.moves import TO_DEVICE, moves_to_cpu
from tensortrail.rules.shared.objects import (
    called,
    given,
    is_self,
    is_variable_or_own,
    receiver,
    within,
)
from tensortrail.rules.view import FunctionNode, Module

Loop = ast.For | ast.While


def sent_to_cpu(module: Module, call: ast.Call) -> Iterator[str]:
    """The model that the call moves to the CPU, by itself or in a function of the file."""
    owner = receiver(call)
    if owner is not None and is_variable_or_own(owner) and moves_to_cpu(module, call):
        yield module.text(owner)
        return
    function = called_here(module, call)
    for name, argument in matched(function, call) if function is not None else ():
        if is_variable_or_own(argument) and _leaves_on_cpu(module, function, name):
            yield module.text(argument)


def _leaves_on_cpu(module: Module, function: FunctionNode | None, name: str) -> bool:
    """The function moves its argument, whatever happens, and does not move it back."""
    moves = [
        each
        for each in module.nodes(ast.Call, function)
        if module.text(receiver(each) or each) == name and called(each) in ("cpu", *TO_DEVICE)
    ]
    return bool(moves) and moves_to_cpu(module, moves[-1]) and not module.guards_of(moves[-1])


def moved_before(module: Module, loop: Loop, model: str) -> ast.Call | None:
    """Where the model was moved to a device; of an attribute, anywhere in the class."""
    function = module.function_of(loop)
    scope: ast.AST | None = module.class_of(loop) if model.startswith("self.") else function
    for each in module.nodes(ast.Call, scope or module.top):
        owner = receiver(each)
        if owner is None or called(each) not in TO_DEVICE or moves_to_cpu(module, each):
            continue
        if within(each, loop, module):
            continue
        statement = module.statement_of(each)
        bound = [module.text(t) for t in getattr(statement, "targets", ())]
        if module.text(owner) == model or (bound == [model] and module.parent(each) is statement):
            return each
    return None


def stays_there(module: Module, loop: Loop, call: ast.Call, model: str) -> bool:
    """Nothing in the loop moves it, binds it anew, or gives it to code that is not seen."""
    if any(module.text(each) == model for each in _bound(module, loop)):
        return False
    for each in module.nodes(ast.Call, loop):
        owner = receiver(each)
        if owner is not None and module.text(owner) == model and called(each) in TO_DEVICE:
            if not moves_to_cpu(module, each):
                return False
        elif model in map(module.text, given(each)) and not _is_seen(module, each, model):
            return False
        elif owner is not None and is_self(owner) and _may_move(module, each, model):
            return False  # a method may move it
    return True


def _may_move(module: Module, call: ast.Call, model: str) -> bool:
    """A method of the object that has the model."""
    return model.startswith("self.") and module.text(call.func) != model


def _bound(module: Module, loop: Loop) -> Iterator[ast.expr]:
    yield from (e for e in module.nodes(ast.Name, loop) if not isinstance(e.ctx, ast.Load))
    yield from (e for e in module.nodes(ast.Attribute, loop) if not isinstance(e.ctx, ast.Load))


def _is_seen(module: Module, call: ast.Call, model: str) -> bool:
    """A function of the file that moves it nowhere but to the CPU, or a writer of files."""
    if module.qualified(call.func) in ("torch.save", "print", "len", "isinstance"):
        return True
    function = called_here(module, call)
    pairs = matched(function, call) if function is not None else ()
    names = [name for name, each in pairs if module.text(each) == model]
    return bool(names) and not any(
        called(each) in TO_DEVICE and not moves_to_cpu(module, each)
        for each in module.nodes(ast.Call, function)
        if module.text(receiver(each) or each) in names
    )
