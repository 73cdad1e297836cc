"""What a session of rehearsed tests comes to: failures that are explained apart from the others,
what was skipped for want of a GPU, what tests left behind, and the findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, TypedDict

import pytest

from tensortrail.inert import inert
from tensortrail.tracer.entrances.found_in_tests import MOST_LINES, FoundInTests
from tensortrail.tracer.exports.shortened import first_of

LONGEST = 200
NOT_KEPT = "no trail is kept: with --tensortrail, `tensortrail why` answers about a failed test"


class Told(TypedDict, total=False):
    """What a report carries, also between processes."""

    error: str
    """An error that is explained."""
    lack: str
    left: list[str]
    stand_ins: list[str]
    """What stood in for something of a GPU's in a test that passed."""


class Summary:
    def __init__(self, devices: str, check: bool) -> None:
        self._devices = devices
        self._check = check
        self._failed: list[tuple[str, str]] = []
        self._others: list[str] = []
        self._lacks: Counter[str] = Counter()
        self._stand_ins: Counter[str] = Counter()
        self._left: list[tuple[str, str]] = []
        self.found = FoundInTests()

    def report(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        told: Told = vars(report).get("tensortrail", {})
        if told.get("lack"):
            self.lacked(told["lack"])
        elif report.failed and told.get("error"):
            self._failed.append((report.nodeid, told["error"]))
        elif report.failed:
            self._others.append(report.nodeid)
        self._stand_ins.update(told.get("stand_ins", ()))
        self._left += [(report.nodeid, each) for each in told.get("left", ())]

    def lacked(self, reason: str) -> None:
        self._lacks[reason.removeprefix("rehearsal: ")] += 1

    def write(self, reporter: Any) -> None:
        reporter.write_sep("=", f"rehearsed on {self._devices}")
        for line in self._lines():
            reporter.write_line(inert(line))
        self.found.write(reporter, self._check)

    def _lines(self) -> Iterator[str]:
        if self._failed:
            yield f"failed, and explained above: {len(self._failed)}"
            yield from _shortened([f"{test}  {error}" for test, error in self._failed])
        if self._others:
            yield f"failed, and not explained: {len(self._others)}"
            yield from _shortened(self._others)
        if (self._failed or self._others) and not self.found.directory:
            yield NOT_KEPT
        if self._lacks:
            yield f"skipped, because a rehearsal lacks it: {sum(self._lacks.values())}"
            yield from _shortened(
                [f"{count} x {what}" for what, count in self._lacks.most_common()]
            )
        if self._stand_ins:
            yield "passed, which proves nothing about what was replaced by a stand-in:"
            yield from _shortened(
                [f"{count} x {what}" for what, count in self._stand_ins.most_common()]
            )
        if self._left:
            yield f"changed by tests, and restored: {len(self._left)}"
            yield from _shortened([f"{test}  {what}" for test, what in self._left])
        if self.found.lines:
            yield f"findings: {len(self.found.lines)}"


def _shortened(lines: Sequence[str]) -> Iterator[str]:
    cut = [line if len(line) <= LONGEST else line[: LONGEST - 3] + "..." for line in lines]
    yield from first_of(cut, MOST_LINES)
