"""An assignment becomes the registration of buffers only where that does the same."""

from __future__ import annotations

import ast

import pytest

from tensortrail.rules.shared.buffers import registration

HEAD = "def __init__(self, n):\n    super().__init__()\n    "


def rewritten(statement: str, names: tuple[str, ...], before: str = HEAD, after: str = "") -> str:
    function = ast.parse(before + statement + after).body[0]
    assigned = next(each for each in ast.walk(function) if isinstance(each, ast.Assign))
    return registration(function, assigned, names, ast.unparse) or ""


@pytest.mark.parametrize(("statement", "text"), [
    ("self.a = torch.ones(n)", 'self.register_buffer("a", torch.ones(n), persistent=False)'),
    (
        "self.a, self.n = torch.ones(n), n",
        'self.register_buffer("a", torch.ones(n), persistent=False)\n    self.n = n',
    ),
    (
        "k, self.a = n, torch.ones(n)",
        'k = n\n    self.register_buffer("a", torch.ones(n), persistent=False)',
    ),
])  # fmt: skip
def test_what_it_becomes(statement: str, text: str) -> None:
    assert rewritten(statement, ("a",)) == text


@pytest.mark.parametrize("statement", [
    "self.a = self.b = torch.ones(n)",
    "self.a, self.b = torch.ones(2, n)",
    "self.a, *self.b = torch.ones(n), 1, 2",
    "self.b, self.a = torch.ones(n), self.b",
    "other.a = torch.ones(n)",
    "self.a = [torch.ones(n) for _ in range(3)]",
    "self.a = {'one': torch.ones(n)}",
    "self.a = tuple(made)",
])  # fmt: skip
def test_what_would_be_something_else(statement: str) -> None:
    assert not rewritten(statement, ("a",))


def test_nothing_is_registered_before_the_module_is_set_up() -> None:
    before, after = "def __init__(self, n):\n    ", "\n    super().__init__()\n"
    assert not rewritten("self.a = torch.ones(n)", ("a",), before, after)
