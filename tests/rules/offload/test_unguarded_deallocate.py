"""OFF101: which settings ask for a guard."""

from __future__ import annotations

import pytest

from tests.rules.judged import lines

PIPELINE = """
class Pipeline:
    {setting}_cpu_offload = {value}

    def send(self, parts, device):
        for name in {asked}:
            parts[name].to(device)

    def without_map(self, model: torch.nn.Module):
        model.to("cpu")
"""


@pytest.mark.parametrize(
    ("setting", "value", "asked", "found"),
    [
        ("order_of", '"text->unet"', 'self.order_of_cpu_offload.split("->")', 0),
        ("out_of", '("vae",)', "(each for each in parts if each in self.out_of_cpu_offload)", 0),
        ("with", "True", "parts if self.with_cpu_offload else ()", 1),
    ],
)
def test_only_a_yes_or_no_asks_for_a_guard(
    setting: str, value: str, asked: str, found: int
) -> None:
    source = PIPELINE.format(setting=setting, value=value, asked=asked)
    assert len(lines("OFF101", "import torch\n" + source)) == found
