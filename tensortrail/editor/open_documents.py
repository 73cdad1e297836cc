"""The buffers that are open, kept as the client says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from lsprotocol import types as lsp
from pygls import uris

from tensortrail.editor.buffers import Buffer, File, Notebook
from tensortrail.editor.text import Text

PYTHON = "python"


class OpenDocuments:
    def __init__(self) -> None:
        self.encoding = "utf-16"
        self._files: dict[str, File] = {}
        self._notebooks: dict[str, Notebook] = {}
        self._in: dict[str, str] = {}
        """The notebook of each cell."""

    def __iter__(self) -> Iterator[Buffer]:
        yield from list(self._files.values())
        yield from list(self._notebooks.values())

    def of(self, document: str) -> Buffer | None:
        """The buffer that a document is, or is a cell of."""
        return self._files.get(document) or self._notebooks.get(self._in.get(document, document))

    def open(self, opened: lsp.TextDocumentItem) -> Buffer | None:
        if opened.language_id != PYTHON and not opened.uri.endswith(".py"):
            return None
        text = Text(opened.text, self.encoding)
        self._files[opened.uri] = File(opened.uri, name_of(opened.uri), text, opened.version)
        return self._files[opened.uri]

    def change(
        self,
        changed: lsp.VersionedTextDocumentIdentifier,
        changes: Sequence[lsp.TextDocumentContentChangeEvent],
    ) -> Buffer | None:
        file = self._files.get(changed.uri)
        if file is not None:
            for each in changes:
                file.text = file.text.changed(each)
            file.version = changed.version
        return file

    def close(self, uri: str) -> None:
        self._files.pop(uri, None)

    def open_notebook(self, params: lsp.DidOpenNotebookDocumentParams) -> Buffer:
        given = params.notebook_document
        name = name_of(given.uri)
        name = name if name.endswith(".ipynb") else f"{name}.ipynb"
        notebook = Notebook(given.uri, name, given.version)
        self._notebooks[given.uri] = notebook
        self._arrange(notebook, 0, 0, given.cells, params.cell_text_documents)
        return notebook

    def change_notebook(self, params: lsp.DidChangeNotebookDocumentParams) -> Buffer | None:
        notebook = self._notebooks.get(params.notebook_document.uri)
        if notebook is None:
            return None
        notebook.version = params.notebook_document.version
        cells = params.change.cells
        if cells is not None and (structure := cells.structure):
            array = structure.array
            opened = structure.did_open or []
            self._arrange(notebook, array.start, array.delete_count, array.cells or [], opened)
            for each in structure.did_close or []:
                notebook.texts.pop(each.uri, None)
                self._in.pop(each.uri, None)
        for content in (cells.text_content or []) if cells is not None else []:
            uri = content.document.uri
            for change in content.changes if uri in notebook.texts else []:
                notebook.texts[uri] = notebook.texts[uri].changed(change)
        return notebook

    def close_notebook(self, uri: str) -> list[str]:
        """The documents that are gone with it."""
        notebook = self._notebooks.pop(uri, None)
        cells = notebook.cells if notebook is not None else []
        for each in cells:
            self._in.pop(each, None)
        return cells

    def _arrange(
        self,
        notebook: Notebook,
        start: int,
        gone: int,
        cells: Sequence[lsp.NotebookCell],
        opened: Sequence[lsp.TextDocumentItem],
    ) -> None:
        notebook.cells[start : start + gone] = [each.document for each in cells]
        for each in cells:
            self._in[each.document] = notebook.uri
        for document in opened:
            if document.language_id == PYTHON:
                notebook.texts[document.uri] = Text(document.text, self.encoding)


def name_of(uri: str) -> str:
    """The path of its file; what was never saved has a name only."""
    path = None
    with suppress(ValueError):  # no address at all
        path = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return path or uri.rpartition(":")[2].strip("/") or "untitled.py"
