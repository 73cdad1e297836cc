"""What the language server answers. It speaks over standard input and output."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from tensortrail.analyzer.judging.suppress import silenced, suppressions_in
from tensortrail.editor import actions, diagnostics, hover, lens
from tensortrail.editor.buffers import Buffer, File
from tensortrail.editor.checks import Checked, Checks
from tensortrail.editor.last_run import LastRuns, beside
from tensortrail.editor.open_documents import OpenDocuments
from tensortrail.editor.projects import Projects, Requested
from tensortrail.editor.protocol import Protocol
from tensortrail.editor.unrecorded import faded, unrecorded
from tensortrail.findings import Finding, Site

if TYPE_CHECKING:
    from tensortrail.tracer.reading.lens import FileFacts

_NOTEBOOKS = lsp.NotebookDocumentSyncOptions(
    notebook_selector=[
        lsp.NotebookDocumentFilterWithCells(cells=[lsp.NotebookCellLanguage(language="python")])
    ],
    save=True,
)


class Server(LanguageServer):
    """Knows what is open and what was found in it."""

    def __init__(self, requested: Requested, version: str) -> None:
        super().__init__(
            "tensortrail", version, notebook_document_sync=_NOTEBOOKS, protocol_cls=Protocol
        )
        self.projects = Projects(requested, self._complain)
        self.runs = LastRuns()
        self.checks = Checks(self._checked)
        self.shows_hints = False
        self.fades_unrecorded = False
        self.documents = OpenDocuments()
        self._loop: asyncio.AbstractEventLoop | None = None

    def initialized(self, options: Any) -> None:
        self._loop = asyncio.get_running_loop()
        encoding = self.workspace.position_encoding
        self.documents.encoding = str(getattr(encoding, "value", encoding) or "utf-16")
        self.configure(options)

    def configure(self, settings: Any) -> None:
        given = settings.get("tensortrail", settings) if isinstance(settings, dict) else {}
        given = given if isinstance(given, dict) else {}
        self.shows_hints = given.get("inlayHints") is True
        self.fades_unrecorded = given.get("fadeUnrecorded") is True
        self.projects.configure(given)
        self.check_all()

    def end(self) -> None:
        """Publish nothing more: the client has closed, or will close, the pipe."""
        self._loop = None
        self.checks.stop()

    def check(self, buffer: Buffer | None) -> None:
        """Ask for it; the answer is published when it is there, unless a newer text came."""
        if buffer is None or self._loop is None:
            return
        asked = self.checks.ask(buffer.uri, buffer.name, buffer.version, buffer.program)
        asked.add_done_callback(lambda done: self._later(buffer, done))

    def check_all(self) -> None:
        for each in self.documents:
            self.check(each)

    async def findings(self, document: str) -> tuple[Buffer, Sequence[Finding]] | None:
        """Those of the text as it is now, once they are known; None for what is not open."""
        buffer = self.documents.of(document)
        asked = self.checks.newest(buffer.uri) if buffer is not None else None
        if buffer is None or asked is None:
            return None
        try:
            checked = await asyncio.shield(asyncio.wrap_future(asked))
        except asyncio.CancelledError:
            if asked.cancelled():  # a newer text came; the client asks again
                return None
            raise
        if checked is None or checked.version != buffer.version:
            return None
        return buffer, checked.findings

    def clear(self, documents: Sequence[str]) -> None:
        for each in documents:
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(each, []))

    async def facts(self, document: str) -> tuple[File, FileFacts] | None:
        """What the last run knows of an open file; None if that is nothing."""
        buffer = self.documents.of(document)
        if not isinstance(buffer, File):
            return None
        known = await asyncio.to_thread(self.runs.facts, buffer.name, buffer.program)
        return (buffer, known) if known is not None else None

    def _checked(self, name: str, program: bytes) -> tuple[Sequence[Finding], Sequence[Site]]:
        facts = self.runs.facts(name, program) if self.fades_unrecorded else None
        faded = unrecorded(name, program, facts) if facts is not None else ()
        return self._found(name, program), faded

    def _found(self, name: str, program: bytes) -> Sequence[Finding]:
        static = list(self.projects.check(name, program))
        of_run = self.runs.findings(name, program)
        if not of_run:
            return static
        comments = suppressions_in(program)
        return beside(
            static,
            of_run,
            lambda each: self.projects.wants(each) and not silenced(each, comments),
        )

    def _later(self, buffer: Buffer, done: Future[Checked | None]) -> None:
        """The thread that checks has no part in what is written."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._publish, buffer, done)

    def _publish(self, buffer: Buffer, done: Future[Checked | None]) -> None:
        if self._loop is None or done.cancelled() or self.documents.of(buffer.uri) is not buffer:
            return
        checked = done.result()
        if checked is None or checked.version != buffer.version:
            return
        version = buffer.version if buffer.documents == (buffer.uri,) else None
        by_document = diagnostics.by_document(buffer, checked.findings)
        for document, hint in faded(buffer, checked.unrecorded):
            by_document.setdefault(document, []).append(hint)
        for document, found in by_document.items():
            told = lsp.PublishDiagnosticsParams(document, found, version)
            self.text_document_publish_diagnostics(told)

    def _complain(self, message: str) -> None:
        told = lsp.ShowMessageParams(lsp.MessageType.Error, f"tensortrail: {message}")
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self.window_show_message, told)


