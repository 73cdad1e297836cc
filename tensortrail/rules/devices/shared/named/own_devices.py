"""The device that a class keeps for its objects."""

from __future__ import annotations

import ast
import re

from tensortrail.patterns import pattern
from tensortrail.rules.devices.shared.named.devices_said import OF_ANOTHER_USE, devices_said
from tensortrail.rules.devices.shared.named.named_gpus import own_attribute
from tensortrail.rules.view import FunctionNode, Module

_NAMES_A_GPU = pattern(r"cuda|gpu", re.I)


def own_launcher(module: Module, function: FunctionNode) -> ast.Attribute | None:
    """`self.accelerator.device`, where a method of the class puts something there."""
    cls = module.class_of(function)
    return module.once(_launcher_of_class, cls) if cls is not None else None


def _launcher_of_class(module: Module, cls: ast.ClassDef) -> ast.Attribute | None:
    for _, said in devices_said(module, cls):
        if isinstance(said, ast.Attribute) and module.text(said) in _OF_LAUNCHERS:
            return said
    return None


_OF_LAUNCHERS = frozenset(
    f"self.{each}.device" for each in ("accelerator", "fabric", "accelerator_given", "_fabric")
)


def own_device(module: Module, function: FunctionNode) -> ast.Attribute | None:
    """`self.device`, where the class puts things there and does not choose a GPU for itself."""
    cls = module.parent(function)
    if not isinstance(cls, ast.ClassDef) or function.name in ("__init__", "device"):
        return None
    of_cuda = any(
        module.qualified(call.func).startswith("torch.cuda.")
        and not module.qualified(call.func).endswith("is_available")
        for call in module.nodes(ast.Call, function)
    )
    if of_cuda:
        return None
    return module.once(_device_of_class, cls) or module.once(_device_of_its_model, cls)


def _device_of_its_model(module: Module, cls: ast.ClassDef) -> ast.Attribute | None:
    """`model.device` of an argument that the class keeps as `self.model`, where it puts things."""
    facts, kept = module.class_facts(cls), module.once(kept_names, cls)
    if facts is None or facts.is_module:
        return None
    for _, said in devices_said(module, cls):
        if isinstance(said, ast.Attribute) and said.attr == "device":
            owner, function = module.text(said.value), module.function_of(said)
            in_init = function is not None and function.name == "__init__"
            if owner in kept.values() or (in_init and owner in kept):
                return said
    return None


def kept_names(module: Module, cls: ast.ClassDef) -> dict[str, str]:
    """`m` -> `self.model` of `self.model = m` or `super().__init__(model=m)`, where `__init__` is
    given `m`."""
    init = next(
        (e for e in cls.body if isinstance(e, ast.FunctionDef) and e.name == "__init__"), None
    )
    given = {each.arg for each in module.nodes(ast.arg, init)} if init is not None else set()
    by_base = {
        each.value.id: f"self.{each.arg}"
        for call in module.calls("__init__", inside=init)
        for each in call.keywords
        if isinstance(each.value, ast.Name) and each.arg and each.value.id in given
    }
    return by_base | {
        assign.value.id: module.text(target)
        for assign in module.nodes(ast.Assign, init)
        for target in assign.targets
        if isinstance(assign.value, ast.Name)
        and isinstance(target, ast.Attribute)
        and assign.value.id in given
    }


def _device_of_class(module: Module, cls: ast.ClassDef) -> ast.Attribute | None:
    """`self.device`, or the only attribute that the class puts things on."""
    said = [each for _, each in devices_said(module, cls)]
    own = {name: each for each in said if (name := own_attribute(each))}
    name = "device" if "device" in own else next(iter(own), "") if len(own) == 1 else ""
    if not name or name.startswith(OF_ANOTHER_USE):
        return None
    for statement in module.nodes(ast.Assign, cls):
        is_own = any(own_attribute(each) == name for each in statement.targets)
        if is_own and _NAMES_A_GPU.search(module.text(statement.value)):
            return None
    found = own[name]
    sure = name == "device" or _is_given(module, cls, name)
    return found if sure and isinstance(found, ast.Attribute) else None


def _is_given(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """`self.where = where` of an argument: whoever makes the object chooses it."""
    kept = module.once(kept_names, cls)
    return f"self.{name}" in kept.values()
