"""Checks of open buffers, one after another in a thread of their own: the newest text wins, and
goes before the texts that wait to be checked again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from tensortrail.findings import Finding, Site


@dataclass(frozen=True)
class Checked:
    version: int
    program: bytes
    findings: tuple[Finding, ...]
    unrecorded: tuple[Site, ...]
    """Functions that the last run recorded nothing in."""


Check = Callable[[str, bytes], tuple[Sequence[Finding], Sequence[Site]]]
"""Takes a name and its program."""

T = TypeVar("T")


class Checks:
    def __init__(self, check: Check) -> None:
        self._check = check
        self._worker = ThreadPoolExecutor(1, "tensortrail")
        self._texts: dict[str, int] = {}
        """By document: a number that grows with each text."""
        self._asked: dict[str, Future[Checked | None]] = {}
        self._waiting: list[tuple[Future[Checked | None], Callable[[], Checked | None]]] = []
        self.made = 0
        """Checks that no newer text overtook before they began."""

    def ask(self, uri: str, name: str, version: int, program: bytes) -> Future[Checked | None]:
        """The check of this text; None from it, or cancelled, if a newer one came too early."""
        number = self._texts[uri] = self._texts.get(uri, 0) + 1
        if uri in self._asked:
            self._asked[uri].cancel()

        def check() -> Checked | None:
            if self._texts.get(uri) != number:
                return None
            self.made += 1
            findings, unrecorded = self._check(name, program)
            return Checked(version, program, tuple(findings), tuple(unrecorded))

        asked = self._asked[uri] = Future()
        self._waiting.append((asked, check))
        self._worker.submit(self._make_next)
        return asked

    def _make_next(self) -> None:
        asked, check = self._waiting.pop()
        if not asked.set_running_or_notify_cancel():
            return
        try:
            asked.set_result(check())
        except Exception as error:
            asked.set_exception(error)

    def between(self, does: Callable[[], T]) -> Future[T]:
        """Something else that checks; never beside another check, which knows the same project."""
        return self._worker.submit(does)

    def newest(self, uri: str) -> Future[Checked | None] | None:
        return self._asked.get(uri)

    def forget(self, uri: str) -> None:
        if uri in self._asked:
            self._asked.pop(uri).cancel()

    def stop(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)
        for asked, _ in self._waiting:
            asked.cancel()
