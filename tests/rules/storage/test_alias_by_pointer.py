"""STO201: how bad a wrong "same" is, and what settles the question."""

from __future__ import annotations

import pytest

from tensortrail.findings import Safety, Severity
from tensortrail.rules.storage.alias_by_pointer import AliasByPointer
from tensortrail.testing import fixed, run
from tests.rules.judged import severity

TIED = """\
def export(model, state_dict):
    a = model.embed.weight
    b = model.head.weight
    if {test}:
        {then}
    return state_dict
"""
SAME = "a.data_ptr() == b.data_ptr()"


def tied(test: str = SAME, then: str = "note()") -> str:
    return TIED.format(test=test, then=then)


@pytest.mark.parametrize(
    ("then", "severity"),
    [
        ("del state_dict['head.weight']", Severity.ERROR),
        ("state_dict.pop('head.weight')", Severity.ERROR),
        ("b.untyped_storage().resize_(0)", Severity.ERROR),
        ("return state_dict", Severity.ERROR),
        ("logger.info('tied')", Severity.NOTE),
    ],
)
def test_severity_follows_what_is_done_with_the_answer(then: str, severity: Severity) -> None:
    [finding] = run(AliasByPointer, tied(then=then))
    assert finding.severity is severity
    assert finding.site.line == 4


def test_the_trail_names_both_tensors_and_their_origins() -> None:
    [finding] = run(AliasByPointer, tied())
    assert [step.site.line for step in finding.trail] == [2, 3]
    assert "`a` and `b`" in finding.message


def test_weights_are_compared_as_objects_only_on_request() -> None:
    [finding] = run(AliasByPointer, tied())
    assert [fix.safety for fix in finding.fixes] == [Safety.UNSAFE]
    assert fixed(AliasByPointer, tied()) == tied(f"(a is b or {SAME} != 0)")


@pytest.mark.parametrize(
    "more",
    [
        "a.data_ptr() != 0",
        "a.numel() > 0",
        "a.untyped_storage().nbytes() > 0",
        "a.storage_offset() == b.storage_offset()",
        'a.device.type != "meta"',
        "type(a) is torch.Tensor",
    ],
)
def test_a_second_question_settles_it(more: str) -> None:
    assert not run(AliasByPointer, tied(f"{SAME} and {more}"))
    guarded = tied().replace("    if ", f"    if not ({more}):\n        return None\n    if ")
    assert not run(AliasByPointer, guarded)


def test_inequality_before_a_copy_costs_at_most_a_copy() -> None:
    assert not run(AliasByPointer, tied("a.data_ptr() != b.data_ptr()", "a.copy_(b)"))


def test_tensors_of_unknown_kind_stay_unremarked() -> None:
    assert not run(AliasByPointer, "def f(p, q):\n    return p.data_ptr() == q.data_ptr()\n")


@pytest.mark.parametrize("path", ["tests/test_it.py", "pkg/testing/util.py"])
def test_test_code_may_compare_pointers(path: str) -> None:
    assert not run(AliasByPointer, tied(), path=path)


MOVED = (
    "import torch\n\n\nclass Codes:\n    def __init__(self, codes: torch.nn.Parameter):\n"
    "        assert codes.dtype {said}\n        self.codes = codes\n\n"
    "    def to(self, device):\n        moved = self.codes.to(device)\n"
    "        if moved.data_ptr() == self.codes.data_ptr():\n            return self\n"
    "        return Codes(moved)\n"
)


@pytest.mark.parametrize(
    ("said", "expected"),
    [("== torch.uint8", Severity.NOTE), ("== torch.float32", Severity.ERROR)],
)
def test_a_tensor_that_has_to_be_of_whole_numbers(said: str, expected: Severity) -> None:
    assert severity("STO201", MOVED.format(said=said)) is expected
