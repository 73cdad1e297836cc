"""Comments that silence findings: `# noqa: CODE` and `# tensortrail: ignore[CODE] reason`."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from tensortrail.analyzer.choosing.mistyped import code_meant
from tensortrail.analyzer.choosing.own_findings import UNUSED, own_finding
from tensortrail.analyzer.fixing.edits import apply
from tensortrail.analyzer.reading.source import Source
from tensortrail.findings import Edit, Finding, Fix, Safety
from tensortrail.patterns import pattern

_OURS = pattern(r"#\s*tensortrail:\s*ignore(?P<file>-file)?\s*(?:\[(?P<codes>[^\]]*)\])?")
_NOQA = pattern(
    r"#\s*noqa(?!\w)(?:\s*:\s*(?P<codes>[A-Za-z]+\d+(?:\s*[,\s]\s*[A-Za-z]+\d+)*))?", re.I
)
_WORD = pattern(r"[^\s,]+")
_OUR_NOQA = pattern(rb"noqa:[^\n]*\b(OFF|STO|NEW|SHD|DEV|XFR|TOL|TTR)\d")
WORDS = (b"tensortrail:", b"noqa")


@dataclass
class Suppression:
    line: int
    column: int
    """0-based, in code points, of the `#`."""
    codes: frozenset[str]
    """Empty: all codes."""
    is_noqa: bool
    whole_file: bool
    text: str
    used: set[str] = field(default_factory=set)

    def covers(self, code: str) -> bool:
        return not self.codes or code in self.codes


def suppressions_in(data: bytes) -> list[Suppression]:
    """Read from comments only, never from strings. Nothing for a file that is no Python."""
    if not any(word in data for word in WORDS):
        return []
    found: list[Suppression] = []
    try:
        for token in tokenize.tokenize(io.BytesIO(data).readline):
            if token.type == tokenize.COMMENT:
                found += _read(token)
    except (tokenize.TokenError, SyntaxError, ValueError):
        pass
    return found


def _read(token: tokenize.TokenInfo) -> Iterable[Suppression]:
    for form in (_OURS, _NOQA):
        match = form.search(token.string)
        if match is None:
            continue
        codes = frozenset(word.upper() for word in _WORD.findall(match["codes"] or ""))
        line, column = token.start
        whole_file = form is _OURS and bool(match["file"])
        yield Suppression(
            line, column + match.start(), codes, form is _NOQA, whole_file, match.group()
        )


def apply_suppressions(
    findings: Sequence[Finding],
    source: Source,
    known_codes: Collection[str],
    report_unused: bool,
    of_runs: Collection[str] = (),
    judged: bytes | None = None,
) -> list[Finding]:
    """The findings that no comment silences, and those about comments that silence nothing.

    A comment may silence what only a run shows: of the codes `of_runs` none is called unused.
    `judged` is the part of the file that was judged, in its place, if it was not all of it."""
    data = judged if judged is not None else source.data
    ours = b"tensortrail:" in data or _OUR_NOQA.search(data)
    if not ours and not any(_may_be_silenced(each, source) for each in findings):
        return list(findings)
    suppressions = suppressions_in(data)
    if not suppressions:
        return list(findings)
    kept = _not_silenced(findings, suppressions)
    if report_unused:
        for suppression in suppressions:
            suppression.used |= suppression.codes & frozenset(of_runs)
            kept += _unused(suppression, source, known_codes)
    return kept


def _may_be_silenced(finding: Finding, source: Source) -> bool:
    """By a comment of its first or last line: reading all comments takes longer than judging."""
    lines = {finding.site.line, finding.site.end_line}
    return any("noqa" in source.line(each).lower() for each in lines)


def _not_silenced(
    findings: Sequence[Finding], suppressions: Sequence[Suppression]
) -> list[Finding]:
    by_line: dict[int, list[Suppression]] = {}
    for each in suppressions:
        if not each.whole_file:
            by_line.setdefault(each.line, []).append(each)
    codes = {finding.code for finding in findings}
    everywhere: set[str] = set()
    for each in suppressions:
        if each.whole_file:
            each.used |= {code for code in codes if each.covers(code)}
            everywhere |= each.used
    kept = []
    for finding in findings:
        lines = {finding.site.line, finding.site.end_line}
        near = [each for line in lines for each in by_line.get(line, ())]
        if not silenced(finding, near) and finding.code not in everywhere:
            kept.append(finding)
    return kept


def silenced(finding: Finding, suppressions: Sequence[Suppression]) -> bool:
    silenced = False
    lines = (finding.site.line, finding.site.end_line)
    for each in suppressions:
        if (each.whole_file or each.line in lines) and each.covers(finding.code):
            each.used.add(finding.code)
            silenced = True
    return silenced


def _unused(
    suppression: Suppression, source: Source, known_codes: Collection[str]
) -> Iterable[Finding]:
    known = suppression.codes & frozenset(known_codes)
    unused = sorted(known - suppression.used)
    if not _is_in_vain(suppression, known, unused):
        return
    start = source.offset(suppression.line, 0)
    line = source.line(suppression.line)
    before = line[: suppression.column]
    begin, end = (len(each.encode()) for each in (before, before + suppression.text))
    site = source.site(start + begin, start + end)
    unknown = sorted(suppression.codes - known)
    if unknown and not suppression.is_noqa:
        meant = _meant(unknown, known_codes)
        yield own_finding(UNUSED, f"this comment names no rule: {meant}", site)
        return
    named = ", ".join(unused) or "anything"
    finding = own_finding(UNUSED, f"this comment does not suppress {named} here", site)
    fix = _removal(suppression, source, line, sorted(suppression.codes - set(unused)))
    yield replace(finding, fixes=(fix,) if fix else ())


def _is_in_vain(suppression: Suppression, known: frozenset[str], unused: Sequence[str]) -> bool:
    """Whether a part of the comment, or all of it, does nothing."""
    if suppression.is_noqa:
        return bool(unused)  # else other tools' codes, or a bare noqa that may be theirs
    if suppression.codes:
        return bool(unused) or suppression.codes != known
    return not suppression.used


def _meant(words: Iterable[str], known: Collection[str]) -> str:
    """Each word, with the code that it is like."""
    told = []
    for word in words:
        meant = code_meant(word, known)
        told.append(f"{word} (did you mean {meant}?)" if meant else word)
    return ", ".join(told)


def _removal(suppression: Suppression, source: Source, line: str, left: list[str]) -> Fix | None:
    """Drop the codes that are not used; the whole comment if none is left."""
    if not source.editable:
        return None
    start = source.offset(suppression.line, 0)
    if left:
        head = "# noqa: " if suppression.is_noqa else "# tensortrail: ignore["
        text = head + ", ".join(left) + ("" if suppression.is_noqa else "]")
        first, last = suppression.column, suppression.column + len(suppression.text)
    else:
        first = len(line[: suppression.column].rstrip())
        rest = line[suppression.column + len(suppression.text) :]
        other = rest.find("#")
        last = suppression.column + len(suppression.text) + other if other >= 0 else len(line)
        text = "  " if other >= 0 and first else ""
    begin, end = start + len(line[:first].encode()), start + len(line[:last].encode())
    edit = Edit(source.site(begin, end), text)
    return Fix("remove the unused suppression", Safety.SAFE, (edit,))


def added_ignores(source: Source, findings: Iterable[Finding]) -> list[Edit]:
    """Edits that silence the findings, each on a line where a comment can stand."""
    if not source.editable:
        return []
    ends = _line_ends(source.data)
    by_line: dict[int, set[str]] = {}
    for finding in findings:
        first, last = finding.site.line, finding.site.end_line
        by_line.setdefault(first if first in ends else last, set()).add(finding.code)
    edits = {line: _comment(source, line, codes) for line, codes in by_line.items()}
    commented = {each.line: each for each in suppressions_in(apply(source.data, [*edits.values()]))}
    return [
        edit
        for line, edit in edits.items()
        if line in ends and line in commented and commented[line].codes == by_line[line]
    ]


def _line_ends(data: bytes) -> frozenset[int]:
    """Lines at whose end a comment can stand: no string and no backslash goes on there."""
    ends: set[int] = set()
    try:
        for token in tokenize.tokenize(io.BytesIO(data).readline):
            if token.type in (tokenize.NEWLINE, tokenize.NL):
                ends.add(token.start[0])
    except (tokenize.TokenError, SyntaxError, ValueError):
        pass
    return frozenset(ends)


def _comment(source: Source, line: int, codes: Iterable[str]) -> Edit:
    text = source.line(line)
    end = source.offset(line, len(text.rstrip().encode()))
    stop = source.offset(line, len(text.encode()))
    return Edit(source.site(end, stop), f"  # tensortrail: ignore[{', '.join(sorted(codes))}]")
