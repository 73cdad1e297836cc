"""What a method of a module gives the layers of its own object."""

from __future__ import annotations

import ast

from tensortrail.rules.devices._device_aware import is_in_module
from tensortrail.rules.places import Where
from tensortrail.rules.shared.objects import given, is_self
from tensortrail.rules.view import FunctionNode, Module


def goes_into_own_layers(module: Module, function: FunctionNode, made: ast.Call) -> bool:
    """`self.decoder(tokens[:, :n])` of tokens that were made by this call and stayed there."""
    cls = module.class_of(function)
    if cls is None or not is_in_module(module, made):
        return False
    facts = module.class_facts(cls)
    methods = facts.methods if facts is not None else frozenset()
    seen = module.places(function).seen
    for call in module.nodes(ast.Call, function):
        layer = call.func
        if isinstance(layer, ast.Attribute) and is_self(layer.value) and layer.attr not in methods:
            held = (seen[each].only for each in given(call) if each in seen)
            if any(each and each.by is made and each.where is Where.DEFAULT for each in held):
                return True
    return False
