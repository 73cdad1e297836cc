"""Staging of `async_save`: copies on the host, by the stagers of torch.distributed.checkpoint."""

from __future__ import annotations

import copy
import io
import warnings
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch

from tensortrail.doctor.subclass import looks
from tensortrail.doctor.subclass.probe import DoesNotApply, Probe, Subject, Wrong
from tensortrail.doctor.subclass.standing_in import pinning
from tensortrail.doctor.subclass.words import Verdict

USE, ORDER = "DCP staging", 1
SHARED = "staging into shared memory and nn.Module.share_memory fail"
STAGED = "async_save stages something else than the weight: its values are not in the checkpoint"


def _data_ptr(subject: Subject) -> None:
    subject.tensor().data_ptr()


def _new_empty(subject: Subject) -> None:
    tensor = subject.tensor()
    made = tensor.new_empty(tensor.size(), device="cpu")
    subject.of_shape(made, tuple(tensor.shape), "cpu")
    subject.own_memory(made, tensor)


def _answering(subject: Subject) -> torch.Tensor:
    """A tensor that answers `new_empty` well: what is wrong there is told in the row above."""
    tensor = subject.tensor()
    try:
        made = tensor.new_empty(tensor.size(), device="cpu")
    except Exception as error:
        raise DoesNotApply("new_empty fails already") from error
    if type(made) is not subject.kind:
        raise DoesNotApply("new_empty gives another class already")
    return tensor


def _new_empty_elsewhere(subject: Subject) -> None:
    tensor = subject.tensor()
    try:
        made = tensor.new_empty(tensor.size(), device="meta")
    except Exception:
        made = _answering(subject).new_empty(tensor.size(), device="meta")
    if type(made) is not subject.kind:
        _answering(subject)  # the same on both devices is one fault, told above
    subject.of_shape(made, tuple(tensor.shape), "meta")


def _new_empty_scalar(subject: Subject) -> None:
    made = _answering(subject).new_empty([], device="cpu")
    if isinstance(made, torch.Tensor) and made.numel() != 1:
        told = f"gives {made.numel()} elements for the size of a scalar"
        raise Wrong(Verdict.WRONG_VALUES, told, "NEW302")


def _new_empty_pinned(subject: Subject) -> None:
    tensor = _answering(subject)
    with pinning() as pinned:
        made = tensor.new_empty(tensor.size(), device="cpu", pin_memory=True)
        subject.of_shape(made, tuple(tensor.shape), "cpu")
        if looks.inner_tensors(made) and not pinned:
            raise Wrong(Verdict.WRONG_STORAGE, "drops pin_memory=True", "NEW301")


def _zeros_like(subject: Subject) -> None:
    tensor = subject.tensor()
    subject.of_shape(torch.zeros_like(tensor, device="cpu"), tuple(tensor.shape), "cpu")


def _share_memory(subject: Subject) -> None:
    tensor = subject.tensor().to("cpu")
    before = looks.look(tensor)
    shared = tensor.share_memory_()
    subject.same(shared, before, "cpu")
    private = [n for n, each in looks.inner_tensors(shared).items() if not each.is_shared()]
    if private:
        raise Wrong(Verdict.WRONG_STORAGE, f"{private[0]} is not in shared memory")


def _copy_into_blank(subject: Subject) -> None:
    source, target = subject.tensor(), subject.other()
    before = looks.look(source)
    target.copy_(source, non_blocking=True)
    subject.same(target, before)
    subject.untouched(source, before)


def _attributes(subject: Subject) -> None:
    """The stager sets a copy of every attribute on the fresh tensor."""
    tensor = _answering(subject)
    fresh = tensor.new_empty(tensor.size(), device="cpu")
    wanted = looks.look(tensor)
    for name, value in vars(tensor).items():
        staged = value.cpu().clone() if isinstance(value, torch.Tensor) else copy.deepcopy(value)
        setattr(fresh, name, staged)
    subject.same(fresh, wanted, "cpu")


