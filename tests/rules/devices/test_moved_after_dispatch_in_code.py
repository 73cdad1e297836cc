"""DEV509, `moved-after-dispatch`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("bits", "expected"), [("load_in_8bit=True", Severity.WARNING), ("load_in_4bit=True", None)]
)
def test_a_configuration_says_how_a_model_is_quantized(
    bits: str, expected: Severity | None
) -> None:
    source = f"""
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

config = BitsAndBytesConfig({bits})
model = AutoModelForCausalLM.from_pretrained("opt", quantization_config=config)
model.cuda()
"""
    assert severity("DEV509", source) is expected
