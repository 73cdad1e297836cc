"""Hooks that a function puts on a model of somebody else for a call that it makes itself."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.functions import names_of_parameters, own_returns
from tensortrail.rules.shared.objects import (
    attributes_in,
    called,
    given,
    is_before,
    is_name,
    is_self,
    names_in,
    receiver,
    root_of,
)
from tensortrail.rules.shared.origins import names_behind
from tensortrail.rules.view import FunctionNode, Module

_ENDS = ("remove", "clear")
_HIDDEN = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")
_SETS_UP = ("__init__", "__post_init__")


def is_left(module: Module, function: FunctionNode, call: ast.Call) -> bool:
    """Nothing has the handle, and the function removes no hooks."""
    if function.name in _SETS_UP or not _is_dropped(module, function, call):
        return False
    ends = any(end in called(each) for each in module.nodes(ast.Call, function) for end in _ENDS)
    hidden = any(True for name in _HIDDEN for _ in module.members(name, function))
    yields = any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(function))
    return not (ends or hidden or yields or _is_asked_about(module, call))


def _is_dropped(module: Module, function: FunctionNode, call: ast.Call) -> bool:
    up = module.parent(call)
    if isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Name):
        uses = module.uses(up.targets[0].id, function)
        return all(isinstance(each.ctx, ast.Store) for each in uses)
    return isinstance(up, ast.Expr)


def _is_asked_about(module: Module, call: ast.Call) -> bool:
    """An attribute may say that the hook is there already."""
    return any(
        "hasattr" in names_in(guard.test)
        or any(is_self(each.value) for each in attributes_in(guard.test))
        for guard in module.guards_of(call)
    )


def run_with(module: Module, function: FunctionNode, call: ast.Call) -> ast.Call | None:
    """The call of the model with the hook: of a parameter, or of an attribute of `self`."""
    for each in module.nodes(ast.Call, function):
        inside = module.function_of(call) is not function
        if module.function_of(each) is not function or not (inside or is_before(call, each)):
            continue
        if _is_lasting(module, function, each.func) and _has_hook(module, function, each, call):
            return each
    return None


def _is_lasting(module: Module, function: FunctionNode, model: ast.expr) -> bool:
    """The caller has it too, and does not get it back from here."""
    if isinstance(model, ast.Attribute):
        return is_self(model.value) and not _is_method(module, model)
    if not isinstance(model, ast.Name) or model.id not in names_of_parameters(function):
        return False
    stores = [each for each in module.uses(model.id, function) if isinstance(each.ctx, ast.Store)]
    kept = all(_is_itself(module, each) for each in stores)
    given_back = any(
        each.value is not None and model.id in _whole_names(each.value)
        for each in own_returns(module, function)
    )
    return kept and not given_back


def _is_method(module: Module, node: ast.Attribute) -> bool:
    cls = module.class_of(node)
    own = cls.body if cls is not None else []
    return any(isinstance(each, ast.FunctionDef) and each.name == node.attr for each in own)


def _is_itself(module: Module, stored: ast.Name) -> bool:
    """`model = model.eval()`"""
    assign = module.statement_of(stored)
    return isinstance(assign, ast.Assign) and is_name(root_of(assign.value), stored.id)


def _whole_names(value: ast.expr) -> set[str]:
    elements = value.elts if isinstance(value, ast.Tuple) else [value]
    return {each.id for each in elements if isinstance(each, ast.Name)}


def _has_hook(module: Module, function: FunctionNode, run: ast.Call, call: ast.Call) -> bool:
    """The hook is put on the model that is run, or on a part of it."""
    owner, model = receiver(call), module.text(run.func)
    if owner is None:
        return False
    around = module.function_of(call)
    if around is not function and around is not None:
        calls = (each for each in module.nodes(ast.Call, function) if each is not run)
        return any(
            model == module.text(one)
            for each in calls
            for one in (*given(each), receiver(each))
            if one is not None
        )
    if module.text(owner) == model or module.text(owner).startswith((f"{model}.", f"{model}[")):
        return True
    loops = (each.iter for each in module.ancestors(call) if isinstance(each, ast.For))
    texts = [module.text(each) for each in loops]
    return model in names_behind(module, owner) or any(
        text == model or text.startswith(f"{model}.") or f"({model}." in text for text in texts
    )


def is_of_the_call(module: Module, function: FunctionNode, call: ast.Call, run: ast.Call) -> bool:
    """The hook is written in the function; in a loop it has to fill what the function keeps."""
    said = module.argument(call, 0, "hook")
    hook = _written_in(module, function, said) if said is not None else None
    in_loop = any(isinstance(each, (ast.For, ast.While)) for each in module.ancestors(run))
    return hook is not None and (not in_loop or _fills(module, function, hook))


def _written_in(module: Module, function: FunctionNode, said: ast.expr) -> ast.AST | None:
    """`keep`, `make(name)`, `partial(keep, name)`, where the function has `keep` or `make`."""
    if isinstance(said, ast.Lambda):
        return said
    partial = isinstance(said, ast.Call) and module.qualified(said.func) == "functools.partial"
    if isinstance(said, ast.Call):
        return _written_in(module, function, said.args[0] if partial else said.func)
    named = said.id if isinstance(said, ast.Name) else ""
    inner = (each for each in module.nodes(ast.FunctionDef, function) if each.name == named)
    return next(inner, None)


def _fills(module: Module, function: FunctionNode, hook: ast.AST) -> bool:
    """A list or dict of the function around it."""
    own = {each.id for each in module.nodes(ast.Name, function) if isinstance(each.ctx, ast.Store)}
    changed = [receiver(each) for each in module.nodes(ast.Call, hook)]
    changed += [
        each.value for each in module.nodes(ast.Subscript, hook) if isinstance(each.ctx, ast.Store)
    ]
    return any(isinstance(each, ast.Name) and each.id in own for each in changed)
