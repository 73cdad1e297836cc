"""A client of the language server, over its standard input and output."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

_SECONDS = 120
T = TypeVar("T")


class Client:
    """Each method waits for the answer; a text is known by its uri and has the newest version."""

    def __init__(
        self, *folders: Path, settings: Mapping[str, Any] | None = None, cwd: Path | None = None
    ) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._client = LanguageClient("tests", "1")
        self.versions: dict[str, int] = {}
        """By document: of the newest text that the server was told."""
        self.published: dict[str, lsp.PublishDiagnosticsParams] = {}
        self.messages: list[str] = []
        self._news = asyncio.Condition()

        feature: Any = self._client.feature

        async def received(params: lsp.PublishDiagnosticsParams) -> None:
            async with self._news:
                self.published[params.uri] = params
                self._news.notify_all()

        def shown(params: lsp.ShowMessageParams) -> None:
            self.messages.append(params.message)

        feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(received)
        feature(lsp.WINDOW_SHOW_MESSAGE)(shown)
        self.capabilities = self._wait(self._start(folders, settings, cwd)).capabilities

    async def _start(
        self, folders: Sequence[Path], settings: Mapping[str, Any] | None, cwd: Path | None
    ) -> lsp.InitializeResult:
        await self._client.start_io(sys.executable, "-m", "tensortrail", "server", cwd=cwd)
        roots = [lsp.WorkspaceFolder(each.as_uri(), each.name) for each in folders]
        told = lsp.InitializeParams(
            lsp.ClientCapabilities(), workspace_folders=roots, initialization_options=settings
        )
        answer = await self._client.initialize_async(told)
        self._client.initialized(lsp.InitializedParams())
        return answer

    @property
    def process_id(self) -> int:
        server = self._client._server
        assert server is not None
        return server.pid

    def open(self, uri: str, text: str, language: str = "python") -> None:
        version = self.versions[uri] = self.versions.get(uri, 0) + 1
        item = lsp.TextDocumentItem(uri, language, version, text)
        self._do(self._client.text_document_did_open, lsp.DidOpenTextDocumentParams(item))

    def change(self, uri: str, *changes: lsp.TextDocumentContentChangeEvent) -> None:
        self.versions[uri] += 1
        changed = lsp.VersionedTextDocumentIdentifier(uri=uri, version=self.versions[uri])
        params = lsp.DidChangeTextDocumentParams(changed, changes)
        self._do(self._client.text_document_did_change, params)

    def replace(self, uri: str, text: str) -> None:
        self.change(uri, lsp.TextDocumentContentChangeWholeDocument(text))

    def close(self, uri: str) -> None:
        params = lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri))
        self._do(self._client.text_document_did_close, params)

    def tell(self, method: str, params: Any) -> None:
        self._do(self._client.protocol.notify, method, params)

    def ask(self, method: str, params: Any) -> Any:
        return self._wait(self._asked(method, params))

    def ask_and_cancel(self, method: str, params: Any) -> None:
        async def cancelled() -> None:
            self._client.protocol.send_request(method, params, msg_id="7")
            self._client.protocol.notify(lsp.CANCEL_REQUEST, lsp.CancelParams("7"))

        self._wait(cancelled())

    def diagnostics(self, uri: str) -> Sequence[lsp.Diagnostic]:
        """Those of the newest version, once they came."""
        wanted = self.versions[uri]

        async def waited() -> Sequence[lsp.Diagnostic]:
            async with self._news:
                await self._news.wait_for(
                    lambda: uri in self.published and self.published[uri].version == wanted
                )
            return self.published[uri].diagnostics

        return self._wait(waited())

    def next_about(self, uri: str) -> Sequence[lsp.Diagnostic]:
        """What is said next of a document without versions of its own."""

        async def waited() -> Sequence[lsp.Diagnostic]:
            async with self._news:
                await self._news.wait_for(lambda: uri in self.published)
            return self.published.pop(uri).diagnostics

        return self._wait(waited())

    def actions(
        self, uri: str, where: lsp.Range, *only: str | lsp.CodeActionKind
    ) -> Sequence[lsp.CodeAction]:
        self.diagnostics(uri) if uri in self.versions else None
        context = lsp.CodeActionContext([], only=only or None)
        params = lsp.CodeActionParams(lsp.TextDocumentIdentifier(uri), where, context)
        found: Sequence[lsp.CodeAction] = self.ask(lsp.TEXT_DOCUMENT_CODE_ACTION, params)
        return found

    def hover(self, uri: str, line: int, character: int) -> str:
        where = lsp.Position(line, character)
        params = lsp.HoverParams(lsp.TextDocumentIdentifier(uri), where)
        answer: lsp.Hover | None = self.ask(lsp.TEXT_DOCUMENT_HOVER, params)
        if answer is None:
            return ""
        assert isinstance(answer.contents, lsp.MarkupContent)
        return answer.contents.value

    def stop(self) -> int | None:
        async def stopped() -> int | None:
            server = self._client._server
            await self._client.shutdown_async(None)
            self._client.exit(None)
            code = await server.wait() if server is not None else None
            stop: Any = self._client.stop
            await stop()
            return code

        code = self._wait(stopped())
        self._loop.call_soon_threadsafe(self._loop.stop)
        return code

    async def _asked(self, method: str, params: Any) -> Any:
        return await self._client.protocol.send_request_async(method, params)

    def _do(self, function: Any, *arguments: Any) -> None:
        async def done() -> None:
            function(*arguments)

        self._wait(done())

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_SECONDS)


def applied(text: str, edits: Sequence[lsp.TextEdit | Any]) -> str:
    """As a client applies them: columns in UTF-16, the last edit first."""
    lines = text.split("\n")
    starts = list(accumulate((len(each) + 1 for each in lines), initial=0))

    def offset(where: lsp.Position) -> int:
        units = lines[where.line].encode("utf-16-le")[: 2 * where.character]
        return starts[where.line] + len(units.decode("utf-16-le"))

    places = [(offset(each.range.start), offset(each.range.end), each.new_text) for each in edits]
    for start, end, new in sorted(places, reverse=True):
        text = text[:start] + new + text[end:]
    return text
