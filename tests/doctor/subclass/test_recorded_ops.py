"""The operations that are tried are those that torch asks for: recorded, not listed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch.overrides import TorchFunctionMode
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils._python_dispatch import TorchDispatchMode

from tensortrail.doctor.subclass.probe import DoesNotApply, Subject, Wrong
from tensortrail.doctor.subclass.uses import all_uses

USES = all_uses()
ASKED_OF_ANY = {
    "__get__", "__set__", "size", "dim", "numel", "stride", "storage_offset", "element_size",
    "__deepcopy__", "__reduce_ex__", "__hash__", "requires_grad_", "is_floating_point",
    "is_complex", "__repr__", "nelement", "type", "get_device", "__bool__", "__iter__", "__len__",
    "_has_compatible_shallow_copy_type",
    "has_names", "_is_view", "is_conj", "is_neg", "is_signed", "register_hook", "item",
}  # fmt: skip
"""Metadata: answered by the outer tensor, whatever the class does."""


class _Dispatched(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.ops: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(issubclass(each, TwoTensor) for each in types):
            self.ops.add(str(func.overloadpacket))
        return func(*args, **(kwargs or {}))


class _Called(TorchFunctionMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.ops: set[str] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = (*args, *(kwargs or {}).values())
        if any(isinstance(each, TwoTensor) for each in given):
            self.ops.add(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


@contextmanager
def recording() -> Iterator[set[str]]:
    seen: set[str] = set()
    called, dispatched = _Called(), _Dispatched()
    with called, dispatched:
        yield seen
    seen |= {op for op in called.ops if op not in ASKED_OF_ANY}
    seen |= dispatched.ops


def asked(use: str, whole: bool) -> set[str]:
    """What the real code of a use asks of a tensor that answers everything, or what is tried."""
    subject = Subject(lambda: TwoTensor(torch.randn(8, 8), torch.randn(8, 8)), TwoTensor)
    ops: set[str] = set()
    for probe in USES[use]:
        if probe.whole is not whole or probe.deadly:
            continue
        try:
            with torch.no_grad(), recording() as seen:
                probe.run(subject)
        except (DoesNotApply, Wrong):
            pass
        ops |= seen
    return ops


@pytest.fixture(scope="module")
def tried() -> set[str]:
    with torch.serialization.safe_globals([TwoTensor]):
        return set().union(*(asked(use, whole=False) for use in USES if use != "torch.compile"))


@pytest.mark.parametrize("use", [use for use in USES if any(p.whole for p in USES[use])])
def test_every_operation_that_torch_asks_for_is_tried(use: str, tried: set[str]) -> None:
    with torch.serialization.safe_globals([TwoTensor]):
        needed = asked(use, whole=True)
    assert len(needed) > 3, needed
    assert not needed - tried, f"torch {torch.__version__} asks for {sorted(needed - tried)}"


def test_a_sharded_tensor_asks_for_the_same(tried: set[str]) -> None:
    """A wrapper inside a DTensor, saved as FSDP2 saves it: nothing else reaches the wrapper."""
    dtensor = pytest.importorskip("torch.distributed.tensor")
    from torch.distributed.checkpoint._state_dict_stager import StateDictStager
    from torch.distributed.fsdp import fully_shard

    from tensortrail.doctor.subclass.uses.fsdp import RANKS, _Holder, _ranks

    with torch.no_grad(), _ranks(RANKS, "fake", "cpu") as mesh, recording() as needed:
        holder = _Holder(TwoTensor(torch.randn(8, 8), torch.randn(8, 8)))
        state = fully_shard(holder, mesh=mesh).state_dict()
        assert isinstance(state["weight"], dtensor.DTensor)
        staged = StateDictStager().stage(state)["weight"]
        assert type(staged.to_local()) is TwoTensor
    assert {"aten.new_empty", "aten.split", "aten.copy_"} <= needed
    assert not needed - tried
