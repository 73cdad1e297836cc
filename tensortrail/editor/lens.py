"""The facts of the last run as hover, code lenses and inlay hints show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from lsprotocol import types as lsp

from tensortrail.editor.buffers import File
from tensortrail.rules.shared.sizes import size
from tensortrail.rules.timeline import Did

if TYPE_CHECKING:
    from tensortrail.tracer.reading.lens import Fact, FileFacts

_MOST_LENSES = 10
_MOST_SHOWN = 8
_LEAST_SHARE = 0.01
"""Of all bytes that the lines of a file moved."""


def told(facts: FileFacts, line: int) -> str:
    """Markdown for a line, from 1; "" if there is nothing to tell."""
    if facts.changed:
        return f"*Last run*: nothing is shown of this file: {facts.changed}."
    here = facts.lines.get(line, [])
    listed = [f"- {each}" for each in here[:_MOST_SHOWN]]
    if here[_MOST_SHOWN:]:
        listed.append(f"- and {len(here) - _MOST_SHOWN} more")
    return "\n".join(["*Last run*:", *listed]) if listed else ""


def lenses(facts: FileFacts) -> Iterator[lsp.CodeLens]:
    """One above each of the lines that moved most."""
    moved = {line: _moves(each) for line, each in facts.lines.items()}
    total = {line: sum(each.nbytes for each in ways) for line, ways in moved.items() if ways}
    least = _LEAST_SHARE * sum(total.values())
    most = sorted(total, key=lambda line: -total[line])[:_MOST_LENSES]
    for line in sorted(each for each in most if total[each] >= least):
        where = lsp.Position(line - 1, 0)
        title = f"last run: {_sum(moved[line])}"
        yield lsp.CodeLens(lsp.Range(where, where), lsp.Command(title, ""))


def hints(buffer: File, facts: FileFacts, where: lsp.Range) -> Iterator[lsp.InlayHint]:
    """Device, type and shape at the end of the lines that made or moved something."""
    for line in range(where.start.line, where.end.line + 1):
        here = facts.lines.get(line + 1)
        if here:
            text = buffer.text.line(line)
            shape = "x".join(map(str, here[-1].shape))
            label = " ".join(filter(None, (here[-1].device, here[-1].dtype, shape)))
            place = buffer.text.position(line, len(text))
            yield lsp.InlayHint(place, label, padding_left=True, tooltip=str(here[-1]))


def _moves(facts: Sequence[Fact]) -> list[Fact]:
    return [each for each in facts if each.did is Did.MOVE]


def _sum(moves: Sequence[Fact]) -> str:
    """`2.1 GB cuda:0 -> cpu, 14x`, the most first."""
    nbytes: Counter[tuple[str, str]] = Counter()
    counts: Counter[tuple[str, str]] = Counter()
    for each in moves:
        nbytes[each.source, each.device] += each.nbytes
        counts[each.source, each.device] += each.count
    ways: Mapping[tuple[str, str], int] = dict(nbytes.most_common(2))
    return "; ".join(
        f"{size(many)} {source} -> {device}, {counts[source, device]}x"
        for (source, device), many in ways.items()
    )
