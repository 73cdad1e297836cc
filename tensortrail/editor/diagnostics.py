"""Findings as the protocol's diagnostics; the trail and the places alike as related information."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from lsprotocol import types as lsp

from tensortrail.editor.buffers import Buffer
from tensortrail.editor.last_run import OF_RUN
from tensortrail.findings import Finding, Severity, Site

SOURCE = "tensortrail"
UNUSED = "TTR002"
_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.NOTE: lsp.DiagnosticSeverity.Information,
}


def by_document(buffer: Buffer, findings: Sequence[Finding]) -> dict[str, list[lsp.Diagnostic]]:
    """For every document of the buffer, also where nothing is found any more."""
    made: dict[str, list[lsp.Diagnostic]] = {each: [] for each in buffer.documents}
    for finding in findings:
        document, _ = buffer.place(finding.site)
        made.setdefault(document, []).append(diagnostic(buffer, finding))
    return made


def diagnostic(buffer: Buffer, finding: Finding) -> lsp.Diagnostic:
    _, where = buffer.place(finding.site)
    unused = [lsp.DiagnosticTag.Unnecessary] if finding.code == UNUSED else None
    return lsp.Diagnostic(
        range=where,
        message="\n".join([_message(finding), *_advice(finding)]),
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        source=SOURCE,
        tags=unused,
        related_information=list(_related(buffer, finding)) or None,
    )


def _message(finding: Finding) -> str:
    began = finding.evidence.get(OF_RUN)
    return f"in the run of {began}: {finding.message}" if began else finding.message


def _advice(finding: Finding) -> Iterator[str]:
    for fix in finding.fixes:
        if not fix.edits:
            yield f"to fix it: {fix.description}"
    for each in finding.settings:
        yield f"setting: {each.library} {each.name}={each.value}: {each.why}"


def _related(buffer: Buffer, finding: Finding) -> Iterator[lsp.DiagnosticRelatedInformation]:
    told = [(step.site, step.message) for step in finding.trail]
    told += [(site, "the same pattern") for site in finding.siblings]
    for site, message in told:
        yield lsp.DiagnosticRelatedInformation(location(buffer, site), message)


def location(buffer: Buffer, site: Site) -> lsp.Location:
    """In the buffer itself, or in another file, where columns are counted as they are known."""
    if site.file == buffer.name:
        return lsp.Location(*buffer.place(site))
    line, end_line = max(site.line - 1, 0), max(site.end_line - 1, 0)
    start = lsp.Position(line, max(site.column - 1, 0))
    end = lsp.Position(end_line, max(site.end_column - 1, 0))
    return lsp.Location(Path(site.file).absolute().as_uri(), lsp.Range(start, end))
