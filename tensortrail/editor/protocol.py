"""The protocol as pygls speaks it, but for texts: our own documents take those."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from lsprotocol import types as lsp
from pygls.protocol import LanguageServerProtocol, lsp_method

Handled = Iterator[tuple[Callable[..., Any], tuple[Any, ...], None]]


class Protocol(LanguageServerProtocol):
    """Texts stay out of the workspace of pygls, which refuses some addresses, ends lines at form
    feeds too, and cuts the positions of a change, in place, where a line of its own ends."""

    @lsp_method(lsp.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: lsp.DidOpenTextDocumentParams) -> Handled:
        yield from self._handled(lsp.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: lsp.DidCloseTextDocumentParams) -> Handled:
        yield from self._handled(lsp.TEXT_DOCUMENT_DID_CLOSE, params)

    @lsp_method(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: lsp.DidOpenNotebookDocumentParams) -> Handled:
        yield from self._handled(lsp.NOTEBOOK_DOCUMENT_DID_OPEN, params)

    @lsp_method(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(
        self, params: lsp.DidCloseNotebookDocumentParams
    ) -> Handled:
        yield from self._handled(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE, params)

    @lsp_method(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: lsp.DidChangeTextDocumentParams) -> Handled:
        yield from self._handled(lsp.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(
        self, params: lsp.DidChangeNotebookDocumentParams
    ) -> Handled:
        yield from self._handled(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE, params)

    def _handled(self, method: str, params: object) -> Handled:
        handler = self.fm.features.get(method)
        if handler is not None:
            yield handler, (params,), None
