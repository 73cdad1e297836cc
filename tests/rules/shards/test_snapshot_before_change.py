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


OPTIMIZED = """
    class Averaged:
        def __init__(self, optimizer):
            self.optimizer = optimizer
            {at_first}

        def load_state_dict(self, state):
            self.optimizer.load_state_dict(state)
            {when_loaded}

        def step(self):
            self.optimizer.step()

        def restart(self):
            self.optimizer.load_state_dict(self.kept)
    """
KEPT = "self.kept = self.optimizer.state_dict()"


@pytest.mark.parametrize(
    ("at_first", "when_loaded", "expected"),
    [(KEPT, "pass", Severity.NOTE), ("pass", KEPT, Severity.WARNING)],
)
def test_an_optimizer_that_made_no_step_has_no_state(
    at_first: str, when_loaded: str, expected: Severity
) -> None:
    source = OPTIMIZED.format(at_first=at_first, when_loaded=when_loaded)
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
