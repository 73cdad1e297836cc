"""What ended a run, as the frames told it, stands in every report of the run."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tensortrail.rules.timeline import Did
from tensortrail.tracer.exports import html, text
from tensortrail.tracer.exports.paste import paste
from tensortrail.tracer.reading.timeline import RunTimeline
from tests.tracer.exports.trails import Recording

FACTS = {"cause": "the item is None", "change": "leave it out"}


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, **facts: str) -> RunTimeline:
    recording = Recording(folder, monkeypatch)
    recording.did(Did.HOOK, at=1.0, op="TypeError", facts=facts)
    return recording.read()


def test_a_told_cause_is_in_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timeline = run(tmp_path, monkeypatch, **FACTS)
    shown = text.render(timeline)
    assert "What ended the run: TypeError at" in shown
    page = io.StringIO()
    html.write(timeline, (), page)
    for report in (shown, paste(timeline, ()), page.getvalue()):
        assert "The item is None." in report
        assert "Leave it out." in report


def test_without_one_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    timeline = run(tmp_path, monkeypatch, said="something else")
    assert "What ended the run" not in text.render(timeline)
