"""The functions of the project that a call runs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TypeVar

from tensortrail.rules.shared.functions import called_here
from tensortrail.rules.shared.objects import called, is_self_or_cls, receiver
from tensortrail.rules.view import Module

A = TypeVar("A")


def asked_of_callee(
    module: Module, call: ast.Call, question: Callable[[Module, ast.AST], A]
) -> A | None:
    """What the question says of the function that the call runs; None if that is not known."""
    here = called_here(module, call) if isinstance(call.func, ast.Name) else None
    if here is not None:
        return module.once(question, here)
    answers = (module.about(each, question) for each in _names(module, call))
    return next((each for each in answers if each is not None), None)


def _names(module: Module, call: ast.Call) -> Iterator[str]:
    """What it may be called: a method is of the class of its object or of one of its bases, and an
    object that is called runs its `__call__` or its `forward`."""
    owner = receiver(call)
    if owner is None or not (classes := _classes(module, owner)):
        yield module.qualified(call.func)
    for each in classes if owner is not None else ():
        yield f"{each}.{called(call)}"
    for each in _classes(module, call.func):
        yield from (f"{each}.__call__", f"{each}.forward")


def _classes(module: Module, owner: ast.expr) -> tuple[str, ...]:
    """The class of the object, and its bases."""
    cls = module.class_of(owner) if is_self_or_cls(owner) else module.value_of(owner).cls
    facts = module.class_facts(cls) if cls else None
    return (facts.name, *facts.bases) if facts is not None else ()
