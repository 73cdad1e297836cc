"""What a function keeps in a cache: under which key, how long, and on which device."""

from __future__ import annotations

import ast

from tensortrail.rules import Module
from tensortrail.rules.devices.shared.named.devices_said import devices_said
from tensortrail.rules.shared.objects import is_self
from tensortrail.rules.shared.origins import names_behind
from tensortrail.rules.shared.tensor_origin import origin_of
from tensortrail.rules.shared.who_decides import Decides
from tensortrail.rules.view import FunctionNode

_CACHES = ("functools.lru_cache", "functools.cache", "lru_cache", "cache")


def is_cache(module: Module, decorator: ast.expr) -> bool:
    return module.qualified(decorator) in _CACHES


def is_told_the_device(module: Module, function: FunctionNode) -> bool:
    """A parameter is a device, or a tensor or module that has one."""
    given = function.args
    for each in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        said = module.text(each.annotation) if each.annotation is not None else ""
        if "device" in each.arg or "device" in said or "Tensor" in said or each.arg == "self":
            return True
    return given.vararg is not None or given.kwarg is not None


def returns_tensor(module: Module, function: FunctionNode) -> bool:
    return any(
        each.value is not None
        and origin_of(module, each.value).decides in (Decides.MOVED, Decides.DEFAULT)
        for each in module.nodes(ast.Return, function)
    )


def lasts(module: Module, held: ast.expr) -> bool:
    """The dictionary outlives the call: a global, or an attribute of a class or object."""
    if isinstance(held, ast.Attribute):
        return "cache" in held.attr.lower() or _is_own_dict(module, held)
    if not isinstance(held, ast.Name):
        return False
    function = module.function_of(held)
    local = function is None or any(
        isinstance(each.ctx, ast.Store) and each.id == held.id
        for each in module.nodes(ast.Name, function)
    )
    given = ast.walk(function.args) if function is not None else ()
    return not local and held.id not in [each.arg for each in given if isinstance(each, ast.arg)]


def _is_own_dict(module: Module, held: ast.Attribute) -> bool:
    """`self.tables = {}` where the object is made, and nowhere else."""
    cls = module.class_of(held)
    if cls is None or not is_self(held.value):
        return False
    text = module.text(held)
    plain = [(each.targets[0], each.value) for each in module.nodes(ast.Assign, cls)]
    typed = [(each.target, each.value) for each in module.nodes(ast.AnnAssign, cls)]
    bound = [value for target, value in (*plain, *typed) if module.text(target) == text]
    return len(bound) == 1 and isinstance(bound[0], ast.Dict) and not bound[0].keys


def made_on(module: Module, value: ast.expr) -> str:
    """The device that a call is given to make the value: an argument called so, or `device=`."""
    if not isinstance(value, ast.Call) or module.text(value.func).rpartition(".")[2][:1].isupper():
        return ""  # an object, which may keep a device as its word
    for call, said in devices_said(module, module.statement_of(value)):
        computed = module.qualified(value.func).startswith("torch.")
        if (call is value or computed) and isinstance(said, (ast.Name, ast.Attribute)):
            return module.text(said)
    for each in value.args:
        text = module.text(each)
        if text == "device" or text.endswith(".device"):
            return text
    return ""


def key_names(module: Module, key: ast.expr, device: str, made: ast.expr) -> bool:
    texts = [module.text(key)]
    if isinstance(key, ast.Name):
        texts += [module.text(each) for each in module.value_of(key).origins]
        if len(texts) == 1 and key.id not in names_behind(module, made):
            return True  # a parameter: the caller makes the key
    root = device.partition(".")[0]
    texts = [text.replace(f"{device}.type", "") for text in texts]  # one word for all GPUs
    return any(root in text or "device" in text for text in texts)


def is_read_again(module: Module, function: FunctionNode, target: ast.Subscript) -> bool:
    """The function looks the key up before it stores: `if key not in CACHE`, `CACHE.get(key)`."""
    held = module.text(target.value)
    compares = module.nodes(ast.Compare, function)
    if any(".device" in module.text(each) for each in compares):
        return False  # it looks whether what it finds lies where it should
    for compare in compares:
        if (isinstance(compare.ops[0], (ast.In, ast.NotIn))) and (
            module.text(compare.comparators[0]) == held
        ):
            return True
    return any(
        isinstance(call.func, ast.Attribute) and module.text(call.func.value) == held
        for call in module.calls("get", inside=function)
    )
