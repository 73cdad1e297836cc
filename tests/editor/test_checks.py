"""Which of the texts that wait is checked next."""

from __future__ import annotations

from threading import Event

from tensortrail.editor.checks import Checks
from tensortrail.findings import Finding, Site

SECONDS = 20


def test_whoever_types_waits_for_no_check_of_other_documents() -> None:
    begun, released = Event(), Event()
    order: list[str] = []

    def check(name: str, program: bytes) -> tuple[list[Finding], list[Site]]:
        order.append(name)
        begun.set()
        assert released.wait(SECONDS)
        return [], []

    checks = Checks(check)
    checks.ask("slow", "slow", 1, b"")
    assert begun.wait(SECONDS)
    again = [checks.ask(name, name, 1, b"") for name in ("a", "b", "typed")]
    typed = checks.ask("typed", "typed", 2, b"x")
    assert again[2].cancelled(), "a newer text came"
    released.set()
    assert typed.result(SECONDS)
    assert all(each.result(SECONDS) for each in again[:2])
    assert order == ["slow", "typed", "b", "a"]
    assert checks.made == 4
    checks.stop()


def test_what_waits_at_the_end_is_cancelled() -> None:
    begun, released = Event(), Event()

    def check(name: str, program: bytes) -> tuple[list[Finding], list[Site]]:
        begun.set()
        assert released.wait(SECONDS)
        return [], []

    checks = Checks(check)
    running = checks.ask("a", "a", 1, b"")
    assert begun.wait(SECONDS)
    waiting = checks.ask("b", "b", 1, b"")
    checks.stop()
    assert waiting.cancelled()
    released.set()
    assert running.result(SECONDS)


def test_a_check_that_fails_tells_who_asked() -> None:
    def check(name: str, program: bytes) -> tuple[list[Finding], list[Site]]:
        raise KeyError(name)

    checks = Checks(check)
    assert isinstance(checks.ask("a", "a", 1, b"").exception(SECONDS), KeyError)
    checks.stop()
