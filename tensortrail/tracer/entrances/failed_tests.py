"""A failed test gets what was where under its traceback, which has no frames of ours."""

from __future__ import annotations

from typing import Any, Protocol

import pytest

from tensortrail.plurals import counted
from tensortrail.tracer.identity.unrecorded_frames import without_our_frames

MOST_READ = 50
"""Failures of a run: each explanation reads the trail."""
TITLE = "tensortrail: what was where"


class Recording(Protocol):
    def failed(self, test: str) -> None: ...

    def explained(self, error: BaseException, phase: str = "") -> str: ...

    def found_in(self, phase: str) -> str: ...


class FailedTests:
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._read = 0
        self._unread: set[str] = set()

    @property
    def trouble(self) -> list[str]:
        """The tests that failed after as many were explained as a session explains."""
        if not self._unread:
            return []
        more = counted(len(self._unread), "failed test")
        return [
            f"{more} not explained, as {MOST_READ} others are: run one alone for its explanation, "
            f"{min(self._unread)} for example"
        ]

    def explanation(self, report: pytest.TestReport, error: BaseException | None) -> str:
        """What the failure has to do with where tensors are; empty if nothing."""
        if report.outcome == "failed":
            self._recording.failed(report.nodeid)
        if error is None or not self._may_read(report):
            return ""
        text = self._recording.explained(error, report.nodeid)
        self._read += bool(text)  # the trail was not read if there is none
        return text

    def findings(self, report: pytest.TestReport) -> str:
        """What was found in a test that failed for a reason without a word about tensors."""
        if not self._may_read(report):
            return ""
        self._read += 1
        return self._recording.found_in(report.nodeid)

    def _may_read(self, report: pytest.TestReport) -> bool:
        failed = report.outcome == "failed"
        if failed and self._read >= MOST_READ:
            self._unread.add(report.nodeid)
        return failed and self._read < MOST_READ


def raised(item: pytest.Item, call: pytest.CallInfo[Any]) -> BaseException | None:
    """What the test raised, without frames of ours in its traceback."""
    of_unittest = vars(item).get("_excinfo")  # pytest takes it from there into the report
    found = of_unittest[0] if of_unittest else call.excinfo
    if found is None or not isinstance(found.value, Exception):
        return None
    without_our_frames(found.value)
    cleaned = pytest.ExceptionInfo.from_exception(found.value)
    if of_unittest:
        of_unittest[0] = cleaned
    else:
        call.excinfo = cleaned
    return cleaned.value


def add_section(report: pytest.TestReport, text: str) -> None:
    """Below the traceback, without the title that the text has for terminals."""
    if text:
        report.sections.append((TITLE, text.partition("\n")[2]))
