"""A wrapper without a fault, and what is said of one that has one."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from tensortrail.doctor.subclass.examine import examine
from tensortrail.doctor.subclass.words import CannotMake, Examination, Row, Verdict
from tests.doctor.subclass.packed import INEVITABLE, Forgets, Packed, aten, weight


def examined(kind: type[Packed], *uses: str) -> Examination:
    return examine(lambda: kind(torch.randn(8, 8)), uses)


def row(found: Examination, op: str) -> Row:
    (only,) = (each for each in found.rows if each.op == op)
    return only


def test_a_wrapper_without_a_fault() -> None:
    found = examined(Packed)
    assert not found.unexcused(INEVITABLE), found.unexcused(INEVITABLE)
    assert found.kind == "tests.doctor.subclass.packed.Packed"
    assert found.about == "float32 8x8 on cpu, made of inner"
    assert len(found.rows) > 60
    applies = [each for each in found.rows if each.verdict is not Verdict.NOT_APPLICABLE]
    assert len(applies) > 60 if torch.cuda.is_available() else len(applies) > 55


def test_a_plain_tensor_where_the_class_is_needed() -> None:
    found = examined(Forgets, "DCP")
    new_empty = row(found, "new_empty(size, device=cpu)")
    assert new_empty.verdict is Verdict.WRONG_TYPE
    assert new_empty.told == "gives a plain torch.Tensor"
    assert new_empty.codes == ("NEW304", "XFR604")
    assert row(found, "StateDictStager.stage").verdict is Verdict.WRONG_TYPE
    assert row(found, "new_empty([], device=cpu)").verdict is Verdict.NOT_APPLICABLE


def test_the_silent_loss_of_an_asynchronous_save() -> None:
    """What is staged is plain memory; read back with the class allowed, it holds nothing."""
    lost = row(examined(Forgets, "save and load"), "dcp.async_save, dcp.load")
    assert lost.verdict is Verdict.WRONG_VALUES
    assert lost.told == "inner has uninitialised memory"
    assert "XFR604" in lost.codes


def test_an_operation_it_refuses() -> None:
    class Refuses(Packed):
        @classmethod
        def answer(cls, func: Any, args: Any, kwargs: Any) -> Any:
            if func is aten.split.Tensor:
                raise NotImplementedError(f"no {func}")
            return None

    found = examined(Refuses, "FSDP2")
    refused = row(found, "chunk(2), which is split")
    assert refused.verdict is Verdict.RAISES
    assert refused.told == "NotImplementedError (aten.split): no aten.split.Tensor"
    assert refused.breaks == "fully_shard cannot cut the parameter into shards"
    assert row(found, "fully_shard, 2 ranks").verdict is Verdict.RAISES


def test_the_device_it_was_asked_for() -> None:
    class Stays(Packed):
        @classmethod
        def answer(cls, func: Any, args: Any, kwargs: Any) -> Any:
            if func is aten.new_empty.default:
                return cls(torch.empty(args[1]))
            return None

    found = row(examined(Stays, "staging"), "new_empty(size, device=meta)")
    assert found.verdict is Verdict.WRONG_DEVICE
    assert found.told == "gives one on cpu where meta was asked for"
    assert found.codes == ("NEW301",)


def test_a_wrapper_that_says_another_device() -> None:
    class ClaimsMeta(Packed):
        @classmethod
        def answer(cls, func: Any, args: Any, kwargs: Any) -> Any:
            if func is aten._to_copy.default and str(kwargs.get("device")) == "meta":
                return cls(args[0].inner, device="meta")
            return None

    left = row(examined(ClaimsMeta, "offload"), "to(meta)")
    assert left.verdict is Verdict.WRONG_DEVICE
    assert left.told == "says it is on meta, but inner is on cpu"
    assert left.codes[0] == "NEW303"


def test_the_size_of_a_scalar() -> None:
    class Fills(Packed):
        @classmethod
        def answer(cls, func: Any, args: Any, kwargs: Any) -> Any:
            if func is aten.new_empty.default and not args[1]:
                return cls(torch.empty(args[0].shape))
            return None

    found = row(examined(Fills, "staging"), "new_empty([], device=cpu)")
    assert found.told == "gives 64 elements for the size of a scalar"
    assert found.codes[0] == "NEW302"


def test_pinning_that_is_dropped() -> None:
    class Drops(Packed):
        @classmethod
        def answer(cls, func: Any, args: Any, kwargs: Any) -> Any:
            if func is aten.new_empty.default:
                return cls(torch.empty(args[1], device=kwargs.get("device")))
            return None

    found = examined(Drops, "staging")
    assert row(found, "new_empty(size, pin_memory=True)").told == "drops pin_memory=True"
    assert row(examined(Packed, "offload"), "pin_memory()").verdict is Verdict.HANDLED


def test_a_copy_that_writes_nothing() -> None:
    class Ignores(Packed):
        @classmethod
        def answer(cls, func: Any, args: Any, kwargs: Any) -> Any:
            return args[0] if func is aten.copy_.default else None

    found = examined(Ignores, "DCP save", "FSDP2")
    assert row(found, "detach().copy_(same class)").told == "inner has other values"
    assert row(found, "narrow(...).copy_").verdict is Verdict.WRONG_VALUES


def test_a_copy_that_shares_memory() -> None:
    class Lazy(Packed):
        @classmethod
        def answer(cls, func: Any, args: Any, kwargs: Any) -> Any:
            return cls(args[0].inner) if func is aten.clone.default else None

    shared = row(examined(Lazy, "DCP save"), "clone()")
    assert shared.verdict is Verdict.WRONG_STORAGE
    assert shared.told == "shares the memory of inner with the original"


def test_a_storage_made_at_every_call() -> None:
    class Fresh(Packed):
        def untyped_storage(self) -> Any:
            return torch.UntypedStorage(0)

    found = examined(Fresh, "offload", "DCP save")
    twice = row(found, "untyped_storage() twice")
    assert (twice.verdict, twice.codes) == (Verdict.WRONG_STORAGE, ("STO202",))
    assert "another storage (0 bytes) at every call" in twice.told
    two = row(found, "untyped_storage().data_ptr() of two")
    assert two.codes == ("STO201",)
    assert row(found, "untyped_storage().size()").codes == ("STO203",)


def test_one_half_of_the_hooks() -> None:
    class Half(Packed):
        def fsdp_pre_all_gather(self, mesh: Any) -> Any: ...

    op = "fsdp_pre_all_gather and fsdp_post_all_gather"
    found = row(examined(Half, "FSDP2"), op)
    assert found.told == "has fsdp_pre_all_gather and not the other of the two"


def test_memory_is_not_left_in_another_state() -> None:
    before = torch.are_deterministic_algorithms_enabled()
    examined(Packed, "staging")
    assert torch.are_deterministic_algorithms_enabled() == before
    assert not torch.distributed.is_initialized()


def test_an_instance_that_cannot_be_made_again_is_no_fault_of_the_class() -> None:
    made: list[Packed] = []

    def twice_only() -> Packed:
        if len(made) == 2:
            raise CannotMake("the weights are used up")
        made.append(weight())
        return made[-1]

    found = examine(twice_only, ["FSDP2"])
    assert not found.failing
    assert {each.told for each in found.rows} >= {"the weights are used up"}


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: torch.ones(2), "plain torch.Tensor"),
        (lambda: 3, "a int, which is not a tensor"),
        ((lambda once: lambda: once)(weight()), "a new tensor at every call"),
    ],
)
def test_what_makes_no_instance(make: Any, told: str) -> None:
    with pytest.raises(CannotMake, match=told):
        examine(make)
