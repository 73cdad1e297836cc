"""Functions that only ask about the device they are given, or put nothing there by default."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.objects import called, names_in
from tensortrail.rules.view import Module


def only_asks_about_device(module: Module, function: ast.AST) -> bool:
    """`torch.cuda.get_device_capability(device)`: all that it does with its `device`."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    uses = [each for each in module.uses("device", function) if isinstance(each.ctx, ast.Load)]
    return bool(uses) and all(_is_question(module, each) for each in uses)


def reads_device_on_request(module: Module, function: ast.AST) -> bool:
    """`if isinstance(model, str): model = load(model, device)`: each use of the `device` waits for
    another argument."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    others = {each.arg for each in parameters(function)} - {"device", "self"}
    uses = [each for each in module.uses("device", function) if isinstance(each.ctx, ast.Load)]
    return bool(uses) and all(
        any(names_in(guard.test) & others for guard in module.guards_of(each)) for each in uses
    )


def _is_question(module: Module, use: ast.Name) -> bool:
    above = module.parent(use)
    if isinstance(above, (ast.Compare, ast.FormattedValue)):
        return True
    if isinstance(above, ast.Attribute):
        return above.attr in ("type", "index")
    if not isinstance(above, ast.Call) or use not in above.args:
        return False
    name = module.qualified(above.func)
    if name == "torch.device":  # bound to the same name, as a device
        statement = module.statement_of(use)
        return isinstance(statement, ast.Assign) and module.text(statement.targets[0]) == use.id
    return called(above) == "isinstance" or name.startswith("torch.cuda.get_")
