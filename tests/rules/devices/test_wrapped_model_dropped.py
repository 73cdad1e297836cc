"""DEV629, `wrapped-model-dropped`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


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
