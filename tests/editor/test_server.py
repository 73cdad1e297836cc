"""The language server as an editor meets it: a process, spoken to over its pipes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pygls")

from lsprotocol import types as lsp

from tensortrail.cli import main
from tensortrail.cli.server import requested
from tensortrail.editor.answers import made
from tests.editor.client import Client, applied

RISKY = "def f(t):\n    '𝄞'; return t.weight.device == 'meta'\n"
MENDED = RISKY.replace(".device", ".device.type")
UNUSED = "x = 1  # tensortrail: ignore[DEV501]\n"
TRAIL = """\
def place(weight, device):
    if weight.is_meta:
        return weight.to(device)
    return weight
"""
NOWHERE = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 0))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "strict").mkdir()
    (folder / "strict" / "pyproject.toml").write_text('[tool.tensortrail]\nselect = ["OFF"]\n')
    (folder / "old").mkdir()
    (folder / "old" / "pyproject.toml").write_text(
        '[tool.tensortrail]\nbaseline = "known.json"\nexclude = ["generated"]\n'
    )
    (folder / "old" / "a.py").write_text(RISKY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder / "old")
        assert main(["check", "--write-baseline"]) == 0
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    client = Client(folder / "strict", folder / "old", folder)
    yield client
    assert client.stop() == 0


def codes(found: object) -> list[object]:
    assert isinstance(found, (list, tuple))
    return [each.code for each in found]


def test_findings_come_and_go_while_people_type(client: Client, folder: Path) -> None:
    uri = (folder / "a.py").as_uri()
    client.open(uri, RISKY)
    (found,) = client.diagnostics(uri)
    assert (found.code, found.source) == ("DEV501", "tensortrail")
    assert found.severity is lsp.DiagnosticSeverity.Warning
    assert found.range == lsp.Range(lsp.Position(1, 17), lsp.Position(1, 42)), "in UTF-16"
    device = lsp.Range(lsp.Position(1, 26), lsp.Position(1, 32))
    client.change(uri, lsp.TextDocumentContentChangePartial(device, "device.type"))
    assert client.diagnostics(uri) == ()
    client.replace(uri, RISKY + "def (")
    assert codes(client.diagnostics(uri)) == ["TTR001"]
    client.replace(uri, RISKY)
    assert codes(client.diagnostics(uri)) == ["DEV501"]
    client.replace(uri, "\ufeff" + RISKY)
    assert codes(client.diagnostics(uri)) == ["DEV501"], "some clients leave the mark in the text"
    client.close(uri)
    client.open(uri, "x = 1\n")
    assert client.diagnostics(uri) == ()


def test_a_form_feed_ends_no_line(client: Client, folder: Path) -> None:
    uri = (folder / "feed.py").as_uri()
    client.open(uri, "x = 1  # \x0c\n" + RISKY)
    device = lsp.Range(lsp.Position(2, 26), lsp.Position(2, 32))
    client.change(uri, lsp.TextDocumentContentChangePartial(device, "device.type"))
    assert client.diagnostics(uri) == ()


def test_the_trail_is_related_information(client: Client, folder: Path) -> None:
    uri = (folder / "trail.py").as_uri()
    client.open(uri, TRAIL)
    (found,) = client.diagnostics(uri)
    assert found.related_information
    step = found.related_information[0]
    assert (step.location.uri, step.location.range.start.line) == (uri, 1)
    assert step.message == "the condition says so"


def test_quick_fixes_tell_safe_from_unsafe(client: Client, folder: Path) -> None:
    uri = (folder / "fix.py").as_uri()
    client.open(uri, RISKY)
    (found,) = client.diagnostics(uri)
    unsafe, ignore = client.actions(uri, found.range)
    assert (unsafe.title, unsafe.is_preferred) == ("DEV501: compare the type (unsafe)", False)
    assert ignore.title == "DEV501: ignore it here, with a reason"
    assert unsafe.edit
    assert ignore.edit
    assert unsafe.edit.changes
    assert ignore.edit.changes
    assert applied(RISKY, unsafe.edit.changes[uri]) == MENDED
    silenced = applied(RISKY, ignore.edit.changes[uri])
    assert silenced.endswith("'meta'  # tensortrail: ignore[DEV501] reason: \n")
    client.replace(uri, silenced)
    assert client.diagnostics(uri) == ()
    assert client.actions(uri, NOWHERE) == ()


def test_all_safe_fixes_at_once(client: Client, folder: Path) -> None:
    uri = (folder / "all.py").as_uri()
    text = UNUSED + RISKY + UNUSED
    client.open(uri, text)
    first, *_ = client.diagnostics(uri)
    assert first.tags == (lsp.DiagnosticTag.Unnecessary,)
    (safe,) = client.actions(uri, first.range)
    assert safe.is_preferred
    (action,) = client.actions(uri, NOWHERE, lsp.CodeActionKind.SourceFixAll)
    client.replace(uri, UNUSED)
    (one,) = client.actions(uri, NOWHERE, lsp.CodeActionKind.SourceFixAll)
    assert one.title == "tensortrail: apply 1 safe fix"
    assert (action.title, action.kind) == (
        "tensortrail: apply 2 safe fixes",
        "source.fixAll.tensortrail",
    )
    assert action.edit
    assert action.edit.changes
    assert applied(text, action.edit.changes[uri]) == f"x = 1\n{RISKY}x = 1\n"
    assert not client.actions(uri, first.range, lsp.CodeActionKind.Refactor)


def test_hovering_tells_the_story_of_the_rule(client: Client, folder: Path) -> None:
    uri = (folder / "hover.py").as_uri()
    client.open(uri, TRAIL)
    (found,) = client.diagnostics(uri)
    text = client.hover(uri, found.range.start.line, found.range.start.character)
    assert text.startswith(f"**{found.code} ")
    assert "1. hover.py:2: the condition says so" in text
    assert "*Why is this bad?*" in text
    assert client.hover(uri, 0, 0) == ""


def test_each_root_has_its_configuration(client: Client, folder: Path) -> None:
    for name, expected in (
        ("strict/a.py", []),
        ("old/a.py", []),
        ("old/b.py", ["DEV501"]),
        ("old/generated/c.py", []),
        ("c.py", ["DEV501"]),
    ):
        uri = (folder / name).as_uri()
        client.open(uri, RISKY)
        assert codes(client.diagnostics(uri)) == expected, name
    uri = (folder / "old" / "a.py").as_uri()
    client.replace(uri, "import os\n" + RISKY)
    assert client.diagnostics(uri) == (), "a line that moved is still in the baseline"
    client.replace(uri, RISKY + RISKY.replace("def f", "def g"))
    assert codes(client.diagnostics(uri)) == ["DEV501"]


def test_a_wrong_configuration_is_said_and_its_mending_noticed(
    client: Client, folder: Path
) -> None:
    inner = folder / "wrong"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[tool.tensortrail]\nselekt = []\n")
    uri = (inner / "a.py").as_uri()
    client.open(uri, RISKY)
    assert client.diagnostics(uri) == ()
    assert any("no key 'selekt'" in each for each in client.messages)
    (inner / "pyproject.toml").write_text("[tool.tensortrail]\nselect = ['DEV']\n")
    client.replace(uri, RISKY)
    assert codes(client.diagnostics(uri)) == ["DEV501"]


def test_the_newest_text_wins_and_requests_can_be_cancelled(client: Client, folder: Path) -> None:
    uri = (folder / "fast.py").as_uri()
    client.open(uri, "x = 1\n")
    for number in range(30):
        client.replace(uri, RISKY * (number % 3) + f"x = {number}\n")
    where = lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(1, 20))
    client.ask_and_cancel(lsp.TEXT_DOCUMENT_HOVER, where)
    assert codes(client.diagnostics(uri)) == ["DEV501", "DEV501"]
    assert client.published[uri].version == 31


def test_other_languages_and_unsaved_files(client: Client, folder: Path) -> None:
    client.open("untitled:Untitled-1", RISKY)
    assert codes(client.diagnostics("untitled:Untitled-1")) == ["DEV501"]
    other = (folder / "a.md").as_uri()
    client.open(other, RISKY, "markdown")
    assert client.actions("file:///never/opened.py", NOWHERE) == ()
    assert other not in client.published


def cell(uri: str, text: str) -> tuple[lsp.NotebookCell, lsp.TextDocumentItem]:
    made = lsp.NotebookCell(lsp.NotebookCellKind.Code, uri)
    return made, lsp.TextDocumentItem(uri, "python", 1, text)


def test_notebooks_are_one_program(client: Client, folder: Path) -> None:
    uri = (folder / "nb.ipynb").as_uri()
    first, second, third = (f"vscode-notebook-cell:{folder}/nb.ipynb#{n}" for n in range(3))
    cells = [
        cell(first, "%matplotlib inline\nimport torch\nx = torch.ones(2, device='cuda')"),
        cell(second, "!ls\ny = x.numpy()"),
    ]
    notebook = lsp.NotebookDocument(uri, "jupyter-notebook", 1, [each for each, _ in cells])
    client.tell(
        lsp.NOTEBOOK_DOCUMENT_DID_OPEN,
        lsp.DidOpenNotebookDocumentParams(notebook, [each for _, each in cells]),
    )
    assert client.next_about(first) == ()
    (found,) = client.next_about(second)
    assert (found.code, found.range.start.line) == ("DEV503", 1)
    assert "DEV503" in client.hover(second, 1, found.range.start.character)
    fix, ignore = client.actions(second, found.range)
    assert fix.edit
    assert fix.edit.changes
    assert ignore.edit
    mended = applied("!ls\ny = x.numpy()", fix.edit.changes[second])
    assert mended == "!ls\ny = x.cpu().numpy()"
    added, document = cell(third, "z = x.numpy()")
    structure = lsp.NotebookDocumentCellChangeStructure(
        lsp.NotebookCellArrayChange(2, 0, [added]), did_open=[document]
    )
    content = lsp.NotebookDocumentCellContentChanges(
        lsp.VersionedTextDocumentIdentifier(2, second),
        [lsp.TextDocumentContentChangeWholeDocument(mended)],
    )
    client.tell(
        lsp.NOTEBOOK_DOCUMENT_DID_CHANGE,
        lsp.DidChangeNotebookDocumentParams(
            lsp.VersionedNotebookDocumentIdentifier(2, uri),
            lsp.NotebookDocumentChangeEvent(
                cells=lsp.NotebookDocumentCellChanges(structure=structure, text_content=[content])
            ),
        ),
    )
    assert codes(client.next_about(third)) == ["DEV503"]
    assert client.next_about(second) == ()
    structure = lsp.NotebookDocumentCellChangeStructure(
        lsp.NotebookCellArrayChange(2, 1, []), did_close=[lsp.TextDocumentIdentifier(third)]
    )
    client.tell(
        lsp.NOTEBOOK_DOCUMENT_DID_CHANGE,
        lsp.DidChangeNotebookDocumentParams(
            lsp.VersionedNotebookDocumentIdentifier(3, uri),
            lsp.NotebookDocumentChangeEvent(
                cells=lsp.NotebookDocumentCellChanges(structure=structure)
            ),
        ),
    )
    assert client.next_about(third) == (), "a cell that is gone leaves nothing in the list"


def test_settings_of_the_client(client: Client, folder: Path) -> None:
    uri = (folder / "settings.py").as_uri()
    client.open(uri, RISKY)
    assert codes(client.diagnostics(uri)) == ["DEV501"]
    given: tuple[tuple[dict[str, Any] | None, list[str]], ...] = (
        ({"tensortrail": {"ignore": ["DEV501"]}}, []),
        ({}, []),  # Emacs sends it after the start: what was set stays
        (None, []),
        ({"python": {"select": ["DEV501"]}}, []),
        ({"tensortrail": {}}, ["DEV501"]),
        ({"ignore": ["DEV501"]}, []),
        ({"tensortrail": None}, ["DEV501"]),
    )
    for settings, expected in given:
        client.tell(
            lsp.WORKSPACE_DID_CHANGE_CONFIGURATION, lsp.DidChangeConfigurationParams(settings)
        )
        client.replace(uri, RISKY)
        assert codes(client.diagnostics(uri)) == expected, settings
    client.tell(
        lsp.WORKSPACE_DID_CHANGE_CONFIGURATION,
        lsp.DidChangeConfigurationParams({"tensortrail": {"select": 3}}),
    )
    client.replace(uri, RISKY)
    assert client.diagnostics(uri) == ()
    assert any("tensortrail.select must be a list of texts" in each for each in client.messages)
    client.tell(
        lsp.WORKSPACE_DID_CHANGE_CONFIGURATION,
        lsp.DidChangeConfigurationParams({"tensortrail": {}}),
    )


def test_a_check_that_fails_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It left the findings of an earlier text beside this one."""
    server = made(requested, "1")
    known: dict[str, None] = {}
    monkeypatch.setattr(server.runs, "of", lambda name, program: known[name])
    (found,), _ = server._checked("/a.py", RISKY.encode())
    assert (found.code, found.site.line) == ("TTR003", 1)
    assert found.message == "the check failed: KeyError: '/a.py'"
    assert "Traceback" in capsys.readouterr().err


def test_it_publishes_nothing_after_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that ended late wrote to the closed pipe, and pygls reported that error to it."""
    server = made(requested, "1")
    published: list[lsp.PublishDiagnosticsParams] = []
    monkeypatch.setattr(server, "text_document_publish_diagnostics", published.append)

    async def session(ends: bool) -> None:
        server._loop = asyncio.get_running_loop()
        item = lsp.TextDocumentItem("file:///a.py", "python", 1, RISKY)
        server.check(server.documents.open(item))
        asked = server.checks.newest(item.uri)
        assert asked is not None
        assert asked.result()
        server.end() if ends else None
        await asyncio.sleep(0)

    asyncio.run(session(ends=False))
    assert len(published) == 1
    asyncio.run(session(ends=True))
    assert len(published) == 1
