"""FSDP2: what `fully_shard` does to a parameter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from tensortrail.doctor.subclass import looks
from tensortrail.doctor.subclass.probe import DoesNotApply, Probe, Subject, Wrong
from tensortrail.doctor.subclass.words import Verdict

USE, ORDER = "FSDP2", 3
RANKS = 2
SHARDS = "fully_shard cannot cut the parameter into shards"
HOOKS = ("fsdp_pre_all_gather", "fsdp_post_all_gather")


def _halves(subject: Subject, tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    if not tensor.dim() or tensor.shape[0] % RANKS:
        raise DoesNotApply(f"{tensor.shape[:1]} rows cannot be shared out among {RANKS}")
    return tuple(torch.chunk(tensor, RANKS, dim=0))


def _chunk(subject: Subject) -> None:
    tensor = subject.tensor()
    whole, rows = looks.look(tensor), tensor.shape[0] // RANKS
    for rank, shard in enumerate(_halves(subject, tensor)):
        subject.part(shard, whole, slice(rank * rows, (rank + 1) * rows))


def _new_zeros(subject: Subject) -> None:
    tensor = subject.tensor()
    made = subject.of_shape(tensor.new_zeros(tensor.size()), tuple(tensor.shape))
    subject.own_memory(made, tensor)


def _slice(subject: Subject) -> None:
    tensor = subject.tensor()
    whole, rows = looks.look(tensor), max(tensor.shape[0] // RANKS, 1)
    subject.part(tensor[:rows], whole, slice(0, rows))


def _narrow_is_a_view(subject: Subject) -> None:
    """A shard is copied into its padded memory through a view."""
    source, target = subject.tensor(), subject.other()
    wanted = looks.look(source)
    target.narrow(0, 0, target.shape[0]).copy_(source)
    subject.same(target, wanted)


def _flat(subject: Subject) -> None:
    tensor = subject.tensor()
    flat = tensor.view(-1)
    if not isinstance(flat, torch.Tensor) or flat.numel() != tensor.numel():
        raise Wrong(Verdict.WRONG_VALUES, "has another number of elements")
    if type(flat) is not subject.kind:
        if all(hasattr(subject.kind, name) for name in HOOKS):
            raise DoesNotApply("its hooks give what is gathered: this is not used")
        raise Wrong(Verdict.WRONG_TYPE, f"gives a {type(flat).__qualname__}")


def _view_as_it_is(subject: Subject) -> None:
    tensor = subject.tensor()
    wanted = looks.look(tensor)
    subject.same(tensor.view(tensor.shape), wanted)
    subject.same(tensor.view_as(tensor), wanted)


def _as_strided(subject: Subject) -> None:
    tensor = subject.tensor()
    wanted = looks.look(tensor)
    strided = torch.as_strided(tensor, tensor.size(), tensor.stride(), tensor.storage_offset())
    subject.same(strided, wanted)


def _empty_shard(subject: Subject) -> None:
    """A rank beyond the rows gets an empty shard."""
    made = subject.tensor().new_empty(0)
    if not isinstance(made, torch.Tensor) or made.numel():
        raise Wrong(Verdict.WRONG_VALUES, "is not empty")


def _contiguous(subject: Subject) -> None:
    if not subject.tensor().is_contiguous():
        raise Wrong(Verdict.WRONG_STORAGE, "says it is not contiguous")


def _hooks(subject: Subject) -> None:
    has = [name for name in HOOKS if hasattr(subject.kind, name)]
    if len(has) == 1:
        raise Wrong(Verdict.RAISES, f"has {has[0]} and not the other of the two")
    if not has:
        raise DoesNotApply("it has none: gathered as what a plain tensor takes of it")


def _requires_grad(subject: Subject) -> None:
    tensor = subject.tensor()
    wanted = looks.look(tensor)
    subject.same(nn.Parameter(tensor, requires_grad=False).data, wanted)


class _Holder(nn.Module):  # type: ignore[misc]
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)


@contextmanager
def _ranks(number: int, backend: str, device: str) -> Iterator[Any]:
    """A mesh of that many ranks, of which this process is the first."""
    import torch.distributed as dist

    if not dist.is_available():
        raise DoesNotApply("this torch has no distributed")
    if dist.is_initialized():
        raise DoesNotApply("a process group is running already")
    store: Any = dist.HashStore()
    if backend == "fake":
        from torch.testing._internal.distributed.fake_pg import FakeStore

        store = FakeStore()
    dist.init_process_group(backend, store=store, rank=0, world_size=number)
    try:
        yield dist.device_mesh.init_device_mesh(device, (number,))
    finally:
        dist.destroy_process_group()


def _sharded(subject: Subject) -> None:
    from torch.distributed.fsdp import fully_shard

    tensor = subject.tensor()
    whole, rows = looks.look(tensor), tensor.shape[0] // RANKS
    _halves(subject, tensor)
    with _ranks(RANKS, "fake", subject.home) as mesh:
        model = fully_shard(_Holder(tensor), mesh=mesh)
        local: Any = model.state_dict()["weight"]
        subject.part(local.to_local(), whole, slice(0, rows))


def _gathered(subject: Subject) -> None:
    from torch.distributed.fsdp import fully_shard

    tensor = subject.tensor()
    wanted = looks.look(tensor)
    with _ranks(1, "gloo", subject.home) as mesh:
        model: Any = fully_shard(_Holder(tensor), mesh=mesh)
        model.unshard()
        gathered = model.weight.data
        if tuple(gathered.shape) != wanted.shape:
            raise Wrong(Verdict.WRONG_VALUES, f"the gathered weight is {tuple(gathered.shape)}")
        got = looks.plain(gathered)
        by_hooks = hasattr(subject.kind, HOOKS[0])  # may quantize: what it gives is its own
        known = wanted.plain is not None and got is not None
        if known and not by_hooks and not looks.close(got, wanted.plain):
            raise Wrong(Verdict.WRONG_VALUES, "the gathered weight has other values")
        model.reshard()
        subject.same(model.weight.to_local(), wanted)


def _loaded(subject: Subject) -> None:
    """A state dict taken and given back, before the first forward pads the shard again."""
    from torch.distributed.fsdp import fully_shard

    tensor = subject.tensor()
    wanted = looks.look(tensor)
    with _ranks(1, "gloo", subject.home) as mesh:
        model: Any = fully_shard(_Holder(tensor), mesh=mesh)
        state = model.state_dict()
        model.load_state_dict(state, assign=True)
        model.unshard()
        model.reshard()
        subject.same(model.weight.to_local(), wanted)


GATHER = "the weight cannot be gathered for the forward, or is gathered without its scales"
PROBES = [
    Probe("chunk(2), which is split", _chunk, SHARDS),
    Probe("new_zeros(size)", _new_zeros, "fully_shard has no memory of the class for its shard"),
    Probe("slice of rows", _slice, "a shard of uneven rows cannot be cut out of its padding"),
    Probe("narrow(...).copy_", _narrow_is_a_view, "the shard stays zero: the weight is lost"),
    Probe("view(-1)", _flat, "what is gathered is a copy of the shard, or nothing"),
    Probe("view(size)", _view_as_it_is, SHARDS),
    Probe("as_strided(as it is)", _as_strided,
          "the gathered memory cannot be given the shape of the parameter"),
    Probe("new_empty(0)", _empty_shard, "ranks beyond the rows have no shard"),
    Probe("is_contiguous()", _contiguous, "fully_shard refuses the parameter"),
    Probe("nn.Parameter(...).data", _requires_grad, "the class cannot be a parameter"),
    Probe(" and ".join(HOOKS), _hooks, GATHER),
    Probe("fully_shard, 2 ranks", _sharded, SHARDS, whole=True),
    Probe("fully_shard, unshard, reshard", _gathered, GATHER, whole=True),
    Probe("fully_shard, load_state_dict(assign=True)", _loaded,
          "reset_sharded_param pads the shard again and loses it", ("STO201",), whole=True),
]  # fmt: skip
