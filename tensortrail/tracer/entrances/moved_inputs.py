"""`pytest --rehearse cuda --move-inputs`: what a CPU test calls runs on a simulated device.

A failure in the project's code is one of the project. One in the test's own lines says nothing of
it, nor one of a tensor that the test hands over otherwise: it is skipped with the reason."""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from tensortrail.inert import inert
from tensortrail.plurals import counted
from tensortrail.tracer.entrances.failed_tests import TITLE as EXPLAINED
from tensortrail.tracer.exports.shortened import first_of
from tensortrail.tracer.rehearsal.moved_calls import BELOW, MovedCalls
from tensortrail.tracer.rehearsal.spread_calls import SpreadCalls

TITLE = "tensortrail: moved inputs"
KEPT = re.compile(r"^ +\S+ +cpu +\S+ \S+(?: +([^\s.]+))?\n +made at (\S+?):(\d+)", re.M)
"""In an explanation: a tensor of the CPU that belongs to no module, and where it was made."""
OF_PLACES = re.compile(r"device|cuda|\bcpu\b", re.I)
SHOWN = re.compile(r", device='cuda:\d+'")
"""In the text of a tensor."""
FOLDERS = {"tests", "test", "testing"}
MOST_LINES = 20
MOST_CALLS = 3


class MovedInputs:
    def __init__(self, config: pytest.Config, spread: bool = False) -> None:
        self._root = config.rootpath
        self._patterns: list[str] = config.getini("python_files")
        self._is_test = functools.cache(self._looks_like_a_test)
        self._spread = SpreadCalls(self._blamed) if spread else None
        self._moved = MovedCalls(self._is_test, self._spread)
        self._failed: list[str] = []
        self._own: list[str] = []
        self._alone: Counter[str] = Counter()
        self._calls: list[int] = []
        self._tried = 0
        self._unlike: list[str] = []
        self._left_out: Counter[str] = Counter()

    def _looks_like_a_test(self, file: str) -> bool:
        path = Path(file)
        if not path.is_relative_to(self._root) or "site-packages" in path.parts:
            return False
        named = any(fnmatch(path.name, each) for each in [*self._patterns, "conftest.py"])
        return named or bool(FOLDERS & set(path.relative_to(self._root).parts[:-1]))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        self._moved.begin()
        try:
            return (yield)
        finally:
            self._moved.end()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Any:
        report: pytest.TestReport = yield
        if call.when != "call":
            return report
        told = {
            "calls": len(self._moved.calls),
            "alone": self._moved.left_alone,
            "own": "",
            **self._told_of_spread(),
        }
        if report.failed and self._moved.calls and call.excinfo is not None:
            explained = dict(report.sections).get(EXPLAINED, "")
            told["own"] = self._own_doing(call.excinfo.value) or self._kept(explained)
            if told["own"]:
                report.outcome = "skipped"
                reason = f"Skipped: moved inputs: {told['own']}"
                report.longrepr = (str(item.path), (item.location[1] or 0) + 1, reason)
            else:
                calls = "\n".join(map(str, self._moved.calls[-MOST_CALLS:]))
                report.sections.append((TITLE, f"the last calls that were moved:\n{calls}"))
        report.__dict__["tensortrail_moved"] = told
        return report

    def _told_of_spread(self) -> dict[str, Any]:
        each = self._spread
        if each is None:
            return {}
        return {"tried": each.tried, "unlike": each.found, "left_out": each.left_out}

    def _blamed(self, error: BaseException) -> str:
        """The project's line that an error comes from, before what it says."""
        file, line = self._raised_at(error)
        return f"{os.path.relpath(file, self._root)}:{line}: " if file else ""

    def _own_doing(self, error: BaseException) -> str:
        """The line of the test that cannot do with what was moved; empty if it is not one."""
        file, line = self._raised_at(error)
        if not self._is_test(file):
            return ""
        if isinstance(error, AssertionError) and not OF_PLACES.search(SHOWN.sub("", str(error))):
            return ""  # other values
        said = inert(str(error).partition("\n")[0][:100])
        return f"the test itself, {os.path.basename(file)}:{line}: {type(error).__name__}: {said}"

    def _kept(self, explained: str) -> str:
        """What the test made and handed to something else than a module that it calls."""
        for name, file, line in KEPT.findall(explained):
            if self._is_test(str(self._root / file)):
                made = f"{os.path.basename(file)}:{line}"
                return f"the test hands over {name or 'a tensor'} of the CPU itself, made at {made}"
        return ""

    def _raised_at(self, error: BaseException) -> tuple[str, int]:
        """The innermost line that is none of torch's, numpy's or ours."""
        found = ("", 0)
        link = error.__traceback__
        while link is not None:
            file = link.tb_frame.f_code.co_filename
            if not file.startswith(BELOW[:2]) and BELOW[2] not in file and "unittest" not in file:
                found = (file, link.tb_lineno)
            link = link.tb_next
        return found

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told = vars(report).get("tensortrail_moved")
        if told is None:
            return
        self._calls.append(told["calls"])
        self._tried += told.get("tried", 0)
        self._unlike += told.get("unlike", ())
        self._left_out.update(told.get("left_out", ()))
        if told["alone"]:
            self._alone[told["alone"]] += 1
        if told["own"]:
            self._own.append(f"{report.nodeid}  {told['own']}")
        elif report.failed and told["calls"]:
            self._failed.append(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.write_sep("=", "moved inputs")
        for line in self._lines():
            terminalreporter.write_line(inert(line))

    def _lines(self) -> Iterator[str]:
        moved = sum(map(bool, self._calls))
        calls = counted(sum(self._calls), "call")
        yield f"moved: {calls} of modules in {moved} of {counted(len(self._calls), 'test')}"
        alone = [f"{count} x {why}" for why, count in self._alone.items()]
        for title, lines, count in (
            ("failed with moved inputs", self._failed, len(self._failed)),
            ("skipped, caused by the test itself", self._own, len(self._own)),
            ("unchanged", alone, sum(self._alone.values())),
        ):
            if lines:
                yield f"{title}: {count}"
                yield from first_of(lines, MOST_LINES)
        if self._spread is not None:
            yield from self._lines_of_spread()

    def _lines_of_spread(self) -> Iterator[str]:
        tried = counted(self._tried, "module")
        yield f"spread over two devices at their blocks, and offloaded: {tried}"
        if self._unlike:
            yield f"raise or return other values than on one device: {len(self._unlike)}"
            yield from first_of(self._unlike, MOST_LINES)
        if self._left_out:
            yield f"not spread: {sum(self._left_out.values())}"
            yield from (f"  {count} x {why}" for why, count in self._left_out.most_common())
