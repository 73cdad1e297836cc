"""SHD405: what fills a model that was built empty, and what does not."""

from __future__ import annotations

import pytest

from tensortrail.rules.shards.meta_saved import MetaSaved
from tensortrail.testing import run

BUILT = """\
import torch
from accelerate import init_empty_weights

def export(config, path, weights):
    with {context}:
        model = {build}
    {between}
    torch.save(model.state_dict(), path)
"""


def built(
    between: str = "pass", context: str = "init_empty_weights()", build: str = "Model(config)"
) -> str:
    return BUILT.format(between=between, context=context, build=build)


@pytest.mark.parametrize("context", ["init_empty_weights()", 'torch.device("meta")'])
@pytest.mark.parametrize("between", ["pass", "model.eval()", "model.requires_grad_(False)"])
def test_an_empty_model_is_saved(context: str, between: str) -> None:
    [finding] = run(MetaSaved, built(between, context))
    assert finding.site.line == 8
    assert finding.trail[0].site.line == 6


@pytest.mark.parametrize(
    "between",
    [
        "model.load(weights)",
        "fill(model)",
        "model = model.to_empty(device='cpu')",
        "for name, parameter in model.named_parameters():\n        put(parameter, weights[name])",
        "for name in weights:\n        setattr(model, name, weights[name])",
        "model.head = weights",
    ],
)
def test_whatever_may_fill_it_silences(between: str) -> None:
    assert not run(MetaSaved, built(between))


def test_from_pretrained_brings_its_weights() -> None:
    assert not run(MetaSaved, built(build="Model.from_pretrained(config)"))


def test_only_the_empty_model_is_named() -> None:
    source = built("other = Model(config)").replace("(model.state", "(other.state")
    assert not run(MetaSaved, source)


def test_a_state_dict_that_is_filled_before_it_is_written() -> None:
    source = built("sd = model.state_dict()\n    {}").replace(
        "model.state_dict(), path", "sd, path"
    )
    assert run(MetaSaved, source.replace("{}", "print(path)"))
    assert not run(MetaSaved, source.replace("{}", "sd['head'] = weights"))
    assert not run(MetaSaved, source.replace("{}", "sd.update(weights)"))
    assert not run(MetaSaved, source.replace("{}", "fill(sd)"))


def test_one_save_in_two_calls_is_one_finding() -> None:
    source = """\
def wrapper(model, kind, original_save_pretrained, folder, compressor):
    if compressor is None:
        original_save_pretrained.__get__(model, kind)(folder)
        return
    state_dict = get_state_dict_offloaded_model(model)
    original_save_pretrained.__get__(model, kind)(folder, state_dict=state_dict)
"""
    [finding] = run(MetaSaved, source)
    assert finding.site.line == 3
