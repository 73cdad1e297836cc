"""Quick fixes: a finding's own, a comment that silences it, and all safe ones at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lsprotocol import types as lsp

from tensortrail.analyzer.choosing.own_findings import OWN
from tensortrail.analyzer.fixing.fixer import Fixed
from tensortrail.analyzer.fixing.script_settings import patched
from tensortrail.analyzer.judging.suppress import added_ignores
from tensortrail.analyzer.reading.source import Source
from tensortrail.analyzer.reading.unreadable import Unreadable
from tensortrail.editor.buffers import Buffer, Edits
from tensortrail.editor.diagnostics import diagnostic
from tensortrail.findings import Edit, Finding, Fix, Safety, Setting, Site

FIX_ALL = "source.fixAll.tensortrail"


def near(buffer: Buffer, document: str, where: lsp.Range, finding: Finding) -> bool:
    """Whether the finding touches the range in that document."""
    placed, own = buffer.place(finding.site)
    return placed == document and not (
        _before(own.end, where.start) or _before(where.end, own.start)
    )


def quick_fixes(buffer: Buffer, finding: Finding) -> Iterator[lsp.CodeAction]:
    about = [diagnostic(buffer, finding)]
    for fix in finding.fixes:
        if edits := _edits(buffer, fix):
            safe = fix.safety is Safety.SAFE
            yield lsp.CodeAction(
                f"{finding.code}: {fix.description}" + ("" if safe else " (unsafe)"),
                kind=lsp.CodeActionKind.QuickFix,
                diagnostics=about,
                is_preferred=safe,
                edit=_workspace_edit(edits),
            )
    for setting in finding.settings:
        if edits := _set(buffer, setting):
            yield lsp.CodeAction(
                f"{finding.code}: set {setting.name}={setting.value} (unsafe)",
                kind=lsp.CodeActionKind.QuickFix,
                diagnostics=about,
                is_preferred=False,
                edit=_workspace_edit(edits),
            )
    if finding.code not in OWN and (edits := buffer.edits(_ignore(buffer, finding))):
        yield lsp.CodeAction(
            f"{finding.code}: ignore it here, with a reason",
            kind=lsp.CodeActionKind.QuickFix,
            diagnostics=about,
            edit=_workspace_edit(edits),
        )


def fix_all(buffer: Buffer, done: Fixed) -> Iterator[lsp.CodeAction]:
    """Every safe fix that still mends something when the others are made."""
    if not done.applied:
        return
    if edits := buffer.edits([_difference(buffer.name, done.before, done.after)]):
        title = f"tensortrail: apply {done.applied} safe fix{'es' * (done.applied != 1)}"
        yield lsp.CodeAction(title, kind=FIX_ALL, edit=_workspace_edit(edits))


def _edits(buffer: Buffer, fix: Fix) -> Edits:
    mine = all(each.site.file == buffer.name and each.site.start >= 0 for each in fix.edits)
    return buffer.edits(fix.edits) if fix.edits and mine else {}


def _set(buffer: Buffer, setting: Setting) -> Edits:
    """The setting put into the call that takes it, where that stands in this file."""
    if not setting.call or setting.at is None or setting.at.file != buffer.name:
        return {}
    program = buffer.program
    after = patched(buffer.name, program, [setting]).after
    return buffer.edits([_difference(buffer.name, program, after)]) if after != program else {}


def _ignore(buffer: Buffer, finding: Finding) -> list[Edit]:
    try:
        edits = added_ignores(Source(buffer.name, buffer.program), [finding])
    except Unreadable:
        return []
    return [replace(each, text=f"{each.text} reason: ") for each in edits]


def _difference(name: str, before: bytes, after: bytes) -> Edit:
    start, end = _changed(before, after)
    return Edit(Site(name, 0, start=start, end=end), _text(before, after, start, end))


def _changed(before: bytes, after: bytes) -> tuple[int, int]:
    """The lines that differ, as byte offsets of `before`."""
    old, new = before.splitlines(True), after.splitlines(True)
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return sum(map(len, old[:head])), len(before) - sum(map(len, old[len(old) - tail :]))


def _text(before: bytes, after: bytes, start: int, end: int) -> str:
    return after[start : len(after) - (len(before) - end)].decode("utf-8", "replace")


def _before(a: lsp.Position, b: lsp.Position) -> bool:
    return (a.line, a.character) < (b.line, b.character)


def _workspace_edit(edits: Edits) -> lsp.WorkspaceEdit:
    return lsp.WorkspaceEdit(changes={uri: list(each) for uri, each in edits.items()})
