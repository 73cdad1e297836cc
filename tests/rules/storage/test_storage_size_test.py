"""STO203: sizes of storages held against logical sizes."""

from __future__ import annotations

import pytest

from tensortrail.findings import Confidence, Severity
from tensortrail.rules.storage.storage_size_test import StorageSizeTest
from tensortrail.testing import run

JOIN = """\
import torch

def join(tensors, needed):
    if {test}:
        return {slow}
    return tensors[0].as_strided((needed,), (1,))
"""


@pytest.mark.parametrize(
    "test",
    [
        "tensors[0].untyped_storage().nbytes() < needed",
        "needed > tensors[0].untyped_storage().nbytes()",
        "tensors[0].untyped_storage().size() != needed",
    ],
)
def test_either_side_and_either_word_for_size(test: str) -> None:
    [finding] = run(StorageSizeTest, JOIN.format(test=test, slow="torch.cat(tensors)"))
    assert (finding.severity, finding.confidence) == (Severity.NOTE, Confidence.LOW)
    assert finding.message.endswith("the slow path is taken")
    assert finding.site.line == 4


def test_only_a_copy_is_called_the_slow_path() -> None:
    test = "tensors[0].untyped_storage().nbytes() < needed"
    [finding] = run(StorageSizeTest, JOIN.format(test=test, slow="None"))
    assert "slow path" not in finding.message


@pytest.mark.parametrize(
    "test",
    [
        "tensors[0].untyped_storage().nbytes() == 0",
        "tensors[0].untyped_storage().nbytes() == tensors[1].untyped_storage().nbytes()",
        "tensors[0].numel() < needed",
    ],
)
def test_emptiness_and_equal_storages_are_fair_questions(test: str) -> None:
    assert not run(StorageSizeTest, JOIN.format(test=test, slow="torch.cat(tensors)"))


def test_test_code_may_measure_storages() -> None:
    source = JOIN.format(test="tensors[0].untyped_storage().nbytes() < needed", slow="None")
    assert not run(StorageSizeTest, source, path="tests/test_join.py")
