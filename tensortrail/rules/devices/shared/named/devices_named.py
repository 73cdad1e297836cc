"""Whether code names a device: by what its values are and are used as, not by their names."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.dtypes import is_dtype
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.moves import ACCELERATORS, TO_DEVICE
from tensortrail.rules.shared.objects import keyword
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import TENSORS, Kind

_NO_DEVICES = TENSORS | {Kind.MODULE}


def may_be_device(module: Module, node: ast.expr) -> bool:
    """What `.to` is given, unless it is a dtype or another tensor."""
    kinds = module.value_of(node).kinds
    return not kinds & _NO_DEVICES and not _is_dtype(module, node)


def names_device(module: Module, inside: ast.AST) -> bool:
    """A move to a device, a keyword `device`, or a value that is a device."""
    if any(True for _ in module.calls(*TO_DEVICE, inside=inside)):
        return True
    if any(keyword(each, "device") is not None for each in module.nodes(ast.Call, inside)):
        return True
    values = (inside, *(node for kind in _VALUES for node in module.nodes(kind, inside)))
    return any(_is_device_by_use(module, each) for each in values if isinstance(each, _VALUES))


_VALUES = (ast.Name, ast.Attribute, ast.Constant, ast.Call)


def _is_device_by_use(module: Module, node: ast.expr) -> bool:
    """One that is known to be a device, or that the file hands on as one elsewhere."""
    said = module.value_of(node)
    if said.kinds & {Kind.DEVICE, Kind.DEVICE_STRING}:
        return True
    if isinstance(said.constant, str):
        return said.constant.partition(":")[0] in ACCELERATORS
    known = isinstance(node, (ast.Name, ast.Attribute)) and not _is_dtype(module, node)
    return known and module.text(node) in module.once(_handed_on, module.top)


def _handed_on(module: Module, top: FunctionNode) -> frozenset[str]:
    """What the file gives to calls as their device, as it is written."""
    given = (said_device(module, each) for each in module.nodes(ast.Call))
    return frozenset(
        module.text(each)
        for each in given
        if isinstance(each, (ast.Name, ast.Attribute)) and may_be_device(module, each)
    )


def _is_dtype(module: Module, node: ast.expr) -> bool:
    """A dtype, a choice between two, or what the file hands on as one."""
    node = behind(module, node)
    if isinstance(node, ast.IfExp):
        return _is_dtype(module, node.body) or _is_dtype(module, node.orelse)
    return is_dtype(module, node) or module.text(node) in module.once(_types, module.top)


def _types(module: Module, top: FunctionNode) -> frozenset[str]:
    """What is annotated as a dtype, and what calls are given as theirs."""
    annotated = (
        each.arg
        for each in module.nodes(ast.arg)
        if each.annotation is not None and module.qualified(each.annotation) == "torch.dtype"
    )
    given = (keyword(each, "dtype") for each in module.nodes(ast.Call))
    return frozenset((*annotated, *(module.text(each) for each in given if each is not None)))
