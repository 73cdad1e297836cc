"""What OFF101 says of a model that its holder lets go of."""

from __future__ import annotations

import pytest

from tensortrail.analyzer.judging.judge import judge
from tensortrail.analyzer.judging.module import open_project
from tensortrail.rules import all_rules

SOURCE = """\
import torch


class Predictor:
    def __init__(self, model: torch.nn.Module, offload_model_to_cpu: bool):
        self.model = model
        self.offload_model_to_cpu = offload_model_to_cpu

    def end(self):
        model = self.model
        if isinstance(model, torch.nn.Module):
            model.to("cpu")
        {after}
"""


@pytest.mark.parametrize(
    ("after", "lines"), [("self.model = None", []), ("self.other = None", [12])]
)
def test_nobody_can_ask_where_it_is_given_up(after: str, lines: list[int]) -> None:
    source = SOURCE.format(after=after).encode()
    found = judge("predictor.py", source, [all_rules()["OFF101"]()], open_project()).findings
    assert [each.site.line for each in found] == lines
