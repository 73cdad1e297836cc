"""DEV524, `library-result-not-moved`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import lines, severity


def test_what_a_tokenizer_gives_is_moved_by_whoever_is_given_a_device() -> None:
    source = """
    import torch

    def encode(tokenizer, text_encoder, prompt, device: torch.device):
        inputs = tokenizer(prompt, return_tensors="pt")
        return text_encoder(**inputs)[0].to(device)
    """
    assert lines("DEV524", source) == [(6, Severity.NOTE)]
    for moved in (
        source.replace('"pt")', '"pt").to(device)'),
        source.replace("**inputs", "**{k: v.to(device) for k, v in inputs.items()}"),
        source.replace("**inputs", "**inputs, device=device"),
        source.replace("prompt, return", "prompt, device=device, return"),
        source.replace("text_encoder(**inputs)[0]", "tokenizer.pad(inputs).ids"),
    ):
        assert not lines("DEV524", moved), moved


@pytest.mark.parametrize(
    ("taken", "expected"), [("answer.shape[-1]", None), ("answer", Severity.NOTE)]
)
def test_a_model_may_take_the_length_of_what_stays(taken: str, expected: Severity | None) -> None:
    source = f"""
    def asked(tokenizer, model, text, device):
        ids = tokenizer.encode(text).to(device)
        answer = tokenizer(text, return_tensors="pt").input_ids
        return model.generate(ids, {taken})
    """
    assert severity("DEV524", source) is expected
