"""Some operands may not meet on a GPU; this says which, in torch's own words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from tensortrail.tracer.rehearsal import state
from tensortrail.tracer.rehearsal.operations import gpu_kernels
from tensortrail.tracer.rehearsal.operations.declared import Kernel, kernel
from tensortrail.tracer.rehearsal.operations.own_words import OWN_WORDS
from tensortrail.tracer.rehearsal.operations.refusals import Arguments, Place, refuse, two_devices
from tensortrail.tracer.rehearsal.tensor.simulated import SimTensor


def check(func: Any, named: Sequence[tuple[str, Tensor]], args: Arguments) -> None:
    """Raise as a GPU build would if these operands may not meet."""
    try:
        _check(func, named, args)
    except RuntimeError as error:  # a `NotImplementedError` is one
        state.refusal = str(error)
        raise


def _check(func: Any, named: Sequence[tuple[str, Tensor]], args: Arguments) -> None:
    places = [(name, t, str(t.device)) for name, t in named]
    devices = {place for _, _, place in places}
    if len(devices) < 2 or "meta" in devices:
        return  # what torch does with a tensor without data is the same on all devices
    if (absence := gpu_kernels.absence(func)) is not None:
        raise absence
    name = func._schema.name.partition("::")[2]
    if name in ANY_MIX or name == "_foreach_copy_":
        return
    if name.startswith("_foreach_"):
        _foreach(func, places)
        return
    if name in OWN_WORDS:
        OWN_WORDS[name](places, args)
        return
    gpu = kernel(func, places[0][1])
    if gpu.strict:
        _check_all(func, places, gpu)
    else:
        _check_iterated(func, places, gpu.works_on_copy)


def _check_all(func: Any, places: Sequence[Place], gpu: Kernel) -> None:
    """What torch generates before a kernel: outputs first, then all that is positional."""
    outputs, by_name = _roles(func)
    ordered = [each for each in places if each[0] in outputs and each[0] in by_name]
    ordered += [each for each in places if each[0] not in by_name]
    for name, _, place in ordered[1:]:
        if place != ordered[0][2]:
            refuse(gpu.renamed.get(name, name), place, ordered[0][2], gpu.wrapper)


def _check_iterated(func: Any, places: Sequence[Place], writes_first: bool = False) -> None:
    """What element-wise kernels check: scalars of the host may be read."""
    outputs = {places[0][0]} if writes_first else _roles(func)[0]
    home = next(place for _, _, place in places if place != "cpu")
    for name, tensor, place in places:
        scalar = place == "cpu" and tensor.dim() == 0 and name not in outputs
        if place != home and not scalar:
            two_devices(home, place)


def _roles(func: Any) -> tuple[set[str], set[str]]:
    """Arguments that are written, and those given by name only."""
    arguments = func._schema.arguments
    written = {a.name for a in arguments if a.alias_info is not None and a.alias_info.is_write}
    return written, {a.name for a in arguments if a.kwarg_only}


def _foreach(func: Any, places: Sequence[Place]) -> None:
    """Lists that do not lie on one device are gone through one by one."""
    lists: dict[str, list[Place]] = {}
    for each in places:
        lists.setdefault(each[0], []).append(each)
    length = len(lists[places[0][0]])
    for together in zip(*(row for row in lists.values() if len(row) == length), strict=True):
        if len({place for _, _, place in together}) > 1:
            _check_iterated(func, together)


HOSTS_TYPE = re.compile(r"but got torch\.(\w+Tensor) instead")
WITHOUT_DATA = re.compile(
    r"Tensor on device (?:meta|cpu) is not on the expected device (?:meta|cpu)!"
)
ANY_MIX = {"copy_", "_to_copy", "copy", "is_same_size", "_pack_padded_sequence",
          "_pack_padded_sequence_backward", "_ctc_loss", "_ctc_loss_backward"}  # fmt: skip


def retold(error: RuntimeError, named: Sequence[tuple[str, Tensor]]) -> RuntimeError | None:
    """Torch's own refusal of a tensor without data, or of one by its type, with the device we
    stand for."""
    if HOSTS_TYPE.search(str(error)) and all(isinstance(each, SimTensor) for _, each in named):
        return RuntimeError(HOSTS_TYPE.sub(r"but got torch.cuda.\1 instead", str(error)))
    if not WITHOUT_DATA.match(str(error)):
        return None
    home = next(str(tensor.device) for _, tensor in named if isinstance(tensor, SimTensor))
    return RuntimeError(str(error).replace("device cpu", f"device {home}"))
