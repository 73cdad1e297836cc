"""The state of an optimizer that is of whole tensors, where its weights are sharded."""

from __future__ import annotations

import ast
from traceback import walk_tb
from typing import Any

from torch.optim import Optimizer

from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.told import calls_above, owners, told

SHARDED, MIXED = "DTensor", "mixed torch.Tensor and DTensor"


def plain_state(error: BaseException, _: Storages) -> dict[str, Any] | None:
    if not isinstance(error, RuntimeError) or MIXED not in str(error):
        return None
    optimizer = next((each for each in owners(error) if isinstance(each, Optimizer)), None)
    part = _plain_part(optimizer) if optimizer is not None else ""
    if not part:
        return None
    loaded = _loaded_at(error, optimizer)
    return told(
        f"the weights of `{type(optimizer).__name__}` are sharded, and its state (`{part}`) is of "
        f"whole tensors{loaded}",
        "load it with `torch.distributed.checkpoint.state_dict.set_optimizer_state_dict(model, "
        "optimizer, state, options=StateDictOptions(full_state_dict=True))`",
    )


def _plain_part(optimizer: Optimizer) -> str:
    for weight, state in optimizer.state.items():
        for name, value in state.items() if isinstance(state, dict) else ():
            whole = type(value).__name__ != SHARDED and getattr(value, "ndim", 0) > 0
            if type(weight.data).__name__ == SHARDED and whole:
                return str(name)
    return ""


def _loaded_at(error: BaseException, optimizer: Any) -> str:
    """Where the program loaded a state into it."""
    for frame, line in walk_tb(error.__traceback__):
        for call, where in calls_above(frame, line, "load_state_dict"):
            on = call.func.value if isinstance(call.func, ast.Attribute) else None
            own = {**frame.f_globals, **frame.f_locals}
            if isinstance(on, ast.Name) and own.get(on.id) is optimizer:
                return f", loaded by `{ast.unparse(call.func)}`{where}"
    return ""
