"""A page with every file as a bar of its size: which weights lie where, and what is damaged.

It is drawn without a script and needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import NamedTuple

from tensortrail.doctor.checkpoint.examine import Examination
from tensortrail.findings import Finding
from tensortrail.inert import digest, inert

MOST_ROWS, MOST_PIECES = 400, 600
WIDTH, HEIGHT, NARROWEST = 1000.0, 26, 0.4
COLORS = 8
_NUMBERED = re.compile(r"(.*?\.\d+)\.")
_QUOTED = re.compile(r"`([^`]+)`")
_DARK = re.compile(r':root\[data-theme="dark"\] (\{.*?\n\})', re.DOTALL)
_OWN_STYLE = """
.shards { display: grid; gap: 14px; }
.shard { padding: 12px 16px; }
.shard h3 { display: flex; justify-content: space-between; gap: 16px; font-family: var(--mono);
  font-size: 13px; overflow-wrap: anywhere; }
.shard svg { display: block; width: 100%; height: 26px; margin: 8px 0 0; overflow: visible; }
.shard ul { margin-top: 8px; font-size: 14px; }
.rest { fill: var(--sunk); stroke: var(--line); }
.error, .warning, .note { overflow-wrap: anywhere; }
.error { color: var(--error); } .warning { color: var(--warning); } .note { color: var(--note); }
.lost { opacity: .3; }
.damage { fill: none; stroke: var(--error); stroke-width: 3; }
"""


class Piece(NamedTuple):
    name: str
    begin: int
    end: int


class Row(NamedTuple):
    name: str
    path: str
    size: int
    pieces: tuple[Piece, ...]


def page(found: Examination, style: str) -> str:
    """`style` is that of the page of runs."""
    rows = list(_rows(found))
    title, named = _safe(found.checkpoint.path), {row.path for row in rows}
    others = [each for each in found.findings if each.site.file not in named]
    return f"""<!doctype html>
<html lang="en">
{_head(title, _whole_style(style))}
<body>
<header class="top"><span class="brand"><span class="mark" aria-hidden="true">\
<i></i><i></i><i></i></span>tensortrail</span></header>
<main>
<section>
<h1>{title}</h1>
<p class="facts">{_facts(found, rows)}</p>
{_list(others)}
</section>
{_files(found, rows)}
{_parted(rows)}
</main>
</body>
</html>
"""


def _head(title: str, style: str) -> str:
    policy = f"default-src 'none'; style-src '{digest(style)}'; base-uri 'none'"
    return f"""<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: tensortrail doctor</title>
<style>{style}</style>
</head>"""


def _whole_style(style: str) -> str:
    """That of the page of runs, at night too, and what only this page has."""
    dark = _DARK.search(style)
    night = f"@media (prefers-color-scheme: dark) {{ :root {dark[1]} }}" if dark else ""
    colors = "".join(f".c{n} {{ fill: var(--d{n}); }}" for n in range(COLORS))
    return f"{style}{night}{_OWN_STYLE}{colors}"


def _files(found: Examination, rows: list[Row]) -> str:
    groups = {group: n for n, group in enumerate(dict.fromkeys(_groups(rows)))}
    largest = max((row.size for row in rows), default=1) or 1
    bars = "\n".join(_bar(row, largest, groups, found.findings) for row in rows[:MOST_ROWS])
    left = f'<p class="soft">{len(rows) - MOST_ROWS} more files</p>' if rows[MOST_ROWS:] else ""
    return f"""<section>
