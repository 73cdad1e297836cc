"""What a method of a module gives the layers of its own object."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.written_for.device_aware import is_in_module
from tensortrail.rules.places import Held, What, Where
from tensortrail.rules.shared.objects import given, is_self
from tensortrail.rules.view import FunctionNode, Module


def goes_into_own_layers(module: Module, function: FunctionNode, made: ast.Call) -> bool:
    """`self.decoder(tokens[:, :n])` of tokens that were made by this call and stayed there."""
    return any(
        each.only is not None and each.only.by is made and each.only.where is Where.DEFAULT
        for _, held in own_layers(module, function)
        for each in held
    )


def fed_from_default(module: Module, function: FunctionNode) -> Iterator[tuple[ast.Call, ast.AST]]:
    """Layers of which all tensors that they are given are on the default device, and what made
    the first of these: a call in this function, or else the layer's."""
    for call, held in own_layers(module, function):
        tensors = [each for each in held if each.places]
        made = tensors[0].only.by if tensors and tensors[0].only is not None else None
        by_default = all(
            each.what is What.TENSOR
            and each.only is not None
            and each.rank != 0
            and each.only.where is Where.DEFAULT
            for each in tensors
        )
        if by_default and made is not None:
            yield call, made if module.function_of(made) is function else call


def own_layers(module: Module, function: FunctionNode) -> Iterator[tuple[ast.Call, list[Held]]]:
    """Calls of what the object keeps, with what they are given."""
    cls = module.class_of(function)
    facts = module.class_facts(cls) if cls is not None else None
    if facts is None or not is_in_module(module, function):
        return
    seen = module.places(function).seen
    for call in module.nodes(ast.Call, function):
        layer = call.func
        if not isinstance(layer, ast.Attribute) or not is_self(layer.value):
            continue
        if layer.attr in facts.fields and layer.attr not in facts.methods:
            yield call, [seen[each] for each in given(call) if each in seen]


def has_no_weights(module: Module, call: ast.Call) -> bool:
    """The class of the layer is of the project, and keeps nothing but what it is given."""
    cls = module.value_of(call.func).cls
    return bool(cls) and module.about(cls, _keeps_nothing_made) is True


def _keeps_nothing_made(module: Module, cls: ast.AST) -> bool:
    stored = [each for each in module.nodes(ast.Assign, cls) if _is_kept(each.targets[0])]
    return not any(module.nodes(ast.Call, each) for each in stored)


def _is_kept(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and is_self(target.value)
