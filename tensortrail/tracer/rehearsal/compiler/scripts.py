"""Script modules hold their tensors in C++, which knows what a simulated tensor was, and no bytes.

What moves with `.to` is put there anew; a file is written from the values, and says in a record of
its own which of them lie where."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.jit import RecursiveScriptModule, ScriptModule
from torch.nn import Parameter

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.compiler import script_constants, script_devices
from tensortrail.tracer.rehearsal.lacks import NotRehearsed
from tensortrail.tracer.rehearsal.operations.simulation import Simulation
from tensortrail.tracer.rehearsal.replacements import Replacements
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor

RECORD = "rehearsed_devices.json"
WITHOUT_WORDS = "RuntimeError:"
OURS = f"{Path(__file__).parents[3]}{os.sep}"
"""Frames that a GPU would not have in what was recorded of a trace."""
FOLDED = (
    "torch.jit.{} folds weights into the code in C++, which has none of a simulated device: call "
    "the module as it is in a rehearsal"
)


def install(simulation: Simulation, replaced: Replacements) -> None:
    replaced.put(ScriptModule, "_apply", _moving(ScriptModule._apply))
    for kind in (torch._C.ScriptFunction, torch._C.ScriptMethod):
        replaced.put(kind, "__call__", _calling(kind.__call__))
    for kind in (ScriptModule, RecursiveScriptModule):
        for name in ("save", "save_to_buffer"):
            replaced.put(kind, name, _saving(getattr(kind, name)))
    for name in ("import_ir_module", "import_ir_module_from_buffer"):
        replaced.put(torch._C, name, _loading(simulation, getattr(torch._C, name)))
    for name in ("freeze", "optimize_for_inference"):
        replaced.put(torch.jit, name, _folding(name, getattr(torch.jit, name)))


def _calling(plain: Callable[..., Any]) -> Callable[..., Any]:
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        state.refusal = ""
        try:
            with script_constants.running(self):
                return script_devices.run(plain, self, args, kwargs)
        except RuntimeError as error:
            said = [line for line in str(error).splitlines() if OURS not in line]
            if state.refusal and said[-1:] and said[-1].strip() == WITHOUT_WORDS:
                error.args = ("\n".join([*said[:-1], f"{WITHOUT_WORDS} {state.refusal}", ""]),)
            raise

    return __call__


PARAMETERS, ALL = (torch._C.ParameterDict,), (torch._C.ParameterDict, torch._C.BufferDict)


def _held(module: Any, kinds: Any = ALL) -> Iterator[tuple[str, Any, str, Tensor]]:
    """Each tensor that C++ has: its whole name, its owner there, its name there, itself."""
    for prefix, owner in _modules(module, ""):
        for kind in kinds:
            for name, tensor in kind(owner).items():
                yield f"{prefix}{name}", owner, name, tensor


def _modules(module: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    yield prefix, module
    for name, inner in torch._C.ModuleDict(module).items():
        yield from _modules(inner, f"{prefix}{name}.")


def _moving(plain: Callable[..., Any]) -> Callable[..., Any]:
    def _apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        held = list(_held(self._c, PARAMETERS))
        with _as_parameters([tensor for *_, tensor in held]):
            result = plain(self, *args, **kwargs)
        for _, owner, name, tensor in held:
            owner.setattr(name, tensor)
        return result

    return _apply


@contextmanager
def _as_parameters(tensors: Sequence[Any]) -> Iterator[None]:
    """Those of C++ are plain tensors, which torch takes for gradients where devices differ."""
    plain = [each for each in tensors if not isinstance(each, Parameter)]
    for each in plain:
        each._is_param = True
    try:
        yield
    finally:
        for each in plain:
            del each._is_param


def _saving(plain: Callable[..., Any]) -> Callable[..., Any]:
    def save(self: Any, *args: Any, _extra_files: Any = None, **kwargs: Any) -> Any:
        with _on_host(self._c) as places:
            extra = {**(_extra_files or {}), **({RECORD: json.dumps(places)} if places else {})}
            return plain(self, *args, _extra_files=extra, **kwargs)

    return save


@contextmanager
def _on_host(module: Any) -> Iterator[dict[str, int]]:
    """C++ holds the values meanwhile."""
    held = [each for each in _held(module) if isinstance(each[3], SimTensor)]
    for _, owner, name, tensor in held:
        owner.setattr(name, tensor.inner.detach().requires_grad_(tensor.requires_grad))
    try:
        yield {whole: tensor.index for whole, _, _, tensor in held}
    finally:
        for _, owner, name, tensor in held:
            owner.setattr(name, tensor)


def _loading(simulation: Simulation, plain: Callable[..., Any]) -> Callable[..., Any]:
    def load(unit: Any, file: Any, map_location: Any, extra: Any, *rest: Any) -> Any:
        asked = None if map_location is None else simulation.index_of(map_location)
        home = map_location if asked is None else torch.device("cpu")
        found = {**extra, RECORD: ""}
        module = plain(unit, file, home, found, *rest)
        extra.update({name: found[name] for name in extra})
        places = json.loads(found[RECORD] or "{}") if map_location is None else {}
        for whole, owner, name, tensor in list(_held(module)):
            index = places.get(whole) if asked is None else asked
            if index is not None:
                moved = simulation.moved(tensor.detach(), simulation.checked(index))
                owner.setattr(name, moved.requires_grad_(tensor.requires_grad))
        return module

    return load


def _folding(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    def fold(module: Any, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(tensor, SimTensor) for *_, tensor in _held(module._c)):
            raise NotRehearsed(FOLDED.format(name))
        return plain(module, *args, **kwargs)

    return fold
