"""DEV629, `wrapped-model-dropped`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity
from tests.rules.recorded import runs_without_findings, watched


@pytest.mark.parametrize(
    ("after", "expected"),
    [("return model(x)", Severity.NOTE), ("model.save_pretrained('merged')", Severity.WARNING)],
)
def test_a_merged_model_that_is_only_used_may_stay_wrapped(after: str, expected: Severity) -> None:
    source = f"""
    from peft import PeftModel

    def merged(base, folder, x):
        model = PeftModel.from_pretrained(base, folder)
        model.merge_and_unload()
        {after}
    """
    assert severity("DEV629", source) is expected


MERGES = """\
import torch
from peft import LoraConfig, get_peft_model
base = torch.nn.Sequential(torch.nn.Linear(4, 4))
model = get_peft_model(base, LoraConfig(r=2, target_modules=["0"]))
{merges}
model.save_pretrained({folder!r}){mark}
"""


def test_an_adapter_that_was_merged_is_saved(tmp_path: Path) -> None:
    pytest.importorskip("peft")
    folder = str(tmp_path / "saved")
    source = MERGES.format(merges="model.merge_and_unload()", folder=folder, mark="  # flagged")
    seen = watched(tmp_path, source, "DEV629")
    assert "`merge_and_unload()` at program.py:5" in seen.only.message
    source = MERGES.format(merges="model.merge_adapter()", folder=folder, mark="")
    runs_without_findings(tmp_path, source, "DEV629")
