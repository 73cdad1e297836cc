"""The language server: what is open, what was found in it, and what is said of that unasked."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer

from tensortrail.analyzer.choosing.own_findings import CRASHED, own_finding
from tensortrail.analyzer.fixing.fixer import Fixed, fix_file
from tensortrail.analyzer.judging.suppress import silenced, suppressions_in
from tensortrail.editor import diagnostics
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
        self._configure(_own(options) or {})

    def reconfigure(self, settings: Any) -> None:
        """Settings without a part for us change nothing: some clients send empty ones at once."""
        if (given := _own(settings)) is not None:
            self._configure(given)

    def _configure(self, given: dict[str, Any]) -> None:
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
        asked.add_done_callback(lambda done: self._later(self._publish, buffer, done))

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

    async def fixed(self, buffer: Buffer, findings: Sequence[Finding]) -> Fixed | None:
        """With all safe fixes, tried where the checks are made; None if the text went on."""
        version, program = buffer.version, buffer.program
        asked = self.checks.between(
            lambda: fix_file(buffer.name, program, findings, False, self.projects.check)
        )
        done = await asyncio.wrap_future(asked)
        return done if buffer.version == version else None

    def clear(self, documents: Sequence[str]) -> None:
        for each in documents:
            self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(each, []))

    async def facts(self, document: str) -> tuple[File, FileFacts] | None:
        """What the last run knows of an open file; None if that is nothing."""
        buffer = self.documents.of(document)
        if not isinstance(buffer, File):
            return None
        known = await asyncio.to_thread(self.runs.of, buffer.name, buffer.program)
        return (buffer, known.facts) if known is not None else None

    def _checked(self, name: str, program: bytes) -> tuple[Sequence[Finding], Sequence[Site]]:
        try:
            return self._found(name, program)
        except Exception as error:
            traceback.print_exc()  # the editor's log shows it
            told = f"the check failed: {type(error).__name__}: {error}"
            return [own_finding(CRASHED, told, Site(name, 1))], ()

    def _found(self, name: str, program: bytes) -> tuple[Sequence[Finding], Sequence[Site]]:
        static, recorded = self.projects.check(name, program), self.runs.of(name, program)
        if recorded is None:
            return static, ()
        faded = unrecorded(name, program, recorded.facts) if self.fades_unrecorded else ()
        return self._with_run(program, static, recorded.findings()), faded

    def _with_run(
        self, program: bytes, static: Sequence[Finding], of_run: Sequence[Finding]
    ) -> Sequence[Finding]:
        if not of_run:
            return static
        comments = suppressions_in(program)
        return beside(
            static,
            of_run,
            lambda each: self.projects.wants(each) and not silenced(each, comments),
        )

    def _later(self, does: Callable[..., None], *given: Any) -> None:
        """The thread that checks has no part in what is written."""
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(does, *given)

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
        self._later(self.window_show_message, told)


def _own(settings: Any) -> dict[str, Any] | None:
    """Our part of a client's settings, which may be the whole; None if they have none."""
    if not isinstance(settings, dict):
        return None
    if "tensortrail" in settings:
        own = settings["tensortrail"]
        return own if isinstance(own, dict) else {}
    of_others = any(isinstance(each, dict) for each in settings.values())  # none of ours is one
    return None if of_others else settings or None
