"""The mend of a load without `map_location`: the device that is at hand, or the CPU."""

from __future__ import annotations

import ast

from tensortrail.findings import Fix, Safety
from tensortrail.rules.devices.shared.loads.taken_from_file import used_as_state
from tensortrail.rules.view import Module


def map_location_added(module: Module, call: ast.Call, location: str) -> Fix | None:
    last = call.keywords[-1].value if call.keywords else call.args[-1]
    device = _device_at_hand(module, call)
    edit = module.insert_after(last, f", {location}={device}")
    return module.fix(f"add `{location}={device}`", Safety.UNSAFE, edit)


def _device_at_hand(module: Module, call: ast.Call) -> str:
    function = module.function_of(call)
    if function is not None and not used_as_state(module, call):
        for each in (*function.args.args, *function.args.kwonlyargs):
            if each.arg in ("device", "map_location"):
                return each.arg
    return '"cpu"'
