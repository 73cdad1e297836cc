"""`pytest --rehearse cuda:2x24GiB`: tests that ask for GPUs, on simulated ones.

The devices are there before any file of tests is read, so that marks and skip conditions see them.
Each test begins with devices, an account of memory and random numbers of its own."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any

import pytest
import torch

from tensortrail.tracer.entrances.block import Run
from tensortrail.tracer.entrances.expected_failures import Expected
from tensortrail.tracer.entrances.rehearsed_summary import Summary, Told
from tensortrail.tracer.identity.unrecorded_frames import without_our_frames
from tensortrail.tracer.rehearsal import lacks
from tensortrail.tracer.rehearsal.lacking_errors import lack_behind
from tensortrail.tracer.rehearsal.left_behind import Watch
from tensortrail.tracer.rehearsal.other_programs import Followed

MOST_EXPLAINED = 50
"""Failures of a run: each explanation reads the trail."""
TITLE = "tensortrail: what was where"
WATCH: pytest.StashKey[Watch] = pytest.StashKey()


class RehearsedTests:
    def __init__(self, devices: str, directory: str | None, keep: bool, xfail: list[Expected]):
        self._temporary = None if keep else tempfile.mkdtemp(prefix="tensortrail-")
        chosen = self._temporary or directory
        self._run = Run(
            chosen, focus="", max_size="1GB", ops="", rehearse=devices, guard=False
        ).__enter__()
        self._followed = Followed()
        self._xfail = xfail
        self._random: Any = None
        self._explained = 0
        self._summary = Summary(devices, self._run.directory if keep else "")
        lacks.met.clear()

    # --- the session -----------------------------------------------------------------------
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            for expected in self._xfail:
                if expected.fits(item.nodeid):
                    item.add_marker(pytest.mark.xfail(reason=expected.reason, strict=False))

    def pytest_collection_finish(self) -> None:
        self._random = torch.default_generator.get_state()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        output = getattr(session.config, "workeroutput", None)
        self._summary.end(self._run)
        if output is not None:
            output["tensortrail"] = self._summary.findings
        self.end()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A process of xdist is done."""
        self._summary.add(getattr(node, "workeroutput", {}).get("tensortrail", []))

    def pytest_unconfigure(self) -> None:
        self.end()

    def end(self) -> None:
        self._followed.end()
        self._run.__exit__(None, None, None)
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._summary.report(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if hasattr(report, "tensortrail"):
            self._summary.report(report)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        self._summary.write(terminalreporter)

    # --- one test --------------------------------------------------------------------------
    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        torch.default_generator.set_state(self._random)
        with self._run.phase(item.nodeid):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Any:
        lacks.met.clear()
        watch = item.stash[WATCH] = Watch(self._run.simulation)
        try:
            return (yield)
        finally:
            watch.body_ended()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[Any]) -> Any:
        error = _error(item, call)
        report: pytest.TestReport = yield
        told: Told = {}
        found = lacks.taken() if call.when == "call" else []
        text = self._explanation(report, error)
        if text:
            told["error"] = f"{type(error).__name__}: {error}".splitlines()[0]
        reason = _lack(report, error, found, bool(text))
        if reason:
            told["lack"] = reason
            report.outcome = "skipped"
            report.longrepr = (str(item.path), (item.location[1] or 0) + 1, f"Skipped: {reason}")
        elif text:
            report.sections.append((TITLE, text.partition("\n")[2]))
        if call.when == "teardown" and (watch := item.stash.get(WATCH, None)) is not None:
            told["left"] = watch.left()
        report.__dict__["tensortrail"] = told
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Any:
        """A file that cannot be read without what a rehearsal lacks is skipped as a whole."""
        report: Any = yield
        excinfo = getattr(getattr(report, "call", None), "excinfo", None)
        if report.outcome == "failed" and excinfo is not None:
            reason = lack_behind(excinfo.value)
            if reason:
                report.outcome = "skipped"
                report.longrepr = (str(collector.path), 1, f"Skipped: rehearsal: {reason}")
                report.tensortrail = {"lack": reason}
        lacks.met.clear()
        return report

    def _explanation(self, report: pytest.TestReport, error: BaseException | None) -> str:
        """What was where, of a failure that has to do with devices."""
        if report.outcome != "failed" or not isinstance(error, Exception):
            return ""
        if self._explained >= MOST_EXPLAINED:
            return ""
        text = self._run.explained(error)
        self._explained += bool(text)
        return text


def _error(item: pytest.Item, call: pytest.CallInfo[Any]) -> BaseException | None:
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


def _lack(
    report: pytest.TestReport,
    error: BaseException | None,
    found: list[lacks.Lack],
    has_to_do_with_devices: bool,
) -> str:
    """Why the outcome says nothing about a GPU; empty if it does."""
    if hasattr(report, "wasxfail"):
        return ""
    failed = report.outcome == "failed"
    reason = lack_behind(error) if failed and error is not None else ""
    if not reason and failed and not has_to_do_with_devices and found:
        reason = found[0].what
    if not reason and not failed:
        # Raised and caught, or taken by the runner for a skip.
        reason = next((each.what for each in found if each.is_certain), "")
    return f"rehearsal: {reason}" if reason else ""


def directory_of(config: pytest.Config) -> str | None:
    """Each process of xdist has a folder of its own in the one that was asked for."""
    asked = config.known_args_namespace.tensortrail_directory
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    return os.path.join(asked, worker) if asked and worker else asked
