"""DEV529, `moved-except-one`: what is reported, how bad it is, and what is not."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import lines, severity


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("Vae.from_pretrained(key)", Severity.NOTE),
        ("a.reshape(key)", Severity.WARNING),
    ],
)
def test_what_classes_load_is_not_alike(first: str, expected: Severity) -> None:
    made = first.partition(".")[2]
    names = ("Vae", "Net", "Text", "Tokens") if "Vae" in first else "abcd"
    rows = "".join(f"    {each.lower()}2 = {each}.{made}.to(device)\n" for each in names[:3])
    source = (
        f"from library import Vae, Net, Text, Tokens\n\ndef load(a, b, c, d, key, device):\n{rows}"
        f"    d2 = {names[3]}.{made}\n    return d2\n"
    )
    assert severity("DEV529", source) is expected


def test_the_fourth_of_four_that_are_moved() -> None:
    source = """
    def flat(a, b, c, d, device):
        a = a.reshape(-1).to(device)
        b = b.reshape(-1).to(device)
        c = c.reshape(-1).to(device)
        d = d.reshape(-1)
        return a, b, c, d
    """
    assert lines("DEV529", source) == [(6, Severity.WARNING)]
    fewer = source.replace("        b = b.reshape(-1).to(device)\n", "")
    assert lines("DEV529", fewer) == [(5, Severity.NOTE)]
    inside = source.replace("d.reshape(-1)", "(d.to(device) + 1).reshape(-1)")
    assert all(severity is Severity.NOTE for _, severity in lines("DEV529", inside))


def test_a_name_that_is_bound_to_itself_beside_one_that_is_moved_is_a_warning() -> None:
    source = "def compared(a, b, device):\n    a, b = a.to(device), b\n    return a.like(b)\n"
    assert lines("DEV529", source) == [(2, Severity.WARNING)]
    other = source.replace("a, b = a.to(device), b\n", "a, c = a.to(device), b\n")
    assert not lines("DEV529", other)
