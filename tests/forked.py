"""Tests in several processes. They are forked after one process has collected all tests, so that
libraries are imported once.

`pytest -p tests.forked --processes 3` starts them. Each process takes the next file when it has
finished one, and sends its reports to the first process, which prints them."""

from __future__ import annotations

import atexit
import os
import signal
import struct
import sys
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from multiprocessing import connection
from typing import Any

import pytest

NUMBER = struct.Struct("i")
WITHOUT_THE_DRIVER = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""If it is set, torch counts GPUs without starting CUDA: where CUDA runs, forked processes cannot
use it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, help="how many run tests at a time")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--processes") > 1:
        os.environ.setdefault(WITHOUT_THE_DRIVER, "1")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    count = session.config.getoption("--processes")
    if count == 1 or session.config.option.collectonly or session.testsfailed:
        return None
    files = [list(group) for _, group in groupby(session.items, lambda item: item.path)]
    left = _pipe_of(len(files))
    processes = [_forked(session, files, left) for _ in range(count)]
    os.close(left)
    if terminal := session.config.pluginmanager.getplugin("terminalreporter"):
        terminal.showfspath = False  # tests of several files come by turns
    _show(session, {each.reports: each for each in processes})
    return True


def _pipe_of(count: int) -> int:
    """A pipe with the numbers of all files. A process that reads four bytes has the next file."""
    reader, writer = os.pipe()
    os.write(writer, b"".join(NUMBER.pack(number) for number in range(count)))
    os.close(writer)
    return reader


@dataclass
class _Process:
    pid: int
    reports: connection.Connection
    at: tuple[str, tuple[str, int | None, str]] = ("", ("", None, ""))
    """The test that it runs, and where it stands."""


def _forked(session: pytest.Session, files: list[list[pytest.Item]], left: int) -> _Process:
    reports, sender = connection.Pipe(duplex=False)
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        sender.close()
        return _Process(pid, reports)
    try:
        _leave_the_terminal(session.config, _Sender(session.config, sender))
        _run(session, files, left)
        sender.send(None)
        atexit._run_exitfuncs()
        os._exit(0)
    except BaseException:  # the session goes on in the other process only
        traceback.print_exc()
        os._exit(1)


def _leave_the_terminal(config: pytest.Config, sender: _Sender) -> None:
    manager = config.pluginmanager
    manager.unregister(name="terminalreporter")
    manager.register(sender)
    if capture := manager.getplugin("capturemanager"):  # all processes would share its files
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()


def _run(session: pytest.Session, files: list[list[pytest.Item]], left: int) -> None:
    for item, after in pairwise(_taken(files, left)):
        assert item is not None
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.shouldfail or session.shouldstop:
            break


def _taken(files: list[list[pytest.Item]], left: int) -> Iterator[pytest.Item | None]:
    """The tests of the files that this process takes, and None at the end."""
    while number := os.read(left, NUMBER.size):
        yield from files[NUMBER.unpack(number)[0]]
    yield None


class _Sender:
    """Sends what pytest reports in this process to the first one."""

    def __init__(self, config: pytest.Config, sender: connection.Connection) -> None:
        self._config, self._sender = config, sender

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._send("pytest_runtest_logstart", nodeid=nodeid, location=location)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        hook = self._config.hook.pytest_report_to_serializable
        self._send("pytest_runtest_logreport", report=hook(config=self._config, report=report))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._send("pytest_runtest_logfinish", nodeid=nodeid, location=location)

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        said = (str(warning_message.message), warning_message.category.__name__)
        place = (warning_message.filename, warning_message.lineno)
        where = {"when": when, "nodeid": nodeid, "location": location}
        self._send("pytest_warning_recorded", said=said, place=place, **where)

    def _send(self, hook: str, **given: Any) -> None:
        self._sender.send((hook, given))


def _show(session: pytest.Session, processes: dict[connection.Connection, _Process]) -> None:
    try:
        while processes:
            for reports in connection.wait(list(processes)):
                assert isinstance(reports, connection.Connection)
                if said := _received(reports):
                    _retold(session.config, processes[reports], *said)
                else:
                    _ended(session.config, processes.pop(reports))
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
    finally:
        for each in processes.values():
            os.kill(each.pid, signal.SIGTERM)


def _received(reports: connection.Connection) -> tuple[str, dict[str, Any]] | None:
    """One of pytest's hooks and what it was called with; None at the end, whether good or bad."""
    try:
        said: tuple[str, dict[str, Any]] | None = reports.recv()
    except EOFError:
        return None
    return said


def _retold(config: pytest.Config, process: _Process, hook: str, given: dict[str, Any]) -> None:
    if hook == "pytest_runtest_logstart":
        process.at = given["nodeid"], given["location"]
    if hook == "pytest_runtest_logreport":
        read = config.hook.pytest_report_from_serializable
        given = {"report": read(config=config, data=given["report"])}
    if hook == "pytest_warning_recorded":
        message, category = given.pop("said")
        kind = type(category, (Warning,), {})
        given["warning_message"] = warnings.WarningMessage(message, kind, *given.pop("place"))
        config.hook.pytest_warning_recorded.call_historic(kwargs=given)
    else:
        getattr(config.hook, hook)(**given)


def _ended(config: pytest.Config, process: _Process) -> None:
    status = os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])
    if status == 0:
        return
    nodeid, location = process.at
    said = f"the process ended with {status} here; the tests of the file that follow were not run"
    report = pytest.TestReport(nodeid, location, {}, "failed", said, "call")
    config.hook.pytest_runtest_logreport(report=report)
