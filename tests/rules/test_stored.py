"""What a file stores under a name, however it is written, and that DEV573 sees each of it."""

from __future__ import annotations

import pytest

from tensortrail.rules.devices.named.device_taken_for_text import DeviceTakenForText
from tensortrail.rules.shared.stored import stored_under
from tensortrail.testing import run
from tests.analyzer.snippets import module_of


@pytest.mark.parametrize(
    ("binding", "expected"),
    [
        ("x = a", ["a"]),
        ("x: int = a", ["a"]),
        ("(x := a)", ["a"]),
        ("x, y = a, b", ["(a, b)", "a", "b"]),
        ("for x in a: pass", ["a"]),
        ("[x for x in a]", ["a"]),
        ("with a as x: pass", ["a"]),
        ("x += a", ["a"]),
        ("x: int", []),
        ("x.y = a", []),
    ],
)
def test_what_is_stored_under_a_name(binding: str, expected: list[str]) -> None:
    module = module_of(f"def f(a, b):\n    {binding}\n")
    found = [module.text(each) for each in stored_under(module, "x")]
    assert [each.strip("()") for each in found] == [each.strip("()") for each in expected]


@pytest.mark.parametrize(
    ("binding", "asked"),
    [
        ("first = x.device", "'cpu' in first"),
        ("(first := x.device)", "'cpu' in first"),
        ("first, other = x.device, 1", "'cpu' in first"),
        ("made = torch.device('cpu'); first = made", "'cpu' in first"),
        ("name = 'cpu'; first = x.device", "name in first"),
        ("shown = str(x.device); name = 'cuda'", "shown == name"),
        ("shown, other = str(x.device), 1", "'cuda' == shown"),
    ],
)
def test_a_device_is_seen_under_its_name(binding: str, asked: str) -> None:
    source = f"import torch\n\n\ndef f(x: torch.Tensor):\n    {binding}\n    return {asked}\n"
    assert [each.site.line for each in run(DeviceTakenForText, source)] == [6]
