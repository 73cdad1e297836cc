"""Dominating conditions with their polarity."""

from __future__ import annotations

import pytest

from .snippets import find, module_of


def guards(body: str, call: str = "act()") -> list[str]:
    module = module_of(body)
    return [guard.text for guard in module.guards_of(find(module, call))]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("def f(a):\n    if a:\n        act()\n", ["a"]),
        ("def f(a):\n    if not a:\n        act()\n", ["not a"]),
        ("def f(a):\n    if a:\n        pass\n    else:\n        act()\n", ["not a"]),
        ("def f(a, b):\n    if a and not b:\n        act()\n", ["a", "not b"]),
        ("def f(a, b):\n    if a or b:\n        act()\n", ["a or b"]),
        ("def f(a, b):\n    if not (a or b):\n        act()\n", ["not a", "not b"]),
        ("def f(a):\n    if not a:\n        return\n    act()\n", ["a"]),
        ("def f(a):\n    if a:\n        raise E\n    act()\n", ["not a"]),
        ("def f(a, b):\n    if a or b:\n        return\n    act()\n", ["not a", "not b"]),
        ("def f(a):\n    if a:\n        x()\n    else:\n        return\n    act()\n", ["a"]),
        ("def f(a):\n    assert a\n    act()\n", ["a"]),
        ("def f(a):\n    while a:\n        act()\n", ["a"]),
        ("def f(a):\n    return act() if a else None\n", ["a"]),
        ("def f(a):\n    return None if a else act()\n", ["not a"]),
        ("def f(a):\n    return a and act()\n", ["a"]),
        ("def f(a):\n    return a or act()\n", ["not a"]),
        ("def f(a):\n    return [act() for x in xs if a]\n", ["a"]),
        ("def f(a):\n    if a is True:\n        act()\n", ["a"]),
        ("def f(a):\n    if a == False:\n        act()\n", ["not a"]),
        ("def f(a):\n    if bool(a):\n        act()\n", ["a"]),
        (
            "def f(a):\n    for x in xs:\n        if a:\n            continue\n        act()\n",
            ["not a"],
        ),
        ("def f(a):\n    if a:\n        pass\n    act()\n", []),
        ("def f(a):\n    act()\n    if a:\n        return\n", []),
        ("def f(a):\n    if act():\n        pass\n", []),
        (
            "def f(a):\n    try:\n        if not a:\n            return\n"
            "    finally:\n        b()\n"
            "    if c:\n        act()\n",
            ["c"],
        ),
    ],
)
def test_conditions(body: str, expected: list[str]) -> None:
    assert guards(body) == expected


def test_a_named_condition_is_expanded() -> None:
    body = """
    def f(settings, ready):
        wanted = settings.get("offload_module_to_cpu", False) and ready
        if wanted:
            act()
    """
    assert guards(body) == ["wanted", "settings.get('offload_module_to_cpu', False)", "ready"]


def test_a_name_with_two_sources_is_not_expanded() -> None:
    body = """
    def f(a, b, c):
        wanted = a
        if c:
            wanted = b
        if wanted:
            act()
    """
    assert guards(body) == ["wanted"]


def test_guards_end_at_the_function() -> None:
    body = """
    def f(a):
        if a:
            def g():
                act()
    """
    assert guards(body) == []


def test_disjunctions_are_marked_inexact() -> None:
    module = module_of("def f(a, b):\n    if a or b.offload:\n        act()\n")
    (guard,) = module.guards_of(find(module, "act()"))
    assert not guard.exact
    assert guard.mentions("OFFLOAD")
    assert not guard.mentions("device")
