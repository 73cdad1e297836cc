"""`torch.distributed.checkpoint.save` and `load`: planners, writers, readers."""

from __future__ import annotations

import inspect
import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tensortrail.doctor.subclass import looks
from tensortrail.doctor.subclass.probe import DoesNotApply, Probe, Subject, Wrong
from tensortrail.doctor.subclass.words import Verdict

USE, ORDER = "DCP save and load", 2
ROWS = slice(0, 1)


def _detach(subject: Subject) -> None:
    tensor = subject.tensor()
    wanted = looks.look(tensor)
    subject.same_memory(subject.same(tensor.detach(), wanted), tensor)


def _cpu(subject: Subject) -> None:
    tensor = subject.tensor()
    wanted = looks.look(tensor)
    subject.same(tensor.cpu(), wanted, "cpu")


def _clone(subject: Subject) -> None:
    tensor = subject.tensor()
    wanted = looks.look(tensor)
    subject.own_memory(subject.same(tensor.clone(), wanted), tensor)


def _storage_size(subject: Subject) -> None:
    tensor = subject.tensor()
    size, logical = tensor.untyped_storage().size(), tensor.numel() * tensor.itemsize
    if size != logical and not looks.inner_tensors(tensor):
        raise Wrong(Verdict.WRONG_STORAGE, f"says {size} bytes where {logical} are")
    if size < logical and size == 0:
        raise Wrong(Verdict.WRONG_STORAGE, f"says 0 bytes where {logical} are")


def _is_pinned(subject: Subject) -> None:
    if subject.tensor().is_pinned():
        raise Wrong(Verdict.WRONG_STORAGE, "says it is pinned, on the ordinary host memory")


def _properties(subject: Subject) -> None:
    from torch.distributed.checkpoint.metadata import TensorProperties

    tensor = subject.tensor()
    told = TensorProperties.create_from_tensor(tensor)
    if told.dtype != tensor.dtype:
        raise Wrong(Verdict.WRONG_VALUES, f"is written down as {told.dtype}")


def _narrow(subject: Subject) -> None:
    from torch.distributed._shard._utils import narrow_tensor_by_index

    tensor = subject.tensor()
    whole = looks.look(tensor)
    rows = narrow_tensor_by_index(tensor, [0] * tensor.dim(), list(tensor.shape))
    subject.part(rows, whole, slice(0, tensor.shape[0]))


def _read_into(subject: Subject) -> None:
    source, target = subject.tensor(), subject.other()
    wanted = looks.look(source)
    target.detach().copy_(source.cpu())
    subject.same(target, wanted)


def _read_plain_into(subject: Subject) -> None:
    """A checkpoint of the plain weight, loaded into the quantized one."""
    target = subject.other()
    values = looks.plain(subject.tensor())
    if values is None:
        raise DoesNotApply("the class does not tell its values as a plain tensor")
    target.detach().copy_(values.cpu())
    got = looks.plain(subject.of_the_class(target))
    if got is None or not looks.close(got, values):
        raise Wrong(Verdict.WRONG_VALUES, "does not hold what was copied into it")


def _written(subject: Subject) -> None:
    """The writer of FileSystemWriter: torch.save of the tensor, read with weights_only."""
    tensor = subject.tensor()
    wanted = looks.look(tensor)
    file = io.BytesIO()
    torch.save(tensor.detach().cpu(), file)
    file.seek(0)
    subject.same(torch.load(file, map_location="cpu", weights_only=True), wanted, "cpu")


@contextmanager
def _saved(tensor: torch.Tensor) -> Iterator[Any]:
    import torch.distributed.checkpoint as dcp

    with tempfile.TemporaryDirectory() as folder:
        alone = _alone(dcp.save) | _alone(dcp.load)
        dcp.save({"weight": tensor}, checkpoint_id=folder, **alone)
        yield lambda into: dcp.load({"weight": into}, checkpoint_id=folder, **alone)


def _alone(function: Any) -> dict[str, bool]:
    """The argument by which it works without a process group."""
    if "no_dist" not in inspect.signature(function).parameters:
        told = f"{function.__name__} of torch {torch.__version__} needs a process group"
        raise DoesNotApply(told)
    return {"no_dist": True}


def _save(subject: Subject) -> None:
    with _saved(subject.tensor()):
        pass


def _save_and_load(subject: Subject) -> None:
    tensor, target = subject.tensor(), subject.other()
    wanted = looks.look(tensor)
    with _saved(tensor) as load:
        subject.untouched(tensor, wanted)
        load(target)
    subject.same(target, wanted)


def _async_save(subject: Subject) -> None:
    """What a program does: an asynchronous save, waited for, and a load."""
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp

    if not dist.is_available():
        raise DoesNotApply("this torch has no distributed")
    tensor, target = subject.tensor(), subject.other()
    wanted = looks.look(tensor)
    with tempfile.TemporaryDirectory() as folder:
        alone = _alone(dcp.async_save)
        saved: Any = dcp.async_save({"weight": tensor}, checkpoint_id=folder, **alone)
        getattr(saved, "upload_completion", saved).result()
        dcp.load({"weight": target}, checkpoint_id=folder, **_alone(dcp.load))
    subject.same(target, wanted)


SAVE = "torch.distributed.checkpoint.save fails or writes other values"
LOAD = "torch.distributed.checkpoint.load fails or leaves the weight as it was"
PROBES = [
    Probe("detach()", _detach, SAVE),
    Probe("cpu()", _cpu, "the writer writes something else than the weight"),
    Probe("clone()", _clone, "the writer clones a tensor whose storage is larger or smaller"),
    Probe("untyped_storage().size()", _storage_size,
          "the writer takes the weight for a slice and clones it", ("STO203",)),
    Probe("is_pinned()", _is_pinned, SAVE),
    Probe("TensorProperties.create_from_tensor", _properties, SAVE),
    Probe("narrow over the whole", _narrow, LOAD),
    Probe("detach().copy_(same class)", _read_into, LOAD),
    Probe("detach().copy_(plain tensor)", _read_plain_into,
          "a checkpoint of plain weights cannot be loaded into the model"),
    Probe("torch.save, torch.load(weights_only=True)", _written,
          "the checkpoint can be written and not be read"),
    Probe("dcp.save", _save, SAVE, whole=True),
    Probe("dcp.save, dcp.load", _save_and_load, LOAD, whole=True),
    Probe("dcp.async_save, dcp.load", _async_save,
          "a checkpoint saved in the background does not hold the weight", ("XFR604",), whole=True),
]  # fmt: skip