def _stager(share: bool, twice: bool = False) -> Any:
    def run(subject: Subject) -> None:
        stager_of = _stager_class()
        tensor = subject.tensor()
        wanted = looks.look(tensor)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stager = stager_of(pin_memory=torch.cuda.is_available(), share_memory=share)
            staged = stager.stage({"weight": tensor})["weight"]
            if twice:
                staged = stager.stage({"weight": tensor})["weight"]
        got = subject.same(staged, wanted, "cpu")
        subject.own_memory(got, tensor)
        subject.untouched(tensor, wanted)

    return run


def _stager_class() -> Any:
    try:
        from torch.distributed.checkpoint._state_dict_stager import StateDictStager
    except ImportError:
        raise DoesNotApply(f"torch {torch.__version__} has no StateDictStager") from None
    return StateDictStager


def _cpu_state_dict(share: bool) -> Any:
    def run(subject: Subject) -> None:
        from torch.distributed._state_dict_utils import _copy_state_dict, _create_cpu_state_dict

        tensor = subject.tensor()
        wanted = looks.look(tensor)
        state = {"weight": tensor}
        copies = _create_cpu_state_dict(
            state, pin_memory=torch.cuda.is_available() and not share, share_memory=share
        )
        staged = _copy_state_dict(state, copies, non_blocking=False)["weight"]
        subject.same(staged, wanted, "cpu")

    return run


def _to_the_saving_process(subject: Subject) -> None:
    import torch.multiprocessing  # what it does to pickling is what is tried

    _ = torch.multiprocessing
    tensor = subject.tensor().to("cpu")
    wanted = looks.look(tensor)
    sent = io.BytesIO()
    ForkingPickler(sent).dump(tensor)
    subject.same(ForkingPickler.loads(sent.getvalue()), wanted, "cpu")


PROBES = [
    Probe("data_ptr()", _data_ptr, "every stager asks for it before it copies"),
    Probe("new_empty(size, device=cpu)", _new_empty, STAGED, ("NEW304", "XFR604")),
    Probe("new_empty(size, device=meta)", _new_empty_elsewhere,
          "a fresh tensor on another device than the source is of another kind", ("NEW301",)),
    Probe("new_empty([], device=cpu)", _new_empty_scalar,
          "a staged scalar becomes a copy of the whole weight", ("NEW304", "NEW302")),
    Probe("new_empty(size, pin_memory=True)", _new_empty_pinned,
          "the staged copy is not pinned: copies to it are slow and block", ("NEW301",)),
    Probe("zeros_like(device=cpu)", _zeros_like,
          "BlockingAsyncStager keeps its copies in tensors of another kind", ("NEW304", "XFR604")),
    Probe("share_memory_()", _share_memory, SHARED, deadly=True),
    Probe("copy_(same class, non_blocking)", _copy_into_blank,
          "what is staged for the second save is not the weight of that step"),
    Probe("setattr of every attribute", _attributes, STAGED, ("NEW304", "XFR604")),
    Probe("StateDictStager.stage", _stager(share=False), STAGED, ("XFR604",), whole=True),
    Probe("StateDictStager.stage, shared memory", _stager(share=True), STAGED, ("XFR604",),
          whole=True),
    Probe("StateDictStager.stage, second time", _stager(share=False, twice=True), STAGED,
          ("XFR604",), whole=True),
    Probe("_copy_state_dict(_create_cpu_state_dict)", _cpu_state_dict(share=False),
          "BlockingAsyncStager stages another kind of tensor than the weight", ("XFR604",),
          whole=True),
    Probe("_create_cpu_state_dict(share_memory=True)", _cpu_state_dict(share=True), SHARED,
          ("NEW304", "XFR604"), whole=True, deadly=True),
    Probe("pickled to the checkpoint process", _to_the_saving_process,
          "async_save with AsyncCheckpointerType.PROCESS fails or saves other values",
          whole=True, deadly=True),
]  # fmt: skip