<h2>Files <span class="count">{len(rows)}</span></h2>
<p class="lead">Each bar is as long as its file is large. Weights of one layer have one color; \
what holds no weight is gray, as the header at the beginning. {_marks(found, rows)}</p>
<div class="shards">
{bars}
</div>
{left}
</section>"""


def _rows(found: Examination) -> Iterator[Row]:
    for file in found.checkpoint.files:
        ordered = sorted(file.tensors.values(), key=lambda each: each.begin)
        pieces = tuple(Piece(each.name, each.begin, each.end) for each in ordered)
        yield Row(file.name, file.path, file.size, pieces)
    parts = found.checkpoint.distributed.parts if found.checkpoint.distributed else ()
    for name, size in found.checkpoint.sizes.items():
        mine = sorted((each for each in parts if each.file == name), key=lambda each: each.begin)
        pieces = tuple(Piece(each.key, each.begin, each.end) for each in mine)
        yield Row(name, f"{found.checkpoint.path}/{name}", size, pieces)


def group_of(name: str) -> str:
    """The numbered layer that a weight is a part of, or the module that holds it."""
    found = _NUMBERED.match(name)
    return found[1] if found else name.rpartition(".")[0] or name


def _groups(rows: Iterable[Row]) -> Iterator[str]:
    return (group_of(piece.name) for row in rows for piece in row.pieces)


def _bar(row: Row, largest: int, groups: Mapping[str, int], findings: Iterable[Finding]) -> str:
    mine = [each for each in findings if each.site.file == row.path]
    scale = WIDTH / largest
    drawn = [f'<rect class="rest" width="{max(row.size * scale, 1):.2f}" height="{HEIGHT}"/>']
    for label, begin, end, group in _merged(row.pieces, scale):
        color = f"c{groups[group] % COLORS}"
        there = min(end, row.size)
        drawn.append(_rect(color, begin * scale, (there - begin) * scale, label))
        if end > there:
            lost = max(begin, there)
            drawn.append(_rect(f"{color} lost", lost * scale, (end - lost) * scale, label))
    for each in mine:
        if each.site.start >= 0:
            wide = max((each.site.end - each.site.start) * scale, 4)
            drawn.append(_rect("damage", each.site.start * scale, wide, each.message))
    count = f"{len(row.pieces):,} weight{'s' * (len(row.pieces) != 1)}, {row.size:,} bytes"
    return f"""<article class="card shard">
<h3><span>{_safe(row.name)}</span><span class="soft number">{count}</span></h3>
<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT}" preserveAspectRatio="none" role="img" \
aria-label="{_safe(row.name)}">{"".join(drawn)}</svg>
{_list(mine)}
</article>"""


def _merged(pieces: Iterable[Piece], scale: float) -> Iterator[tuple[str, int, int, str]]:
    """Neighbours of one layer are one piece; those too narrow to be seen go into the next."""
    found: list[tuple[str, int, int, str]] = []
    for piece in pieces:
        group = group_of(piece.name)
        if found:
            label, begin, end, before = found[-1]
            if before == group or (end - begin) * scale < NARROWEST:
                found[-1] = (label, begin, max(end, piece.end), before)
                continue
        found.append((group, piece.begin, piece.end, group))
    yield from found[:MOST_PIECES]


def _rect(kind: str, begin: float, wide: float, label: str) -> str:
    at = f'x="{begin:.2f}" width="{max(wide - 0.6, 0.3):.2f}" height="{HEIGHT}"'
    return f'<rect class="{kind}" {at}><title>{_safe(label)}</title></rect>'


def _facts(found: Examination, rows: list[Row]) -> str:
    count = sum(len(row.pieces) for row in rows)
    told = f"<span><b>{count:,}</b> weight{'s' * (count != 1)}</span>"
    told += f"<span><b>{sum(row.size for row in rows):,}</b> bytes</span>"
    told += f"<span><b>{len(found.ran)}</b> checks ran</span>"
    number = len(found.findings)
    return told + f"<span><b>{number}</b> finding{'s' * (number != 1)}</span>"


def _parted(rows: list[Row]) -> str:
    """The layers whose weights lie in several files."""
    files: dict[str, dict[str, None]] = {}
    for row in rows:
        for piece in row.pieces:
            files.setdefault(group_of(piece.name), {})[row.name] = None
    parted = [(group, list(names)) for group, names in files.items() if len(names) > 1]
    items = "".join(
        f"<li><code>{_safe(group)}</code>: {_safe(', '.join(names))}</li>"
        for group, names in parted[:MOST_ROWS]
    )
    title = f'<h2>Layers in several files <span class="count">{len(parted)}</span></h2>'
    return f"<section>{title}<ul>{items}</ul></section>" if parted else ""


def _list(findings: list[Finding]) -> str:
    items = "".join(
        f'<li class="{each.severity.value}"><b>{each.code}</b> {_with_code(each.message)}'
        f'<br><span class="soft">{_with_code(each.change)}</span></li>'
        for each in findings
    )
    return f"<ul>{items}</ul>" if items else ""


def _marks(found: Examination, rows: Iterable[Row]) -> str:
    """What the marks mean that stand on this page."""
    told = []
    if {each.site.file for each in found.findings if each.site.start >= 0} & {r.path for r in rows}:
        told.append("A red frame is where something is wrong.")
    if any(piece.end > row.size for row in rows for piece in row.pieces):
        told.append("What is pale should be there and is not.")
    return " ".join(told)


def _with_code(text: str) -> str:
    """What stands between backticks is code."""
    return _QUOTED.sub(r"<code>\1</code>", _safe(text))


def _safe(text: str) -> str:
    return escape(inert(text))
