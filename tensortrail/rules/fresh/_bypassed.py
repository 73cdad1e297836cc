"""Losses that are computed by what a wrapper of distributed training holds, not by the wrapper."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.losses import calls_behind
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.shared.optimizers import is_asked_of
from tensortrail.rules.shared.parallel_wrappers import AVERAGING
from tensortrail.rules.view import Module

_WITHOUT = ("no_grad", "inference_mode")
_BY_HAND = ("average_gradients", "sync_gradients", "reduce_gradients")


class Bypass(NamedTuple):
    call: ast.Call
    wrapped: ast.AST
    backward: ast.Call


def calls_around_wrapper(module: Module) -> Iterator[Bypass]:
    for backward in module.calls("backward"):
        loss = receiver(backward)
        function = module.function_of(backward) or module.top
        if loss is None or _averages(module, function):
            continue
        for call in calls_behind(module, loss, backward):
            found = _wrapper_of(module, call)
            if found is None or _is_called(module, function, found[0]) or _is_asleep(module, call):
                continue
            yield Bypass(call, found[1], backward)
            break


def plain_backwards(module: Module) -> Iterator[tuple[ast.Call, ast.Assign]]:
    """`loss.backward()` where `engine.step()` follows."""
    for made in module.calls("deepspeed.initialize"):
        assign = module.parent(made)
        target = assign.targets[0] if isinstance(assign, ast.Assign) else None
        if isinstance(target, ast.Tuple):
            target = target.elts[0]
        if not isinstance(assign, ast.Assign) or not isinstance(target, (ast.Name, ast.Attribute)):
            continue
        engine, function = module.text(target), module.function_of(assign)
        around = function if isinstance(target, ast.Name) else module.class_of(assign)
        steps = [
            each
            for each in module.calls("step", inside=around)
            if is_asked_of(module, each, engine)
        ]
        stepping = {module.function_of(each) for each in steps}
        for backward in module.calls("backward", inside=around):
            loss = receiver(backward)
            if loss is None or is_asked_of(module, backward, engine) or backward.args:
                continue
            if module.function_of(backward) in stepping:
                yield backward, assign


def _wrapper_of(module: Module, call: ast.Call) -> tuple[str, ast.AST] | None:
    """The wrapper whose `module` is called, or whose method is, and where it is wrapped."""
    held: ast.expr = call.func
    for _ in range(2):
        if isinstance(held, ast.Attribute) and held.attr == "module":
            made = _wrapped(module, held.value)
            return (module.text(held.value), made) if made is not None else None
        if isinstance(held, ast.Name):
            return _by_name(module, held)
        if not isinstance(held, ast.Attribute):
            return None
        held = held.value
    return None


def _by_name(module: Module, name: ast.Name) -> tuple[str, ast.AST] | None:
    """`bare = model.module if isinstance(model, DistributedDataParallel) else model`"""
    origins = module.value_of(name).origins
    for origin in origins:
        inner = origin.body if isinstance(origin, ast.IfExp) else origin
        if not isinstance(inner, ast.Attribute) or inner.attr != "module":
            continue
        made = _wrapped(module, inner.value)
        if made is None and isinstance(origin, ast.IfExp) and _asks(module, origin.test):
            made = origin
        if made is not None:
            return module.text(inner.value), made
    return None


def _asks(module: Module, test: ast.expr) -> bool:
    return any(
        module.qualified(each) in AVERAGING
        for each in ast.walk(test)
        if isinstance(each, (ast.Name, ast.Attribute))
    )


def _wrapped(module: Module, owner: ast.expr) -> ast.AST | None:
    """`DistributedDataParallel(...)` that the name or attribute gets."""
    sources = list(module.value_of(owner).origins)
    if isinstance(owner, ast.Attribute):
        sources += [
            each.value
            for each in module.nodes(ast.Assign, module.class_of(owner))
            if module.text(each.targets[0]) == module.text(owner)
        ]
    for each in sources:
        if isinstance(each, ast.Call) and module.qualified(each.func) in AVERAGING:
            return each
    return None


def _is_called(module: Module, function: ast.AST, wrapper: str) -> bool:
    """The wrapper itself runs in the function too: that is the loss that it prepares for."""
    inside = None if function is module.top else function
    return any(module.text(each.func) == wrapper for each in module.nodes(ast.Call, inside))


def _averages(module: Module, function: ast.AST) -> bool:
    inside = None if function is module.top else function
    calls = [*module.nodes(ast.Call, inside)]
    reduced = (each for each in calls if called(each) == "all_reduce")
    by_hand = any(called(each) in _BY_HAND for each in calls)
    return by_hand or any(_may_be_gradients(module, each) for each in reduced)


def _may_be_gradients(module: Module, reduce: ast.Call) -> bool:
    """What is known to come from something else, such as a loss for the log, is none."""
    given = reduce.args[0] if reduce.args else None
    if not isinstance(given, ast.Name):
        return True
    origins = module.value_of(given).origins
    inside = (node for each in origins for node in ast.walk(each))
    return not origins or any(
        isinstance(each, ast.Attribute) and "grad" in each.attr for each in inside
    )


def _is_asleep(module: Module, call: ast.Call) -> bool:
    around = (module.text(each) for each in module.contexts_of(call))
    return any(word in each for each in around for word in _WITHOUT)