def made(requested: Requested, version: str) -> Server:
    server = Server(requested, version)
    _synchronizes(server)
    _answers(server)
    _shows_the_last_run(server)
    return server


def _synchronizes(server: Server) -> None:
    documents = server.documents

    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        server.initialized(params.initialization_options)

    @server.feature(lsp.SHUTDOWN)
    def ended(_: None) -> None:
        server.end()

    @server.feature(lsp.EXIT)  # some clients leave out the first
    def left(_: None) -> None:
        server.end()

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: lsp.DidOpenTextDocumentParams) -> None:
        server.check(documents.open(params.text_document))

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: lsp.DidChangeTextDocumentParams) -> None:
        server.check(documents.change(params.text_document, params.content_changes))

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(params: lsp.DidCloseTextDocumentParams) -> None:
        documents.close(params.text_document.uri)
        server.checks.forget(params.text_document.uri)
        server.clear([params.text_document.uri])

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(params: lsp.DidSaveTextDocumentParams) -> None:
        buffer = documents.of(params.text_document.uri)
        if buffer is not None:  # other files may rely on what stands in it
            server.projects.forget(buffer.name)
            server.check_all()

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
    def opened_notebook(params: lsp.DidOpenNotebookDocumentParams) -> None:
        server.check(documents.open_notebook(params))

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def changed_notebook(params: lsp.DidChangeNotebookDocumentParams) -> None:
        server.check(documents.change_notebook(params))

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def closed_notebook(params: lsp.DidCloseNotebookDocumentParams) -> None:
        server.checks.forget(params.notebook_document.uri)
        server.clear(documents.close_notebook(params.notebook_document.uri))

    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(params: lsp.DidChangeConfigurationParams) -> None:
        server.configure(params.settings)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def written(params: lsp.DidChangeWatchedFilesParams) -> None:
        server.projects.reload()
        server.check_all()


def _answers(server: Server) -> None:
    kinds = [lsp.CodeActionKind.QuickFix, actions.FIX_ALL]

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=kinds))
    async def code_actions(params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        known = await server.findings(params.text_document.uri)
        if known is None:
            return []
        buffer, found = known
        wanted = params.context.only
        made: list[lsp.CodeAction] = []
        if _wants(wanted, lsp.CodeActionKind.QuickFix):
            for each in found:
                if actions.near(buffer, params.text_document.uri, params.range, each):
                    made += actions.quick_fixes(buffer, each)
        if wanted and _wants(wanted, actions.FIX_ALL):
            made += actions.fix_all(buffer, found, server.projects.check)
        return made

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    async def hovered(params: lsp.HoverParams) -> lsp.Hover | None:
        uri, where = params.text_document.uri, lsp.Range(params.position, params.position)
        parts: list[str] = []
        if known := await server.findings(uri):
            buffer, found = known
            parts += [hover.told(each) for each in found if actions.near(buffer, uri, where, each)]
        if run := await server.facts(uri):
            parts += filter(None, [lens.told(run[1], params.position.line + 1)])
        if not parts:
            return None
        text = "\n\n---\n\n".join(parts)
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text))


def _shows_the_last_run(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_CODE_LENS)
    async def code_lenses(params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
        run = await server.facts(params.text_document.uri)
        return list(lens.lenses(run[1])) if run is not None else []

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    async def inlay_hints(params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        run = await server.facts(params.text_document.uri) if server.shows_hints else None
        return list(lens.hints(*run, params.range)) if run is not None else []


def _wants(only: Sequence[str | lsp.CodeActionKind] | None, kind: str) -> bool:
    """A client may ask for kinds by their beginning: `source` or `source.fixAll`."""
    kind = str(getattr(kind, "value", kind))
    asked = [str(getattr(each, "value", each)) for each in only or ()]
    return only is None or any(kind == each or kind.startswith(f"{each}.") for each in asked)
