"""XFR605, `copy-not-awaited`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


@pytest.mark.parametrize(("stream", "expected"), [("batch.side", None), ("self.side", WARNING)])
def test_a_stream_that_another_object_keeps(stream: str, expected: Severity | None) -> None:
    source = (
        "import torch\n\nclass Camera:\n    def forward(self, batch):\n"
        f"        {stream} = torch.cuda.Stream()\n        with torch.cuda.stream({stream}):\n"
        '            batch.rows = batch.R.to("cpu", non_blocking=True)\n'
    )
    assert severity("XFR605", source) is expected


@pytest.mark.parametrize(
    ("waited", "expected"),
    [
        ("torch.cuda.synchronize(self.copies)", None),
        ("torch.cuda.current_stream().synchronize()", Severity.WARNING),
    ],
)
def test_another_method_may_wait_for_the_stream(waited: str, expected: Severity | None) -> None:
    source = f"""
    import torch

    class Layers:
        def prefetch(self, layer):
            with torch.cuda.stream(self.copies):
                for weight in layer.parameters():
                    weight.data = weight.data.to("cuda", non_blocking=True)

        def ready(self):
            {waited}
    """
    assert severity("XFR605", source) is expected
