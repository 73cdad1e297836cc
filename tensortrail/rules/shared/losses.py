"""What a loss is computed by."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.objects import is_before, names_in, receiver
from tensortrail.rules.view import Module


def calls_behind(module: Module, loss: ast.expr, backward: ast.Call) -> list[ast.Call]:
    """The calls that the loss is computed by, through the variables of the function."""
    function = module.function_of(backward)
    found = [each for each in ast.walk(loss) if isinstance(each, ast.Call)]
    names, seen = names_in(loss), set[str]()
    assigns = [
        each
        for each in module.nodes(ast.Assign, function)
        if module.function_of(each) is function and is_before(each, backward)
    ]
    while names - seen:
        seen |= names
        for assign in assigns:
            bound = {e.id for t in assign.targets for e in ast.walk(t) if isinstance(e, ast.Name)}
            if bound & names and isinstance(assign.targets[0], (ast.Name, ast.Tuple)):
                found += [each for each in ast.walk(assign.value) if isinstance(each, ast.Call)]
                names |= names_in(assign.value)
    return found


def is_trained_on(module: Module, call: ast.Call) -> bool:
    """`backward()` is called in the same function on what is computed from the result."""
    function = module.function_of(call)
    for backward in module.calls("backward", inside=function):
        loss = receiver(backward)
        same = module.function_of(backward) is function
        if same and loss is not None and call in calls_behind(module, loss, backward):
            return True
    return False
