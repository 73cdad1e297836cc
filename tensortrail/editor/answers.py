"""What a client may ask of the server. It speaks over standard input and output."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types as lsp

from tensortrail.editor import actions, hover, lens
from tensortrail.editor.projects import Requested
from tensortrail.editor.server import Server


def made(requested: Requested, version: str) -> Server:
    server = Server(requested, version)
    _begins_and_ends(server)
    _follows_files(server)
    _follows_notebooks(server)
    _follows_settings(server)
    _answers(server)
    _shows_the_last_run(server)
    return server


def _begins_and_ends(server: Server) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(params: lsp.InitializeParams) -> None:
        server.initialized(params.initialization_options)

    @server.feature(lsp.SHUTDOWN)
    def ended(_: None) -> None:
        server.end()

    @server.feature(lsp.EXIT)  # some clients leave out the first
    def left(_: None) -> None:
        server.end()


def _follows_files(server: Server) -> None:
    documents = server.documents

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
            server.check(buffer)  # the last that is asked for is the first to be checked


def _follows_notebooks(server: Server) -> None:
    documents = server.documents

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
    def opened_notebook(params: lsp.DidOpenNotebookDocumentParams) -> None:
        server.check(documents.open_notebook(params))

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def changed_notebook(params: lsp.DidChangeNotebookDocumentParams) -> None:
        before = documents.of(params.notebook_document.uri)
        cells = [*before.documents] if before is not None else []
        buffer = documents.change_notebook(params)
        server.clear([each for each in cells if buffer is None or each not in buffer.documents])
        server.check(buffer)

    @server.feature(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def closed_notebook(params: lsp.DidCloseNotebookDocumentParams) -> None:
        server.checks.forget(params.notebook_document.uri)
        server.clear(documents.close_notebook(params.notebook_document.uri))


def _follows_settings(server: Server) -> None:
    @server.feature(lsp.WORKSPACE_DID_CHANGE_CONFIGURATION)
    def configured(params: lsp.DidChangeConfigurationParams) -> None:
        server.reconfigure(params.settings)

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def written(params: lsp.DidChangeWatchedFilesParams) -> None:
        server.projects.reload()
        server.check_all()


def _answers(server: Server) -> None:
    _answers_with_fixes(server)
    _answers_hovering(server)


def _answers_with_fixes(server: Server) -> None:
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
            fixed = await server.fixed(buffer, found)
            made += actions.fix_all(buffer, fixed) if fixed is not None else ()
        return made


def _answers_hovering(server: Server) -> None:
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
