"""Methods of modules that read an attribute which is made without a device, or of data."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.modules.plain_attributes import kept_on_cpu, read_of_self
from tensortrail.rules.devices.shared.written_for.device_aware import sets_up
from tensortrail.rules.devices.shared.written_for.makers import (
    made_without_device,
    makers_and_callers,
)
from tensortrail.rules.view import FunctionNode, Module

READ = ("from_numpy", "frombuffer")
"""What makes a tensor of data, always on the CPU."""


def users_of_made(module: Module) -> Iterator[FunctionNode]:
    """Methods of modules that read an attribute which was made without a device, or of data."""
    made = (*made_without_device(module), *module.calls(*READ))
    for function in makers_and_callers(module, made):
        cls = module.parent(function)
        if not isinstance(cls, ast.ClassDef) or not sets_up(function):
            continue
        facts = module.class_facts(cls)
        if facts is None or not facts.is_module:
            continue
        names = set(kept_on_cpu(module, function))
        for each in cls.body if names else ():
            if not isinstance(each, ast.FunctionDef) or sets_up(each):
                continue
            if names & read_of_self(module, each):
                yield each
