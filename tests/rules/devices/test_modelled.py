"""A tensor made after the shape of a variable, of which nothing else is known."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.devices.test_on_the_cpu import severity


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("torch.ones(steep.shape[:-1])", Severity.WARNING),
        ("torch.tensor(rows, dtype=steep.dtype)", Severity.WARNING),
        ("torch.ones(3, 1)", None),
        ("torch.ones(steep.shape[:-1]).to(steep)", None),
    ],
)
def test_what_is_made_after_a_variable_has_to_lie_with_it(
    made: str, expected: Severity | None
) -> None:
    source = f"""
    import torch
    from torch import nn

    class Newton(nn.Module):
        def step(self, helper, x, rows):
            steep = self.slopes @ helper.bends(x)
            return steep + torch.diag_embed({made})
    """
    assert severity("DEV521", source) is expected


def test_nothing_says_that_a_plain_function_works_on_gpus() -> None:
    source = """
    import torch

    def step(helper, x):
        steep = helper.slopes(x) @ helper.bends(x)
        return steep + torch.ones(steep.shape[0], dtype=steep.dtype)
    """
    assert severity("DEV521", source) is None


def test_operations_in_place_and_variables_lie_where_their_tensor_does() -> None:
    source = """
    import torch
    from torch import nn
    from torch.autograd import Variable

    class Sampler(nn.Module):
        def drawn(self, middle, spread):
            width = spread.div(2).exp_()
            noise = Variable(torch.randn(width.size()))
            return noise.mul(width).add_(middle)
    """
    assert severity("DEV521", source) is Severity.WARNING
