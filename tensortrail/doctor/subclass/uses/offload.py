"""Moving weights away and back: `.to`, pinned memory, modules, storages."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from tensortrail.doctor.subclass import looks
from tensortrail.doctor.subclass.probe import DoesNotApply, Probe, Subject, Wrong
from tensortrail.doctor.subclass.standing_in import pinning
from tensortrail.doctor.subclass.words import Verdict

USE, ORDER = "offload", 4


def _copy_on_the_cpu(subject: Subject) -> None:
    tensor = subject.tensor()
    wanted = looks.look(tensor)
    moved = tensor.to("cpu", non_blocking=True, copy=True)
    subject.own_memory(subject.same(moved, wanted, "cpu"), tensor)


def _to_meta(subject: Subject) -> None:
    tensor = subject.tensor()
    subject.of_shape(tensor.to("meta"), tuple(tensor.shape), "meta")


def _to_the_gpu_and_back(subject: Subject) -> None:
    device = _accelerator()
    tensor = subject.tensor()
    wanted = looks.look(tensor)
    there = subject.of_the_class(tensor.to(device, non_blocking=True), device)
    subject.same(there.to("cpu"), wanted, "cpu")


def _pin_memory(subject: Subject) -> None:
    tensor = subject.tensor().to("cpu")
    wanted = looks.look(tensor)
    if torch.accelerator.is_available():
        pinned = subject.same(tensor.pin_memory(), wanted, "cpu")
        private = [n for n, each in looks.inner_tensors(pinned).items() if not each.is_pinned()]
        if private:
            raise Wrong(Verdict.WRONG_STORAGE, f"{private[0]} is not pinned")
        return
    with pinning() as asked:
        pinned = tensor.pin_memory()
    got = subject.same(pinned, wanted, "cpu")
    inner = looks.inner_tensors(got)
    if inner and not any(each is one for each in asked for one in inner.values()):
        raise Wrong(Verdict.WRONG_STORAGE, "pins nothing of what is in it")


def _is_pinned(subject: Subject) -> None:
    tensor = subject.tensor()
    with pinning():
        if tensor.is_pinned():
            raise Wrong(Verdict.WRONG_STORAGE, "says it is pinned, on the ordinary host memory")


def _empty_like(subject: Subject) -> None:
    tensor = subject.tensor()
    made = subject.of_shape(torch.empty_like(tensor, device="cpu"), tuple(tensor.shape), "cpu")
    subject.own_memory(made, tensor)


def _copy_back(subject: Subject) -> None:
    source, target = subject.tensor(), subject.other()
    wanted = looks.look(source)
    target.copy_(source)
    subject.same(target, wanted)


def _set_data(subject: Subject) -> None:
    parameter, other = nn.Parameter(subject.other(), requires_grad=False), subject.tensor()
    wanted = looks.look(other)
    parameter.data = other
    subject.same(parameter.data, wanted)


def _swap(subject: Subject) -> None:
    one, other = subject.other(), subject.tensor()
    wanted = looks.look(other)
    torch.utils.swap_tensors(one, other)
    subject.same(one, wanted)


def _same_storage_twice(subject: Subject) -> None:
    tensor = subject.tensor()
    first, second = tensor.untyped_storage(), tensor.untyped_storage()
    if first is not second and first._cdata != second._cdata:
        told = f"untyped_storage() gives another storage ({second.nbytes()} bytes) at every call"
        raise Wrong(Verdict.WRONG_STORAGE, told)


def _storages_apart(subject: Subject) -> None:
    """Two weights are told apart, or an exception tells that they cannot be."""
    one, other = subject.tensor(), subject.tensor()
    try:
        pointers = [each.untyped_storage().data_ptr() for each in (one, other)]
    except RuntimeError:
        return  # who compares learns that there is nothing to compare
    if pointers[0] == pointers[1]:
        told = f"two tensors have the same pointer {pointers[0]}: they pass for tied"
        raise Wrong(Verdict.WRONG_STORAGE, told)


def _record_stream(subject: Subject) -> None:
    device = _accelerator()
    tensor = subject.tensor().to(device)
    tensor.record_stream(torch.cuda.current_stream())


class _Holder(nn.Module):  # type: ignore[misc]
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)


def _module_moved(swap: bool) -> Callable[[Subject], None]:
    def run(subject: Subject) -> None:
        before = torch.__future__.get_swap_module_params_on_conversion()
        torch.__future__.set_swap_module_params_on_conversion(swap)
        try:
            holder = _Holder(subject.tensor())
            shape = tuple(holder.weight.shape)
            holder.to("meta")
            subject.of_shape(holder.weight.data, shape, "meta")
        finally:
            torch.__future__.set_swap_module_params_on_conversion(before)

    return run


def _module_to_empty(subject: Subject) -> None:
    holder = _Holder(subject.tensor())
    shape = tuple(holder.weight.shape)
    holder.to_empty(device="cpu")
    subject.of_shape(holder.weight.data, shape, "cpu")


def _state_dict_round_trip(subject: Subject) -> None:
    holder, target = _Holder(subject.tensor()), _Holder(subject.other())
    wanted = looks.look(holder.weight.data)
    target.load_state_dict(holder.state_dict())
    subject.same(target.weight.data, wanted)


def _accelerator() -> str:
    if not torch.cuda.is_available():
        raise DoesNotApply("needs a GPU")
    return "cuda"


MOVE = "offloading gives another tensor than the weight"
PROBES = [
    Probe("to(cpu, non_blocking, copy=True)", _copy_on_the_cpu, MOVE),
    Probe("to(meta)", _to_meta, "the weight cannot be left as a placeholder", ("NEW304", "NEW303")),
    Probe("to(cuda), to(cpu)", _to_the_gpu_and_back, MOVE),
    Probe("pin_memory()", _pin_memory, "offloading to pinned memory fails or pins nothing"),
    Probe("is_pinned()", _is_pinned, "offloading to pinned memory fails"),
    Probe("empty_like(device=cpu)", _empty_like, "a buffer for the weight is of another kind",
          ("NEW304", "NEW301")),
    Probe("copy_(same class)", _copy_back, "what comes back is not the weight"),
    Probe("parameter.data = ...", _set_data, "offloading that swaps `.data` leaves the old weight"),
    Probe("swap_tensors", _swap, "nn.Module.to fails where parameters are swapped"),
    Probe("untyped_storage() twice", _same_storage_twice,
          "code that frees, sizes or compares the storage deals with another one", ("STO202",)),
    Probe("untyped_storage().data_ptr() of two", _storages_apart,
          "weights pass for tied: one is skipped, dropped or overwritten", ("STO201",)),
    Probe("record_stream", _record_stream, "memory is given away while a stream still reads it"),
    Probe("nn.Module.to", _module_moved(swap=False), MOVE, whole=True),
    Probe("nn.Module.to, swapping", _module_moved(swap=True), MOVE, whole=True),
    Probe("nn.Module.to_empty", _module_to_empty,
          "a model built on meta cannot be given memory", whole=True),
    Probe("nn.Module.load_state_dict", _state_dict_round_trip,
          "loading a state dict leaves another weight", whole=True),
]  # fmt: skip
