"""The tensors of a module that is moved are seen where `Module._apply` hands each to the function
that moves it. The mode is off meanwhile: it would see some seven calls a parameter, and act on two.

Only where torch itself moves plain tensors; all else is left to the mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._C import TensorBase
from torch.nn import Module

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.inner_tensors import PLAIN
from tensortrail.tracer.identity.module_tensors import Part, Slot
from tensortrail.tracer.trail.layout import CODE
from tensortrail.tracer.watching.plain_moves import moved, note_pair

MOVERS = {
    "Module.to.<locals>.convert": (TensorBase.to, ("device", "dtype", "non_blocking")),
    "Module.cuda.<locals>.<lambda>": (TensorBase.cuda, ("device",)),
    "Module.cpu.<locals>.<lambda>": (TensorBase.cpu, ()),
}
"""The functions that torch gives to `_apply`: what each calls, with which of its variables. A
rehearsal puts methods of its own on `Tensor`: this file may be imported while it does."""
SWAP, SET_DATA = CODE[Did.SWAP], TensorBase.data.__set__
Move = Callable[[Any], Any]


def _moves_plain_tensors(
    recorder: Recorder, modules: Sequence[Part], slots: Sequence[Slot], move: Any
) -> bool:
    """Whether `_apply(move)` of the first module does what torch's own does, to plain tensors."""
    return (
        recorder.short_ways
        and recorder.of_thread.lower is None
        and torch._C._len_torch_function_stack() == 1
        and getattr(move, "__module__", "") == Module.__module__
        and move.__qualname__ in MOVERS
        and not torch.__future__.get_swap_module_params_on_conversion()
        and not torch.__future__.get_overwrite_module_params_on_conversion()
        and all(type(tensors[key]) in PLAIN for _, tensors, key in slots)
        and all(_applies_as_torch(each) for _, each in modules)
    )


def _applies_as_torch(module: Module) -> bool:
    return type(module)._apply is Module._apply and "_apply" not in vars(module)


def _arguments(move: Any) -> tuple[Any, ...] | None:
    """What the mover gives to the method besides the tensor."""
    cells = zip(move.__code__.co_freevars, move.__closure__ or (), strict=True)
    known = {name: cell.cell_contents for name, cell in cells}
    names = MOVERS[move.__qualname__][1]
    return tuple(known[name] for name in names) if known.keys() >= {*names} else None


def seen_by_hand(
    recorder: Recorder, modules: Sequence[Part], slots: Sequence[Slot], move: Any
) -> Move | None:
    """What `_apply` is to be given in place of the move, with the mode off; None where the mode
    has to see what happens."""
    if not _moves_plain_tensors(recorder, modules, slots, move):
        return None
    func = MOVERS[move.__qualname__][0]
    given = _arguments(move)
    if given is None:
        return None
    buffers = {id(each) for _, part in modules for each in part._buffers.values()}
    site = recorder.site_here()

    def note(recorder: Recorder, tensor: Any, made: Any) -> None:
        pair = moved(recorder, func, (tensor, *given), {}, made, site)
        if pair is None or pair[0] is pair[1] or id(tensor) in buffers:
            return
        if torch._has_compatible_shallow_copy_type(tensor, made):  # the parameter takes the bytes
            old, new, _ = pair
            if old.name:
                recorder.storages.name(new, old.name)
            note_pair(recorder, SWAP, SET_DATA, (old, new, None), site)

    def seen(tensor: Any) -> Any:
        try:
            made = move(tensor)
        except Exception as error:
            recorder.failures.saw(func, (tensor, *given), {}, _from_the_tensor(error))
            raise
        recorder.guarded(note, tensor, made)
        return made

    return seen


def _from_the_tensor(error: Exception) -> Exception:
    """Of an error that torch words anew, the one from the tensor itself."""
    first = error.__context__ if error.__suppress_context__ else error
    return first if isinstance(first, Exception) else error
