"""Statements that offload something without asking whether it is there, or is to be offloaded."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.view import Module

_VERBS = ("offload", "onload", "unload", "prefetch")
_SETS_UP = re.compile(r"enable\w*offload|\w*_offload$|offload")
_FLAG = re.compile(r"self\.\w*offload\w*", re.IGNORECASE)
_ENOUGH = 2
"""Other statements that ask for their key."""


def unasked(module: Module) -> Iterator[tuple[ast.Call, str]]:
    """Each with what is wrong with it."""
    for call in module.calls(*_VERBS):
        if not isinstance(module.parent(call), ast.Expr):
            continue
        subject = receiver(call)
        found = ""
        match subject:
            case ast.Attribute(value=ast.Name(id="self")):
                found = _of_a_hook(module, call, subject)
            case ast.Subscript():
                found = _of_a_key(module, call, subject)
            case ast.Name(id="self"):
                found = _of_a_flag(module, call)
        if found:
            yield call, found


def _of_a_hook(module: Module, call: ast.Call, hook: ast.Attribute) -> str:
    """`self.last_hook.offload()`, of a hook that only `enable_offload()` of the class sets."""
    cls, function = module.class_of(call), module.function_of(call)
    if cls is None or "hook" not in hook.attr or _asks_for(module, call, hook.attr):
        return ""
    setters = {
        module.function_of(each)
        for each in module.nodes(ast.Attribute, cls)
        if each.attr == hook.attr and isinstance(each.ctx, ast.Store)
    }
    names = [each.name for each in setters if each is not None]
    if not names or function in setters or not all(map(_SETS_UP.search, names)):
        return ""
    if any(_binds(each, hook.attr) for each in cls.body):
        return ""
    return f"only `{names[0]}` sets `self.{hook.attr}`, and this does not test it"


def _binds(statement: ast.stmt, name: str) -> bool:
    """The class itself has a value of that name."""
    if isinstance(statement, ast.AnnAssign):
        return statement.value is not None and ast.unparse(statement.target) == name
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    return any(isinstance(each, ast.Name) and each.id == name for each in targets)


def _of_a_key(module: Module, call: ast.Call, subject: ast.Subscript) -> str:
    """`self.loaders[name].onload()`, where all others ask `name in self.loaders`."""
    cls, held = module.class_of(call), module.text(subject.value)
    if cls is None or _asks_for(module, call, held):
        return ""
    others = [
        each
        for each in module.calls(*_VERBS, inside=cls)
        if each is not call
        and isinstance(of := receiver(each), ast.Subscript)
        and module.text(of.value) == held
    ]
    if len(others) < _ENOUGH or not all(_asks_for(module, each, held) for each in others):
        return ""
    line = others[0].lineno
    return f"the {len(others)} others of the class test what `{held}` holds, as line {line} does"


def _of_a_flag(module: Module, call: ast.Call) -> str:
    """`self.offload(layer)`, where `self.prefetch(...)` of the same function asks a flag."""
    function = module.function_of(call)
    if function is None or _flags(module, call) or called(call) == function.name:
        return ""
    for each in module.calls(*_VERBS, inside=function):
        flags = _flags(module, each)
        own = isinstance(subject := receiver(each), ast.Name) and subject.id == "self"
        if own and flags and called(each) != called(call):
            flag = sorted(flags)[0]
            return f"the call runs whatever `{flag}` says, but line {each.lineno} tests it"
    return ""


def _flags(module: Module, call: ast.Call) -> set[str]:
    return {name for each in module.guards_of(call) for name in _FLAG.findall(each.text)}


def _asks_for(module: Module, call: ast.Call, name: str) -> bool:
    """A condition names it, or a variable that stands for it."""
    guards = module.guards_of(call)
    asked = (node for each in guards for node in ast.walk(each.test) if isinstance(node, ast.Name))
    sources = (module.text(source) for node in asked for source in module.value_of(node).origins)
    return any(name in text for text in (*(each.text for each in guards), *sources))
