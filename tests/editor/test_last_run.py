"""What the last run knows, beside the code: recorded by the real recorder, asked of the server."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pygls")
pytest.importorskip("torch")

from lsprotocol import types as lsp

from tensortrail.cli import main
from tensortrail.tracer.reading.timeline import open_run
from tests import warm
from tests.editor.client import Client, applied
from tests.editor.test_odd_requests import ask, change

PROGRAM = """\
import torch
from torch import nn

model = nn.Linear(8, 8).to("cuda")
prompt = torch.ones(4, 8)
for _ in range(3):
    x = torch.ones(4, 8)
    x = x.to("cuda")
    y = model(x).cpu()
model(prompt)


def never_called(t):
    return t.cpu()
"""
pytestmark = pytest.mark.complete
EVERYWHERE = lsp.Range(lsp.Position(0, 0), lsp.Position(20, 0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "train.py").write_text(PROGRAM)
    trace = ["-m", "tensortrail", "trace", "--rehearse", "cuda", "--quiet", "train.py"]
    assert warm.run(trace, folder).returncode == 1
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    client = Client(folder, settings={"inlayHints": True})
    yield client
    client.stop()


def lenses(client: Client, uri: str) -> dict[int, str]:
    params = lsp.CodeLensParams(lsp.TextDocumentIdentifier(uri))
    answer = client.ask(lsp.TEXT_DOCUMENT_CODE_LENS, params)
    return {each.range.start.line + 1: each.command.title for each in answer}


def hints(client: Client, uri: str) -> dict[int, str]:
    params = lsp.InlayHintParams(lsp.TextDocumentIdentifier(uri), EVERYWHERE)
    answer = client.ask(lsp.TEXT_DOCUMENT_INLAY_HINT, params)
    return {each.position.line + 1: each.label for each in answer}


def test_the_facts_stand_beside_the_lines(client: Client, folder: Path) -> None:
    uri = (folder / "train.py").as_uri()
    client.open(uri, PROGRAM)
    told = client.hover(uri, 7, 4)
    assert "`x` float32 4x8 moved cpu -> cuda:0 by Tensor.to (3x, 384 B); made train.py:7" in told
    assert lenses(client, uri) == {
        4: "last run: 288 B cpu -> cuda:0, 2x",
        8: "last run: 384 B cpu -> cuda:0, 3x",
        9: "last run: 384 B cuda:0 -> cpu, 3x",
    }
    assert hints(client, uri)[5] == "cpu float32 4x8"
    assert hints(client, uri)[8] == "cuda:0 float32 4x8"


def test_findings_of_the_run_are_diagnostics_with_their_fix(client: Client, folder: Path) -> None:
    uri = (folder / "train.py").as_uri()
    client.open(uri, PROGRAM)
    (found,) = [each for each in client.diagnostics(uri) if each.code == "DEV502"]
    assert found.message.startswith("in the run of 20")
    fix, *_ = client.actions(uri, found.range)
    assert fix.edit
    assert fix.edit.changes
    mended = applied(PROGRAM, fix.edit.changes[uri])
    assert 'prompt = torch.ones(4, 8, device="cuda:0")' in mended


def test_another_text_is_never_told_about(client: Client, folder: Path) -> None:
    uri = (folder / "train.py").as_uri()
    client.close(uri)
    client.open(uri, "import os\n" + PROGRAM)
    assert "DEV502" not in [each.code for each in client.diagnostics(uri)]
    assert client.hover(uri, 8, 4).endswith("it changed since the run.")
    assert (lenses(client, uri), hints(client, uri)) == ({}, {})
    client.replace(uri, PROGRAM)
    assert "DEV502" in [each.code for each in client.diagnostics(uri)]
    assert len(lenses(client, uri)) == 3
    settings = lsp.DidChangeConfigurationParams({"tensortrail": {"ignore": ["DEV502"]}})
    client.tell(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, settings)
    client.replace(uri, PROGRAM)
    assert "DEV502" not in [each.code for each in client.diagnostics(uri)]
    assert hints(client, uri) == {}, "off by default"


def test_functions_without_records_are_faded_where_asked_for(client: Client, folder: Path) -> None:
    uri = (folder / "train.py").as_uri()
    client.replace(uri, PROGRAM + "\n")
    settings = lsp.DidChangeConfigurationParams({"fadeUnrecorded": True})
    client.tell(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, settings)
    client.replace(uri, PROGRAM + "\n\n")
    assert not [each for each in client.diagnostics(uri) if each.tags], "of another text"
    client.replace(uri, PROGRAM)
    (faded,) = [each for each in client.diagnostics(uri) if each.tags]
    assert faded.tags == (lsp.DiagnosticTag.Unnecessary,)
    assert (faded.severity, faded.range.start.line) == (lsp.DiagnosticSeverity.Hint, 12)
    assert "never_called" in faded.message


def test_any_place_of_a_recorded_file(client: Client, folder: Path) -> None:
    chance, uri = random.Random(4), (folder / "train.py").as_uri()
    for _ in range(80):
        client.replace(uri, PROGRAM)
        ask(client, uri, chance)
        client.change(uri, change(chance))
        ask(client, uri, chance)
    client.replace(uri, PROGRAM)
    assert len(lenses(client, uri)) == 3
    assert client.messages == []


def test_a_damaged_run_is_no_trouble(folder: Path, tmp_path: Path) -> None:
    chance = random.Random(5)
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (trail,) = (tmp_path / ".tensortrail").glob("*/*.trail")
    whole, uri = trail.read_bytes(), (tmp_path / "train.py").as_uri()
    client = Client(tmp_path, settings={"inlayHints": True, "fadeUnrecorded": True})
    for number in range(12):
        damaged = bytearray(whole[: chance.randrange(len(whole))] if number % 3 else whole)
        for _ in range(number):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        trail.write_bytes(damaged)
        os.utime(trail, (1e9, 1e9 + number))  # of a run that is over
        client.open(uri, PROGRAM)
        ask(client, uri, chance)
        assert "TTR003" not in [each.code for each in client.diagnostics(uri)]
    shutil.rmtree(tmp_path / ".tensortrail")
    client.replace(uri, PROGRAM)
    ask(client, uri, chance)
    assert client.messages == []
    assert client.stop() == 0


def test_content_decides_and_not_the_time_of_the_last_change(folder: Path) -> None:
    """A checkout, an unpacked archive or an editor that writes the same bytes changes the time."""
    path = folder / "train.py"
    timeline, before = open_run(folder / ".tensortrail"), path.stat()
    os.utime(path)
    assert timeline.changed(str(path)) == ""
    path.write_text(PROGRAM.replace("8, 8", "8, 9"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert timeline.changed(str(path)) == "it changed since the run"
    path.write_text(PROGRAM)
    assert timeline.changed(str(path)) == ""


def test_the_same_facts_as_json(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert main(["report", "--format", "lens"]) == 0
    told = json.loads(capsys.readouterr().out)
    (file,) = told["files"]
    assert (file["file"], file["changed"]) == (os.path.realpath("train.py"), None)
    (fact,) = next(each["facts"] for each in file["lines"] if each["line"] == 8)
    assert fact.items() >= {
        "did": "move", "count": 3, "bytes": 384, "from": "cpu", "device": "cuda:0",
        "tensor": "x", "shape": [4, 8], "made": "train.py:7", "moves": 1,
    }.items()  # fmt: skip
    assert [each["code"] for each in told["findings"]] == ["DEV502"]
