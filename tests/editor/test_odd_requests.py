"""What no polite client sends: odd positions, texts, documents and roots. Nothing crashes, no
request fails, and no error pops up."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsprotocol import types as lsp

from tests.editor.client import Client

RISKY = "def f(t):\n    '𝄞'; return t.weight.device == 'meta'\n"
TEXTS = (
    "",
    "\n",
    "\ufeff" + RISKY,
    RISKY.replace("\n", "\r\n"),
    RISKY.replace("\n", "\r"),
    RISKY + "def g(x,\n  if",
    RISKY + "x = '''never ended",
    RISKY + "x = \ud800'\udfff'\n",
    "# -*- coding: latin-1 -*-\n" + RISKY,
    "# coding: no-such-thing\n" + RISKY,
    "# coding: utf-16\n" + RISKY,
    RISKY + "\x00\n",
    "x = 1\x0c\x1e\u2028\n" + RISKY,
    "(" * 300,
    "-" * 20_000 + "1",
    "x = " + "[" * 90 + "]" * 90 + "\n" + RISKY,
    "a" * 100_000,
    "if 1:\n\tx\n        y\n" + RISKY,
    "async def f():\n  await x\n\n\n\\",
    "f'{x!r:{y}' f'''{\n",
    "import torch\nx = torch.ones(2, device='cuda')\nx.\n",
)
NUMBERS = (0, 1, 2, 17, 18, 19, 42, 43, 10_000, 2**31 - 1)
NAMES = ("a.py", "b.py", "ä 𝄞 #%.py", "deep/er/c.py", "generated/d.py")
ODD = (
    "", "a", "file:", "file:///", "file:///%FF%FE.py", "file://server/share/x.py", "untitled:",
    "untitled:Untitled-1", "git:/a.py?{%22ref%22:%22%22}", "vscode-notebook-cell:/nb.ipynb#W0",
    "file:///C%3A/x.py", "file:///%00.py", "http://[::1/x.py", "file://[::1/x.py",
    "file:///" + "x" * 5000 + ".py",
)  # fmt: skip
ASKED = 400


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    settings = {"inlayHints": True, "fadeUnrecorded": True}
    client = Client(tmp_path, settings=settings, cwd=tmp_path)  # as most editors start one
    yield client
    assert client.stop() == 0
    assert set(client.messages) == set()


def where(chance: random.Random) -> lsp.Range:
    start, end = (lsp.Position(chance.choice(NUMBERS), chance.choice(NUMBERS)) for _ in "12")
    return lsp.Range(start, end)


def ask(client: Client, uri: str, chance: random.Random) -> None:
    """Each request there is an answer to; one that fails raises here."""
    document, asked = lsp.TextDocumentIdentifier(uri), where(chance)
    only = chance.choice((None, [], [lsp.CodeActionKind.Source], [lsp.CodeActionKind.QuickFix]))
    context = lsp.CodeActionContext([], only=only)
    for method, params in (
        (lsp.TEXT_DOCUMENT_HOVER, lsp.HoverParams(document, asked.start)),
        (lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionParams(document, asked, context)),
        (lsp.TEXT_DOCUMENT_CODE_LENS, lsp.CodeLensParams(document)),
        (lsp.TEXT_DOCUMENT_INLAY_HINT, lsp.InlayHintParams(document, asked)),
    ):
        client.ask(method, params)


def change(chance: random.Random) -> lsp.TextDocumentContentChangeEvent:
    text = chance.choice(TEXTS)
    if chance.random() < 0.5:
        return lsp.TextDocumentContentChangeWholeDocument(text)
    return lsp.TextDocumentContentChangePartial(where(chance), text[:30])


@pytest.mark.complete
def test_any_request_at_any_place(client: Client, tmp_path: Path) -> None:
    chance = random.Random(1)
    uris = [(tmp_path / each).as_uri() for each in NAMES] + list(ODD)
    for _ in range(ASKED):
        uri = chance.choice(uris)
        what = chance.random()
        if what < 0.4 or uri not in client.versions:
            client.open(uri, chance.choice(TEXTS))
        elif what < 0.7:
            client.change(uri, change(chance), change(chance))
        elif what < 0.8:
            client.close(uri)
        ask(client, uri, chance)


def cell(uri: str, text: str, language: str = "python") -> lsp.TextDocumentItem:
    return lsp.TextDocumentItem(uri, language, 1, text)


@pytest.mark.complete
def test_notebooks_that_do_not_fit_together(client: Client, tmp_path: Path) -> None:
    chance = random.Random(2)
    uri = (tmp_path / "nb.ipynb").as_uri()
    cells = [f"vscode-notebook-cell:{tmp_path}/nb.ipynb#{n}" for n in range(6)]
    for number in range(ASKED // 2):
        some = chance.sample(cells, chance.randrange(5))
        listed = [lsp.NotebookCell(chance.choice(tuple(lsp.NotebookCellKind)), c) for c in some]
        texts = [cell(each, chance.choice(TEXTS), chance.choice(("python", "r"))) for each in some]
        if chance.random() < 0.2 or not number:
            notebook = lsp.NotebookDocument(uri, "jupyter-notebook", number, listed)
            client.tell(
                lsp.NOTEBOOK_DOCUMENT_DID_OPEN,
                lsp.DidOpenNotebookDocumentParams(notebook, texts[: chance.randrange(6)]),
            )
        else:
            array = lsp.NotebookCellArrayChange(chance.randrange(9), chance.randrange(9), listed)
            closed = [lsp.TextDocumentIdentifier(chance.choice(cells))]
            content = lsp.NotebookDocumentCellContentChanges(
                lsp.VersionedTextDocumentIdentifier(number, chance.choice(cells)),
                [change(chance)],
            )
            changes = lsp.NotebookDocumentCellChanges(
                lsp.NotebookDocumentCellChangeStructure(array, texts, closed), None, [content]
            )
            client.tell(
                lsp.NOTEBOOK_DOCUMENT_DID_CHANGE,
                lsp.DidChangeNotebookDocumentParams(
                    lsp.VersionedNotebookDocumentIdentifier(number, uri),
                    lsp.NotebookDocumentChangeEvent(cells=changes),
                ),
            )
        ask(client, chance.choice([uri, *cells]), chance)


@pytest.mark.complete
def test_roots_that_move_and_vanish(client: Client, tmp_path: Path) -> None:
    chance = random.Random(3)
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    (home / "pyproject.toml").write_text("[tool.tensortrail]\nselect = ['DEV']\n")
    uri = (home / "a.py").as_uri()
    client.open(uri, RISKY)
    assert [each.code for each in client.diagnostics(uri)] == ["DEV501"]
    home.rename(away)
    ask(client, uri, chance)
    client.replace(uri, RISKY + "\n")
    assert [each.code for each in client.diagnostics(uri)] == ["DEV501"]
    moved = (away / "a.py").as_uri()
    client.open(moved, RISKY)
    assert [each.code for each in client.diagnostics(moved)] == ["DEV501"]
    folders = [lsp.WorkspaceFolder(each.as_uri(), each.name) for each in (away, home)]
    event = lsp.WorkspaceFoldersChangeEvent(folders[:1], folders[1:])
    client.tell(
        lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, lsp.DidChangeWorkspaceFoldersParams(event)
    )
    for each in (home, away, tmp_path):  # the last is where the server works
        shutil.rmtree(each, ignore_errors=True)
        for document in (uri, moved):
            client.replace(document, RISKY)
            assert [each.code for each in client.diagnostics(document)] == ["DEV501"]
            ask(client, document, chance)
    saved = lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(uri))
    client.tell(lsp.TEXT_DOCUMENT_DID_SAVE, saved)
    client.open("untitled:Untitled-1", RISKY)
    assert [each.code for each in client.diagnostics("untitled:Untitled-1")] == ["DEV501"]
