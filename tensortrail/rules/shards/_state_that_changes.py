"""How bad it is that a kept state dict is no copy: whether what it is of changes later."""

from __future__ import annotations

import ast

from tensortrail.findings import Severity
from tensortrail.rules.shared.objects import called, name_of, receiver
from tensortrail.rules.view import Module
from tensortrail.rules.words import Kind

_OF_MODULES_AND_OPTIMIZERS = frozenset(
    "train eval parameters named_parameters buffers named_buffers modules named_modules to cuda "
    "cpu half float requires_grad_ zero_grad step forward apply".split()
)


def weight_of(module: Module, assign: ast.Assign, owner: str, is_best: bool) -> Severity:
    """Whatever has a state can be loaded, samplers and data too: a warning where the class also
    runs, trains or moves it, or keeps its best state. A note where it is not trained."""
    cls = module.class_of(assign)
    asked = [
        (call, subject)
        for call in module.nodes(ast.Call, cls)
        if (subject := receiver(call)) is not None and name_of(module, subject) == owner
    ]
    used = any(_is_of_a_model(module, call, subject) for call, subject in asked) or any(
        module.text(call.func) == owner for call in module.nodes(ast.Call, cls)
    )
    if _is_frozen(module, cls, owner):
        return Severity.NOTE
    return Severity.WARNING if is_best or used else Severity.NOTE


def _is_of_a_model(module: Module, call: ast.Call, subject: ast.expr) -> bool:
    is_module = module.value_of(subject).is_only(Kind.MODULE)
    return is_module or called(call) in _OF_MODULES_AND_OPTIMIZERS


def _is_frozen(module: Module, cls: ast.ClassDef | None, owner: str) -> bool:
    """`for p in model.parameters(): p.requires_grad = False`, in the class."""
    return any(
        called(call) == "parameters"
        and (subject := receiver(call)) is not None
        and name_of(module, subject) == owner
        and any(_is_set_to_false(each) for each in loop.body)
        for loop in module.nodes(ast.For, cls)
        for call in (loop.iter,)
        if isinstance(call, ast.Call)
    )


def _is_set_to_false(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(
            targets=[ast.Attribute(attr="requires_grad")], value=ast.Constant(value=False)
        ):
            return True
    return False
