"""DEV660 given-model-not-moved, on code."""

from __future__ import annotations

import pytest

from tests.rules.judged import HEAD, lines

CHOSEN = """\
class Ensemble:
    def __init__(self, models, read, where: torch.device):
        self.models = nn.ModuleList(
            [{choice} for each in models]
        ){after}
"""
LOADED = "each if isinstance(each, {kind}) else read(each, {given})"


@pytest.mark.parametrize(
    ("kind", "given", "after", "found"),
    [
        ("nn.Module", "where", "", [8]),
        ("nn.Module", "8", "", []),
        ("nn.Module", "where", ".to(where)", []),
        ("nn.Module", "where", "\n        self.models.to(where)", []),
        ("torch.Tensor", "where", "", []),
    ],
)
def test_models_that_are_given(kind: str, given: str, after: str, found: list[int]) -> None:
    choice = LOADED.format(kind=kind, given=given)
    source = HEAD + CHOSEN.format(choice=choice, after=after)
    assert [line for line, _ in lines("DEV660", source)] == found
