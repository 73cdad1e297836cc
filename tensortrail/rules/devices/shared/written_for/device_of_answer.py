"""Devices that a function is given for its answer, or for its object."""

from __future__ import annotations

import ast

from tensortrail.rules.devices.shared.named.devices_said import device_parameter, devices_said
from tensortrail.rules.view import FunctionNode, Module


def is_of_answer(module: Module, function: FunctionNode, name: str) -> bool:
    """The device is the one of the answer, `return out.to(output_device)`; the work is done where
    the object is."""
    answers = [each.value for each in module.nodes(ast.Return, function) if each.value is not None]
    parts = [
        each for one in answers for each in (one.elts if isinstance(one, ast.Tuple) else [one])
    ]
    returned = {each.id for each in parts if isinstance(each, ast.Name)}
    for call, said in devices_said(module, function):
        statement = module.statement_of(call)
        bound = (
            {module.text(each) for each in statement.targets}
            if isinstance(statement, ast.Assign)
            else set()
        )
        if module.text(said) == name and (isinstance(statement, ast.Return) or bound & returned):
            return True
    return False


def answers_elsewhere(module: Module, function: FunctionNode) -> bool:
    """It is given a device, and what it gives back is moved there at the end: the arguments may
    come from the CPU."""
    device = device_parameter(module, function)
    return device is not None and is_of_answer(module, function, device.arg)


def sets_own_device(module: Module, function: FunctionNode) -> bool:
    """`self.device = resolve(device)`: what it is given is settled there."""
    return any(
        module.text(target) == "self.device"
        for assign in module.nodes(ast.Assign, function)
        for target in assign.targets
    )
