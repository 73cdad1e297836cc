"""A file that uses on a GPU what it defines: there a mistake is an error, whoever else calls it."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

MASKED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.inner = nn.Linear(size, size)
        self.mask = torch.tril(torch.ones(size, size))

    def forward(self, x):
        return self.inner(x) * self.mask


"""
SUMMED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.table = nn.Embedding(size, size)

    def forward(self, ids):
        hidden = torch.zeros(ids.shape[0], self.table.embedding_dim)
        for i in range(ids.shape[1]):
            hidden = hidden + self.table(ids[:, i])
        return hidden


"""


@pytest.mark.parametrize(("code", "source"), [("OFF107", MASKED), ("DEV532", SUMMED)])
@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("net = Net(8).cuda()\n", Severity.ERROR),
        ("device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\n"
         "net = Net(8)\nnet.to(device)\n", Severity.ERROR),
        ("def main(args):\n    return Net(8).to(args.device)\n", Severity.ERROR),
        ("net = Net(8).to('cpu')\n", Severity.WARNING),
        ("net = Net(8).to(torch.float16)\n", Severity.WARNING),
        ("def moved(x):\n    return x.cuda()\n\nnet = Net(8)\n", Severity.WARNING),
        ("", Severity.WARNING),
    ],
)  # fmt: skip
def test_in_the_file_itself(code: str, source: str, use: str, expected: Severity) -> None:
    assert severity(code, source + use) is expected
