"""What is different between two runs, as lines and as data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from tensortrail.inert import inert
from tensortrail.tracer.exports.finding_lines import lines_of
from tensortrail.tracer.exports.shortened import first_of
from tensortrail.tracer.reading.run_comparison import Comparison, Moved
from tensortrail.tracer.reading.sentences import short, size

MOST = 12


def as_text(found: Comparison) -> str:
    return "\n".join(map(inert, _lines(found)))


def _lines(found: Comparison) -> Iterator[str]:
    if found.is_empty:
        yield "no difference"
    yield from _listed("on another device", [f"{n}  {a} -> {b}" for n, a, b in found.elsewhere])
    yield from _listed("only in the first run", found.only_before)
    yield from _listed("only in the second run", found.only_after)
    yield from _listed("most bytes", [f"{d}  {size(a)} -> {size(b)}" for d, a, b in found.peaks])
    yield from _listed("move more", [_moved(m) for m in found.moves if m.after > m.before])
    yield from _listed("move less", [_moved(m) for m in found.moves if m.after < m.before])
    yield from _listed("new findings", [each.text(False) for each in lines_of(found.new)])
    yield from _listed("findings gone", [each.text(False) for each in lines_of(found.gone)])


def _listed(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"{title}: {len(lines)}"
        yield from first_of(lines, MOST)


def _moved(each: Moved) -> str:
    way = f"{each.source} -> {each.target}"
    return f"{short(each.file)}:{each.line}  {way}  {size(each.before)} -> {size(each.after)}"


def as_json(found: Comparison) -> str:
    data = {
        "elsewhere": [
            {"name": name, "before": before, "after": after}
            for name, before, after in found.elsewhere
        ],
        "only_before": list(found.only_before),
        "only_after": list(found.only_after),
        "peaks": [
            {"device": device, "before": before, "after": after}
            for device, before, after in found.peaks
        ],
        "moves": [vars(each) for each in found.moves],
        "new": [each._asdict() for each in lines_of(found.new)],
        "gone": [each._asdict() for each in lines_of(found.gone)],
    }
    return json.dumps(data, indent=2)
