"""Whether a use of a state dict reads the tensors in it, or only their names and shapes."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.functions import matched, parameters
from tensortrail.rules.view import Module

_OF_A_TENSOR = frozenset("shape size numel ndim dim".split())


def reads_values(module: Module, use: ast.Name) -> bool:
    """Not of `key in state`, `state.keys()`, `for key in state`, `state[key].shape`, nor of a call
    of a function of the file that does no more with it."""
    above = module.parent(use)
    if isinstance(above, ast.Compare):
        return not all(isinstance(each, (ast.In, ast.NotIn)) for each in above.ops)
    if isinstance(above, (ast.For, ast.comprehension)):
        return above.iter is not use
    if isinstance(above, ast.Attribute):
        return above.attr != "keys"
    if isinstance(above, ast.Subscript):
        taken = module.parent(above)
        return not (isinstance(taken, ast.Attribute) and taken.attr in _OF_A_TENSOR)
    if isinstance(above, ast.keyword):
        above = module.parent(above)
    if isinstance(above, ast.Call):
        return _passes_values(module, above, use)
    return True


def _passes_values(module: Module, call: ast.Call, use: ast.Name) -> bool:
    if not isinstance(call.func, ast.Name) or call.func.id == "len":
        return not isinstance(call.func, ast.Name)
    named = [each for each in module.nodes(ast.FunctionDef) if each.name == call.func.id]
    if len(named) != 1 or named[0] in module.ancestors(call):
        return True
    names = {name for name, given in matched(named[0], call) if given is use}
    uses = [each for each in module.nodes(ast.Name, named[0]) if each.id in names]
    return not names or any(reads_values(module, each) for each in uses)


def is_parameter_there(module: Module, use: ast.Name) -> bool:
    """A function takes something of that name, which is another thing."""
    function = module.function_of(use)
    given = parameters(function) if function is not None else []
    return any(each.arg == use.id for each in given)
