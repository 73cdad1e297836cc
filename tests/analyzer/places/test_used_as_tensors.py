"""What the use of a name says: that it holds a tensor, or an object that keeps some."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    "use",
    [
        "x.size(0)",
        "x.ne(0)",
        "torch.zeros_like(x)",
        "nn.functional.softmax(x, 0)",
        "(x == self.config.pad).unsqueeze(-1)",
        "(1 - x).unsqueeze(0)",
        "x.float().mean(0).unsqueeze(0)",
        "torch.matmul(first, x)",
        "first.masked_fill(x, 0)",
        "first.index_select(0, x)",
        "first @ x",
    ],
)
def test_what_only_a_tensor_is_asked_for(use: str) -> None:
    source = f"""
    import torch
    from torch import nn

    class Noise(nn.Module):
        def forward(self, first, x):
            mask = {use}
            return x + torch.rand(3, 4), mask
    """
    assert severity("DEV521", source) is Severity.WARNING


@pytest.mark.parametrize(
    ("use", "expected"), [("pos.size(0)", Severity.WARNING), ("len(pos)", None)]
)
def test_parts_of_an_object_are_used_as_tensors(use: str, expected: Severity | None) -> None:
    source = f"""
    import torch
    from torch import nn

    class Sampled(nn.Module):
        def forward(self, data):
            pos, face = data.pos, data.face
            count = {use}
            return pos[face[1]] * torch.rand(3, 4), count
    """
    assert severity("DEV521", source) is expected


@pytest.mark.parametrize(
    ("index", "expected"),
    [("x > 0", Severity.WARNING), ("x.nonzero()", Severity.WARNING), ("1:3", None)],
)
def test_what_is_written_by_an_index_lies_beside_it(index: str, expected: Severity | None) -> None:
    """A slice is copied from anywhere."""
    source = f"""
    import torch
    from torch import nn

    class Filled(nn.Module):
        def forward(self, x):
            x[{index}] = torch.rand(10)
            return x
    """
    assert severity("DEV521", source) is expected


def test_a_mask_takes_one_number_from_anywhere() -> None:
    source = """
    import torch
    from torch import nn

    class Filled(nn.Module):
        def forward(self, x):
            x[x == 0] = torch.tensor([1])
            return x
    """
    assert severity("DEV521", source) is None


def test_without_an_argument_there_is_no_device_to_follow() -> None:
    source = """
    import torch

    def mask_of(lengths, width, xs: torch.Tensor = None):
        mask = torch.arange(width).expand(len(lengths), width)
        if xs is not None:
            mask = mask.expand_as(xs).to(xs.device)
        return mask
    """
    assert severity("DEV531", source) is None


@pytest.mark.parametrize("made", ["torch.tensor([1.0])", "torch.tensor(1.0)"])
def test_a_result_replaced_on_one_path_is_returned(made: str) -> None:
    source = f"""
    import torch
    from torch import nn

    class Bounded(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = nn.Linear(3, 3)

        def forward(self, x):
            loss = self.mix(x)
            if loss.sum().item() > 1.0:
                loss = {made}
            return loss
    """
    assert severity("DEV531", source) is Severity.NOTE


def test_the_device_of_a_variable_is_one_that_follows() -> None:
    source = """
    import torch

    def joined(self, values, labels):
        labels = self.masked(labels)
        count = labels.size(0)
        moved = values.to(labels.device)
        return torch.cat([moved, torch.zeros(3)]), count
    """
    assert severity("DEV521", source) is Severity.NOTE


@pytest.mark.parametrize(
    ("asked", "expected"), [("x.bfloat16", None), ("x.bfloat16()", Severity.ERROR)]
)
def test_a_setting_may_be_named_as_a_method(asked: str, expected: Severity | None) -> None:
    source = f"""
    def prepared(x):
        if {asked} and x.device == "mps":
            return x
    """
    assert severity("DEV501", source) is expected


@pytest.mark.parametrize(
    ("default", "read"), [("torch.zeros(4)", "self.seen"), ("[]", "self.seen[0]")]
)
def test_the_states_of_a_metric_go_along_with_it(default: str, read: str) -> None:
    source = f"""
    import torch
    import torchmetrics

    class Hits(torchmetrics.Metric):
        def __init__(self):
            super().__init__()
            self.add_state("seen", default={default}, dist_reduce_fx="sum")

        def compute(self, n):
            return {read} * torch.arange(n)
    """
    assert severity("DEV521", source) is Severity.WARNING


@pytest.mark.parametrize(
    "body",
    [
        "n = len(rows)\n    return rows @ torch.eye(n)",
        "b, n = rows.shape\n    return rows * torch.linspace(0, 1, n)",
        "s = torch.zeros(len(rows), 3)\n    s[:, 0] += torch.sum(rows, 1)\n    return s",
        "out = net(rows[:, None])\n    return out.exp() * torch.ones(rows.shape[0], 1)",
    ],
)
def test_what_is_made_by_the_size_of_an_argument_says_that_it_is_a_tensor(body: str) -> None:
    source = f"import torch\n\ndef f(rows, net, flat):\n    {body}\n"
    assert severity("DEV521", source) is Severity.NOTE


@pytest.mark.parametrize(
    "body",
    [
        "return rows * torch.eye(3)",
        "sizes = torch.zeros(len(rows), 3)\n    sizes[:, 0] = torch.sum(rows, 1)\n    return sizes",
        "out = tokens(rows)\n    return out * torch.ones(rows.shape[0], 1)",
    ],
)
def test_what_may_be_a_number_or_is_copied(body: str) -> None:
    source = f"import torch\n\ndef tokens(rows):\n    return 3\n\ndef f(rows):\n    {body}\n"
    assert severity("DEV521", source) is None
