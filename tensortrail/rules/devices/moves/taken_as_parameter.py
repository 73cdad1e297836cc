"""Places that want a Parameter, and are given what a move made of one."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.annotations import names_said
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import Module

PARAMETERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})


def refusal(module: Module, moved: ast.Call) -> str:
    """What becomes of the tensor where it stands: `register_parameter` raises, and who calls a
    function that is said to give a Parameter gets none. Empty if nothing says what is wanted."""
    above = module.parent(moved)
    if isinstance(above, ast.Call) and called(above) == "register_parameter":
        return "`register_parameter` refuses it"
    function = module.function_of(moved)
    if not isinstance(above, ast.Return) or function is None or function.returns is None:
        return ""
    said = set(names_said(module, function.returns))
    return f"`{function.name}` is said to return a Parameter" if said & PARAMETERS else ""
