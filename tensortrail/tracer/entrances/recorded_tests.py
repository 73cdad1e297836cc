"""`pytest --tensortrail`: records the whole test session, outcomes as without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tensortrail.tracer.recording.session import Session


class RecordedTests:
    def __init__(self, directory: str | None) -> None:
        self._directory = directory
        self._session: Session | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        from tensortrail.tracer.recording import session as recording

        if recording.running() is not None:
            return  # a test of ours, or a wrapped pytest
        try:
            self._session = recording.begin(self._directory, argv=["pytest"])
        except OSError as error:
            raise pytest.UsageError(f"--tensortrail: {error}") from error

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        if self._session is None:
            return (yield)
        with self._session.recorder.phase(item.nodeid):
            return (yield)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._session is not None:
            self._session.stop()

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._session is None:
            return
        writer = self._session.recorder.writer
        terminalreporter.write_line(
            f"tensortrail: {writer.events} events in {self._session.directory}"
        )
        if trouble := self._session.trouble:
            terminalreporter.write_line(f"tensortrail: {trouble}")
