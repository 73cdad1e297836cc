"""What OFF106 says of statements that never run."""

from __future__ import annotations

from tensortrail.analyzer.judging.judge import judge
from tensortrail.analyzer.judging.module import open_project
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
