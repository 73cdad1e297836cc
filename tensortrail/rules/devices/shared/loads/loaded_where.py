"""What `torch.load` is told by those who call the function around it, and what takes its result."""

from __future__ import annotations

import ast

from tensortrail.rules.defaults import none_by_default
from tensortrail.rules.shared.never_given import is_never_given
from tensortrail.rules.shared.objects import receiver, resolved_name
from tensortrail.rules.shared.origins import text_behind
from tensortrail.rules.view import Module

_KEEP_NUMBERS = ("sched", "sampler", "dataloader", "scaler")
_ONLY_OF_THEM = ("get_last_lr", "get_lr", "unscale_", "get_scale", "set_epoch")
"""Methods of schedulers, scalers and samplers, which models and optimizers do not have."""


def left_out_by_all(module: Module, call: ast.Call) -> str | None:
    """The parameter of a helper that is passed on as `map_location`, if nobody ever gives it."""
    function, said = module.function_of(call), module.argument(call, 1, "map_location")
    if function is None or not isinstance(said, ast.Name):
        return None
    if module.qualified(call.func) != "torch.load":
        return None
    if none_by_default(function.args, said.id) is None:
        return None
    if any(isinstance(each.ctx, ast.Store) for each in module.uses(said.id, function)):
        return None
    asked = any(guard.mentions(said.id) for guard in module.guards_of(call))
    return said.id if not asked and is_never_given(module, function, said.id) else None


def holds_numbers(module: Module, call: ast.Call) -> bool:
    """The state of a learning-rate scheduler or of a sampler: numbers, and no tensors."""
    above = module.parent(call)
    uses: list[ast.expr] = [call]
    if isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
        name = above.targets[0].id
        uses += [each for each in module.later(above, ast.Name) if each.id == name]
    takers = [
        up.func.value
        for use in uses
        if isinstance(up := module.parent(use), ast.Call)
        and use in up.args
        and isinstance(up.func, ast.Attribute)
        and up.func.attr == "load_state_dict"
    ]
    return bool(takers) and all(_keeps_numbers(module, each) for each in takers)


def _keeps_numbers(module: Module, taker: ast.expr) -> bool:
    """By its class, by the name of the library's function that made it, or by what else it is
    asked for."""
    value = module.value_of(taker)
    made = [resolved_name(module, each) for each in value.origins if isinstance(each, ast.Call)]
    said = " ".join((text_behind(module, taker), value.cls, *made)).lower()
    return any(word in said for word in _KEEP_NUMBERS) or _is_asked_as_one(module, taker)


def _is_asked_as_one(module: Module, taker: ast.expr) -> bool:
    text = module.text(taker)
    owners = (receiver(each) for each in module.calls(*_ONLY_OF_THEM))
    return any(owner is not None and module.text(owner) == text for owner in owners)
