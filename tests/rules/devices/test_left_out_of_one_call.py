"""DEV541, `left-out-of-one-call`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

from tensortrail.findings import Severity
from tests.rules.judged import lines


def test_a_call_with_the_device_beside_one_with_both() -> None:
    source = """
    import torch

    def start(x, n, device, dtype):
        x = x.to(device=device, dtype=dtype)
        return x, torch.zeros(n, device=device)
    """
    assert lines("DEV541", source) == [(6, Severity.WARNING)]
    assert not lines("DEV541", source.replace("x.to(device=device, dtype=dtype)", "x.to(dtype)"))


def test_a_comparison_and_a_norm_have_no_dtype_to_lose() -> None:
    source = """
    import torch
    from torch import nn

    def start(n, device, dtype):
        kept = torch.rand(n, device=device) > 0.5
        norm = nn.LayerNorm(n, device=device)
        return torch.where(kept, torch.ones(n, device=device, dtype=dtype), 0), norm
    """
    assert all(severity is not Severity.WARNING for _, severity in lines("DEV541", source))


def test_options_that_are_unpacked_hold_the_device() -> None:
    source = """
    from torch import nn

    class Block(nn.Module):
        def __init__(self, n, device=None):
            super().__init__()
            options = {"device": device}
            self.up = nn.Linear(n, 4 * n, **options)
            self.down = nn.Linear(4 * n, n)
    """
    assert lines("DEV541", source) == [(9, Severity.WARNING)]
    assert not lines("DEV541", source.replace("4 * n, n)", "4 * n, n, **options)"))
    assert not lines("DEV541", source.replace('{"device": device}', '{"bias": False}'))
    assert lines("DEV541", source.replace('{"device": device}', "dict(device=device)"))
