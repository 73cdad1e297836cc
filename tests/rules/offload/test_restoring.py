"""What OFF106 says of statements that never run, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.judging.engine import check
from tensortrail.analyzer.judging.judge import judge
from tensortrail.analyzer.judging.module import open_project
from tensortrail.findings import Severity
from tensortrail.rules import all_rules

SOURCE = b"""\
from contextlib import contextmanager
import torch

@contextmanager
def aside(model, device):
    model.to("cpu")
    yield
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        model.to(device)
"""


def test_the_call_that_puts_something_back_is_named() -> None:
    found = judge("package/model.py", SOURCE, [all_rules()["OFF106"]()], open_project()).findings
    told = [each.message for each in found]
    assert told == ["if the `with` body raises, `model.to(device)` is never called"]


CAUGHT = """
try:
    with aside(model, "cuda"):
        model.generate()
except RuntimeError:
    {answer}
"""


@pytest.mark.parametrize(
    ("beside", "used", "expected"),
    [
        (".git", "", Severity.NOTE),
        ("setup.py", "", Severity.WARNING),
        (".git", CAUGHT.format(answer="print('once more')"), Severity.WARNING),
        (".git", CAUGHT.format(answer="raise"), Severity.NOTE),
    ],
)
def test_a_run_that_is_over_needs_nothing_back(
    tmp_path: Path, beside: str, used: str, expected: Severity
) -> None:
    (tmp_path / beside).write_text("")
    (tmp_path / "model.py").write_bytes(SOURCE + used.encode())
    request = CheckRequest(paths=(str(tmp_path),), cache_dir=None, codes=frozenset({"OFF106"}))
    assert [each.severity for each in check(request).findings] == [expected]
