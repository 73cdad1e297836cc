"""NEW305, `factory-ignores-device`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import HEAD, severity


@pytest.mark.parametrize(
    ("type_", "expected"), [("mel.type()", None), ("torch.float16", Severity.WARNING)]
)
def test_the_type_of_another_tensor(type_: str, expected: Severity | None) -> None:
    source = (
        HEAD + "class Decoder(nn.Module):\n    def forward(self, mel):\n"
        "        first = torch.zeros(1, mel.size(1), mel.size(2))\n"
        f"        first = first.type({type_})\n"
        "        return torch.cat([first, mel[:-1, :, :]], 0)\n"
    )
    assert severity("NEW305", source) is expected


@pytest.mark.parametrize(
    ("name", "calls"),
    [("forward", ""), ("widened", "    def forward(self, x):\n        return self.widened(x)\n\n")],
)
def test_a_method_that_forward_calls(name: str, calls: str) -> None:
    source = (
        HEAD + f"class Wide(nn.Module):\n{calls}    def {name}(self, rows: torch.Tensor):\n"
        "        return torch.cat([torch.ones(3), rows])\n"
    )
    assert severity("NEW305", source) is Severity.WARNING


def test_lengths_are_packed_with_on_the_cpu() -> None:
    source = """
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = nn.Embedding(3, 3)

        def step(self, parts):
            return self.rows(torch.tensor({what}))
    """
    assert severity("NEW305", source.format(what="[each.shape[0] for each in parts]")) is None
    assert severity("NEW305", source.format(what="[0, 1]")) is Severity.NOTE
