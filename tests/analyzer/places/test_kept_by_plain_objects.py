"""Tensors that objects of plain classes keep, and the tensors that their methods are given."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

CHECKER = """
import torch

class Checker:
    def __init__(self, n):
        self._weights = torch.linspace(0, 1, n)

    @property
    def weights(self):
        return self._weights

    def check(self, value: torch.Tensor):
        {first}
        return {used}
"""


@pytest.mark.parametrize("used", ["value * self._weights", "value - self.weights"])
def test_what_was_made_with_the_object_meets_what_callers_pass(used: str) -> None:
    assert severity("DEV521", CHECKER.format(first="", used=used)) is Severity.NOTE
    moved = used.replace("eights", "eights.to(value)")
    assert severity("DEV521", CHECKER.format(first="", used=moved)) is None


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("if type(value) is float: value = torch.tensor([value])", Severity.NOTE),
        ("if self.small: value = torch.tensor([value])", None),
    ],
)
def test_an_argument_may_be_a_number_too(first: str, expected: Severity | None) -> None:
    source = CHECKER.format(first=first, used="value - self.weights")
    assert severity("DEV521", source) is expected


def test_callers_that_pass_what_lies_on_the_cpu() -> None:
    called = "\n\ndef main(n):\n    return Checker(n).check(torch.ones(n))\n"
    source = CHECKER.format(first="", used="value * self._weights")
    assert severity("DEV521", source + called) is None


def test_a_data_set_works_on_the_cpu() -> None:
    source = CHECKER.format(first="", used="value * self._weights")
    assert severity("DEV521", source.replace("class Checker", "class RowsDataset")) is None
