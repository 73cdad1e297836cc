"""SHD411, `snapshot-before-change`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("self.data.next()", Severity.NOTE),
        ("self.data.train()", Severity.WARNING),
        ("self.data(3)", Severity.WARNING),
    ],
)
def test_whatever_has_a_state_may_be_data(use: str, expected: Severity) -> None:
    source = (
        "class Loop:\n    def end(self):\n        self.kept = self.data.state_dict()\n\n"
        f"    def run(self):\n        {use}\n\n"
        "    def restore(self):\n        self.data.load_state_dict(self.kept)\n"
    )
    assert severity("SHD411", source) is expected


SEARCH = """
    class Search:
        def setup(self):
            self.kept = self.policy.state_dict()

        def begin(self):
            self.policy.load_state_dict(self.kept)
            for parameter in self.policy.parameters():
                parameter.requires_grad = {trained}
    """


@pytest.mark.parametrize(
    ("trained", "expected"), [("False", Severity.NOTE), ("True", Severity.WARNING)]
)
def test_a_frozen_model_is_not_changed(trained: str, expected: Severity) -> None:
    assert severity("SHD411", SEARCH.format(trained=trained)) is expected


@pytest.mark.parametrize(
    ("taken_by", "expected"), [("__init__", None), ("load_state_dict", Severity.WARNING)]
)
def test_an_optimizer_has_no_state_before_its_first_step(
    taken_by: str, expected: Severity | None
) -> None:
    source = (
        f"class Warmup:\n    def {taken_by}(self, optimizer):\n"
        "        self.optimizer = optimizer\n        self.kept = self.optimizer.state_dict()\n\n"
        "    def step(self):\n        self.optimizer.step()\n\n"
        "    def restore(self):\n        self.optimizer.load_state_dict(self.kept)\n"
    )
    source = source.replace("        self.optimizer = optimizer\n", "") if expected else source
    assert severity("SHD411", source) is expected
