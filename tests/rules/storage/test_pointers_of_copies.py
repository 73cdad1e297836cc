"""`x.contiguous()` of what is contiguous is `x`, which lives on."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("passed", "expected"),
    [
        ("x.contiguous()", Severity.NOTE),
        ("x.t().contiguous()", Severity.WARNING),
        ("x[:, 1:].contiguous()", Severity.WARNING),
        ("x.float()", Severity.WARNING),
    ],
)
def test_what_may_be_contiguous_is_a_note(passed: str, expected: Severity) -> None:
    source = f"""
    import torch

    def launch(kernel, x: torch.Tensor):
        kernel({passed}.data_ptr(), len(x))
    """
    assert severity("STO211", source) is expected


def test_a_gradient_need_not_be_contiguous() -> None:
    source = """
    import torch

    class Scan(torch.autograd.Function):
        @staticmethod
        def backward(ctx, grad):
            ctx.kernel(grad.contiguous().data_ptr(), len(grad))
    """
    assert severity("STO211", source) is Severity.WARNING
