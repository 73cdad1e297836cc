"""STO207, `slice-saved-whole`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(("made", "expected"), [("torch.zeros(3)", None), ("{}", Severity.WARNING)])
def test_what_is_stored_into_a_tensor_is_copied(made: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    def kept(rows, path):
        table = torch.tensor(rows)
        for i in range(len(rows)):
            out = {made}
            out[0] = table[i, :3]
            torch.save(out, path + str(i))
    """
    assert severity("STO207", source) is expected
