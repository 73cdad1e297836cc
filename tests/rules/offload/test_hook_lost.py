"""OFF109, `hook-lost`: options that a function does not pass on to itself."""

from __future__ import annotations

import pytest

from tensortrail.findings import Severity
from tests.rules.judged import severity


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("print(start)", "print(parts)", Severity.WARNING),
        ("print(start)", "start += 1", None),
        ("number = start", "number += 1", None),
        ("number = start", "parts += 1", Severity.WARNING),
        ("if start: return hooked(net[0], parts)", "print(parts)", None),
        ("if start: return hooked(net[0], parts, start)", "print(parts)", Severity.WARNING),
    ],
)
def test_an_option_of_one_level_is_not_passed_on(
    first: str, last: str, expected: Severity | None
) -> None:
    source = f"""
def hooked(net, parts, start=0):
    {first}
    for child in net.children():
        child.register_forward_hook(parts[start])
        hooked(child, parts)
        {last}
"""
    assert severity("OFF109", source) is expected
