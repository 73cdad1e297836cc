"""Flags beside a question about a device, which have asked it before."""

from __future__ import annotations

import ast

from tensortrail.rules.view import Module


def is_switched(module: Module, question: ast.expr) -> bool:
    """`self.on_gpu and self.device != "cpu"`, where the class sets `on_gpu` to False under a test
    of the type of a device: the flag alone decides."""
    both, cls = module.parent(question), module.class_of(question)
    if not isinstance(both, ast.BoolOp) or not isinstance(both.op, ast.And) or cls is None:
        return False
    flags = {each.attr for each in both.values if isinstance(each, ast.Attribute)}
    return any(
        isinstance(each.value, ast.Constant)
        and each.value.value is False
        and module.text(each.targets[0]).rpartition(".")[2] in flags
        and any(guard.mentions("device.type", "device(") for guard in module.guards_of(each))
        for each in module.nodes(ast.Assign, cls)
    )
