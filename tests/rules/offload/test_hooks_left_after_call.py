"""OFF132, `hooks-left-after-call`: what is reported and what is not."""

from __future__ import annotations

import pytest

from tests.rules.judged import severity

_LEFT = """
def features_of(model, x):
    kept = []

    def keep(module, args, output):
        kept.append(output)

    for layer in model.modules():
        layer.register_forward_hook(keep)
    model(x)
    return kept
"""


def test_hooks_on_all_layers() -> None:
    assert severity("OFF132", _LEFT) is not None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return kept", "return kept, model"),
        ("    kept = []", "    kept = []\n    model = load(x)"),
        ("    model(x)", "    model(x)\n    remove_hooks(model)"),
        ("    for layer", "    if not hasattr(model, 'seen'):\n     for layer"),
        ("layer.register_forward_hook(keep)", "kept.append(layer.register_forward_hook(keep))"),
        ("    model(x)", "    for each in x:\n        model(each)"),
    ],
)
def test_what_is_left_alone(old: str, new: str) -> None:
    source = _LEFT.replace("kept.append(output)", "print(output.shape)").replace(old, new)
    assert severity("OFF132", source) is None
