"""The server as clients of several editors meet it, with the capabilities that those announce."""

from __future__ import annotations

import asyncio
import sys
import warnings
from pathlib import Path

import pytest

pytest.importorskip("pytest_lsp")

from lsprotocol import types as lsp
from pytest_lsp import LspSpecificationWarning, client_capabilities, make_test_lsp_client

RISKY = "def f(t):\n    '𝄞'; return t.weight.device == 'meta'\n"
EDITORS = {"neovim@v0.11.0": 19, "visual_studio_code": 17, "emacs": 16}
"""With the column of the finding, which each counts in units of its own: UTF-8, -16 and -32."""


async def session(editor: str, folder: Path) -> tuple[lsp.Diagnostic, list[str], str]:
    """What a user of the editor sees of a risky line."""
    client = make_test_lsp_client()
    await client.start_io(sys.executable, "-m", "tensortrail", "server")
    roots = [lsp.WorkspaceFolder(folder.as_uri(), folder.name)]
    capabilities = client_capabilities(editor)
    await client.initialize_session(
        lsp.InitializeParams(capabilities=capabilities, workspace_folders=roots)
    )
    uri = (folder / "a.py").as_uri()
    document = lsp.TextDocumentIdentifier(uri)
    opened = lsp.TextDocumentItem(uri, "python", 1, RISKY)
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(opened))
    await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    (found,) = client.diagnostics[uri]
    asked = lsp.CodeActionParams(document, found.range, lsp.CodeActionContext([found]))
    actions = await client.text_document_code_action_async(asked) or ()
    hover = await client.text_document_hover_async(lsp.HoverParams(document, found.range.start))
    assert hover
    assert isinstance(hover.contents, lsp.MarkupContent)
    changed = lsp.VersionedTextDocumentIdentifier(uri=uri, version=2)
    whole = lsp.TextDocumentContentChangeWholeDocument("x = 1\n")
    client.text_document_did_change(lsp.DidChangeTextDocumentParams(changed, [whole]))
    await client.wait_for_notification(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    assert client.diagnostics[uri] == ()
    await client.shutdown_session()
    return found, [each.title for each in actions], hover.contents.value


@pytest.mark.parametrize("editor", EDITORS)
def test_an_editor_shows_the_finding_and_its_fix(editor: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", LspSpecificationWarning)
        found, actions, hover = asyncio.run(session(editor, tmp_path))
    assert (found.code, found.range.start.character) == ("DEV501", EDITORS[editor])
    assert actions[0] == "DEV501: compare the type (unsafe)"
    assert "DEV501" in hover
