"""A dict that is made empty and given to the load of a distributed checkpoint as it is."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.objects import is_before
from tensortrail.rules.view import Module

_LOADS = frozenset({"load", "load_state_dict"})
_OF = "torch.distributed.checkpoint"


def empty_given(module: Module, call: ast.Call, given: ast.Name) -> ast.Assign | None:
    """The assignment that made it empty, if nothing has been put into it by then."""
    name = module.qualified(call.func)
    if not name.startswith(f"{_OF}.") or name.rpartition(".")[2] not in _LOADS:
        return None
    function = module.function_of(call)
    uses = [each for each in module.uses(given.id, function) if is_before(each, call)]
    stored = [each for each in uses if isinstance(each.ctx, ast.Store)]
    if len(stored) != 1 or len(uses) != 1:
        return None
    made = module.parent(stored[0])
    if isinstance(made, ast.Assign) and _is_empty(module, made.value):
        return made
    return None


def _is_empty(module: Module, value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        plain = module.qualified(value.func) in ("dict", "collections.OrderedDict")
        return plain and not value.args and not value.keywords
    return isinstance(value, ast.Dict) and not value.keys
