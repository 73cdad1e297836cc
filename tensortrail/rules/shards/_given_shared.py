"""State dicts that are handed to safetensors although two of their names may be one tensor."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shards._tied_in_class import is_tie
from tensortrail.rules.shared.functions import called_here, matched, parameter_names
from tensortrail.rules.shared.objects import called, receiver, resolved_name
from tensortrail.rules.view import Module

WRITES = "safetensors.torch.save_file"
_STATE_DICT = "state_dict"
_PARTS_THEM = re.compile(r"clone|_ptr|storage|shared|alias|tied|dedup|duplicate|_tie|deepcopy")
_DEPTH = 4


class Given(NamedTuple):
    call: ast.Call
    weights: ast.expr
    tie: ast.Assign | None
    """The statement that makes two of the names one tensor, where the class is known."""
    other: ast.Call | None
    """The call that gives the same weights to a writer that takes them."""


def ends_of(tie: ast.Assign) -> tuple[ast.expr, ast.expr]:
    return tie.targets[0], tie.value


def given_shared(module: Module) -> Iterator[Given]:
    for call in module.calls(WRITES):
        weights = module.argument(call, 0, "tensors")
        made = _state_dict(module, weights, _DEPTH) if weights is not None else None
        if weights is None or made is None or _are_parted(module, call):
            continue
        tie = _tie_of(module, made)
        other = None if tie is not None else _written_otherwise(module, call, weights)
        if tie is not None or other is not None:
            yield Given(call, weights, tie, other)


def _state_dict(module: Module, weights: ast.expr, depth: int) -> ast.Call | None:
    """`model.state_dict()`, or what another function with such a name gives."""
    if isinstance(weights, ast.Call):
        return weights if _STATE_DICT in resolved_name(module, weights) else None
    origins = module.value_of(weights).origins if isinstance(weights, ast.Name) else ()
    if not depth or len(origins) != 1:
        return None
    return _state_dict(module, origins[0], depth - 1)


def _are_parted(module: Module, call: ast.Call) -> bool:
    """The function looks for names that share memory, or copies the tensors."""
    *_, file = module.ancestors(call)
    around = module.function_of(call) or file
    return _PARTS_THEM.search(ast.unparse(around)) is not None


def _tie_of(module: Module, made: ast.Call) -> ast.Assign | None:
    model = receiver(made)
    if model is None or called(made) != _STATE_DICT or made.args or made.keywords:
        return None
    cls = module.class_of(made) if module.text(model) == "self" else None
    named = module.value_of(model).cls.rpartition(".")[2] or _passed(module, model)
    for each in module.nodes(ast.ClassDef):
        if each is cls or each.name == named:
            return next((a for a in module.nodes(ast.Assign, each) if is_tie(module, a)), None)
    return None


def _passed(module: Module, model: ast.expr) -> str:
    """The class of the model that every caller in the file passes; "" if they differ."""
    function = module.function_of(model)
    if function is None or not isinstance(model, ast.Name):
        return ""
    if model.id not in parameter_names(function):
        return ""
    calls = [e for e in module.calls(function.name) if called_here(module, e) is function]
    given = [dict(matched(function, each)).get(model.id) for each in calls]
    named = {module.value_of(e).cls.rpartition(".")[2] if e is not None else "" for e in given}
    return named.pop() if len(named) == 1 else ""


def _written_otherwise(module: Module, call: ast.Call, weights: ast.expr) -> ast.Call | None:
    """`torch.save` of the same weights, on another path of the function."""
    function = module.function_of(call)
    for each in module.calls("torch.save", inside=function):
        same = module.argument(each, 0, "obj")
        is_beside = module.function_of(each) is function
        if is_beside and same is not None and module.text(same) == module.text(weights):
            return each
    return None
