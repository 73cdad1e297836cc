"""What decides that a device is right where it is written."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.none_here import asked_for_none
from tensortrail.rules.shared.objects import receiver
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Guard


def moves(module: Module, call: ast.Call, shown: str) -> bool:
    """The call moves the very object whose device is at hand."""
    func = call.func
    owner = module.text(func.value) if isinstance(func, ast.Attribute) else ""
    return bool(owner) and owner == shown.rpartition(".")[0]


def switches(module: Module, function: FunctionNode, call: ast.Call) -> bool:
    """`def cuda(self)`, and `self.net.cuda()` where the same function has `self.net.cpu()`: who
    calls it asks for a GPU."""
    subject = receiver(call)
    back = (receiver(each) for each in module.calls("cpu", inside=function))
    return function.name == "cuda" or (
        subject is not None and module.text(subject) in [module.text(each) for each in back if each]
    )


def decided(module: Module, node: ast.AST, shown: str, by_availability: bool = False) -> bool:
    """A condition about devices leads here, or chooses between this and another. That the machine
    has a GPU does not say that the work is meant for it, but that asking for one is safe."""
    words = (shown.rpartition(".")[2], "cuda", "gpu", "device")
    for guard in module.guards_of(node):
        if _is_missing(module, guard, shown.rpartition(".")[0]):
            return True
        if not by_availability and _asks_the_machine(module, guard.test):
            continue
        if _is_of_the_move(module, guard.test, node):
            continue
        if guard.mentions(*words) or _is_of_index(module, guard.test):
            return True
    for up in module.ancestors(node):
        if isinstance(up, ast.IfExp):
            return by_availability or not _asks_the_machine(module, up.test)
        if isinstance(up, ast.Try):
            return True
        if isinstance(up, ast.stmt):
            break
    return False


def _is_missing(module: Module, guard: Guard, owner: str) -> bool:
    """`else` of `if accelerator is not None`: there is no `accelerator.device`."""
    asked = asked_for_none(guard)
    test, absent = asked if asked is not None else (guard.test, not guard.holds)
    return absent and module.text(test) == owner


def _is_of_the_move(module: Module, test: ast.expr, node: ast.AST) -> bool:
    """`if x.device != d: x = x.to(d)`: the test only saves the move."""
    said = said_device(module, node) if isinstance(node, ast.Call) else None
    if said is None or not isinstance(test, ast.Compare) or not isinstance(node, ast.Call):
        return False
    owner = module.text(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    sides = {module.text(test.left), module.text(test.comparators[0])}
    return sides == {f"{owner}.device", module.text(said)}


def _asks_the_machine(module: Module, test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and module.qualified(test.func) == "torch.cuda.is_available"


def _is_of_index(module: Module, test: ast.expr) -> bool:
    """`if number is None`, where `number` is the index of a device: only a GPU has one."""
    return any(
        isinstance(made, ast.Attribute) and made.attr == "index"
        for name in ast.walk(test)
        if isinstance(name, (ast.Name, ast.Attribute))
        for made in (name, *module.value_of(name).origins)
    )


def meets_given(module: Module, call: ast.Call, shown: str) -> bool:
    """The result goes on to the device that was given, at once or later."""
    up = module.parent(call)
    if isinstance(up, ast.Attribute):
        return up.attr in ("to", "cpu")
    if isinstance(up, ast.Assign) and isinstance(up.targets[0], ast.Name):
        name = up.targets[0].id
        return any(
            isinstance(later.func, ast.Attribute)
            and module.text(later.func.value) == name
            and (said := said_device(module, later)) is not None
            and module.text(said) == shown
            for later in module.later(up, ast.Call)
        )
    return False
