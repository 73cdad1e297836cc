"""`tensortrail.testing.check_subclass`, as the test suites of others call it."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tensortrail.testing import check_subclass
from tests.doctor.subclass.packed import INEVITABLE, forgetful, weight


def test_a_class_that_handles_all_of_it() -> None:
    check_subclass(weight, uses=["FSDP2", "staging"], except_for=["share_memory"])


def test_one_error_lists_every_row() -> None:
    with pytest.raises(AssertionError) as raised:
        check_subclass(forgetful, uses=["staging"], except_for=["share_memory"])
    told = str(raised.value)
    assert "packed.Forgets (float32 8x8 on cpu, made of inner; tests, torch" in told
    assert "DCP staging: new_empty(size, device=cpu): wrong type: gives a plain" in told
    assert "its values are not in the checkpoint [NEW304, XFR604]" in told
    assert "DCP staging: StateDictStager.stage: wrong type" in told
    assert "share_memory" not in told


def test_an_exception_that_has_no_reason_any_more() -> None:
    with pytest.raises(AssertionError, match="'pin_memory', and nothing like it fails"):
        check_subclass(weight, uses=["FSDP2"], except_for=["pin_memory"])


def test_a_use_that_does_not_exist() -> None:
    with pytest.raises(AssertionError, match="no use is named FSDP3"):
        check_subclass(weight, uses=["FSDP3"])


def test_a_parameter_is_examined_as_what_it_holds() -> None:
    import torch

    check_subclass(
        lambda: torch.nn.Parameter(weight()), uses=["save and load"], except_for=INEVITABLE[2:]
    )
