"""What a tokenizer gives in a function that is given a device, and is moved nowhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.patterns import pattern
from tensortrail.rules.devices.shared.named.devices_said import device_parameter
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import called, last_name
from tensortrail.rules.view import FunctionNode, Module

_SIZES = frozenset({"shape", "ndim", "size"})
_MODELS = pattern(r"(^|_)(model|encoder\d*|embedder|transformer|llm|lm|vlm|clip|t5)$")
"""How names end that a model has: what it is called with lies beside its parameters."""


def left_where_asked_for(module: Module) -> Iterator[tuple[ast.Call, ast.Call, str]]:
    """A call that is asked for tensors, the model that takes what it gave, and the device that the
    function is given for it."""
    for function in functions(module):
        device = device_parameter(module, function)
        if device is None or device not in ast.walk(function.args):
            continue
        for name, asked in _asked(module, function):
            names = _made_of(module, function, name)
            if _is_moved(module, function, names, device.arg):
                continue
            for call in module.nodes(ast.Call, function):
                if call is not asked and _is_model(call) and _takes(call, names):
                    yield asked, call, device.arg
                    break


def _asked(module: Module, function: FunctionNode) -> Iterator[tuple[str, ast.Call]]:
    """`ids = tokenizer(text, return_tensors="pt")`, of which nothing more is done at once."""
    for statement in module.nodes(ast.Assign, function):
        value, target = statement.value, statement.targets[0]
        while isinstance(value, (ast.Attribute, ast.Subscript)):
            value = value.value
        if isinstance(value, ast.Call) and isinstance(target, ast.Name):
            keys = {each.arg: each.value for each in value.keywords}
            asks = keys.get("return_tensors")
            if isinstance(asks, ast.Constant) and asks.value == "pt" and "device" not in keys:
                yield target.id, value


def _made_of(module: Module, function: FunctionNode, name: str) -> set[str]:
    """Names that hold it, a part of it, or a mapping of its parts."""
    names = {name}
    for statement in sorted(module.nodes(ast.Assign, function), key=lambda each: each.lineno):
        if not _holds_a_model_call(statement.value) and _reads(statement.value, names):
            names |= {each.id for each in statement.targets if isinstance(each, ast.Name)}
    return names


def _holds_a_model_call(node: ast.AST) -> bool:
    return any(isinstance(each, ast.Call) and _is_model(each) for each in ast.walk(node))


def _is_moved(module: Module, function: FunctionNode, names: set[str], device: str) -> bool:
    """One of them is moved, or is taken by a call together with the device."""
    for call in module.nodes(ast.Call, function):
        if isinstance(call.func, ast.Attribute) and call.func.attr in TO_DEVICE:
            around = (call, *module.ancestors(call))
            owner = call.func.value
            parts = (each for each in around if isinstance(each, (ast.DictComp, ast.ListComp)))
            if not _holds_a_model_call(owner) and _reads(owner, names):
                return True
            if any(_reads(each.generators[0].iter, names) for each in parts):
                return True
        elif _takes(call, names) and _takes(call, {device}):
            return True
    return False


def _is_model(call: ast.Call) -> bool:
    func = call.func
    if called(call) in ("generate", "forward") and isinstance(func, ast.Attribute):
        func = func.value
    name = last_name(func)
    return bool(_MODELS.search(name))


def _takes(call: ast.Call, names: set[str]) -> bool:
    """As an argument, or with `**`."""
    return any(_reads(each, names) for each in (*call.args, *(key.value for key in call.keywords)))


def _reads(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Attribute) and node.attr in _SIZES:
        return False
    if isinstance(node, ast.Name):
        return node.id in names
    return any(_reads(each, names) for each in ast.iter_child_nodes(node))
