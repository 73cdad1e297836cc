"""For people at a terminal: the line, a caret, the trail, the fix, the setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tensortrail.findings import Confidence, Finding, Fix, Report, Safety, Setting, Severity, Site
from tensortrail.inert import headline, inert
from tensortrail.reporters.diff_excerpt import diff_lines
from tensortrail.reporters.excerpt import excerpt
from tensortrail.reporters.repeated import lines_of, told_once
from tensortrail.reporters.short_notes import short_notes
from tensortrail.reporters.summary import closing, place_of

Paint = Callable[[str, str], str]
_LINES_SHOWN = 6
_SIBLINGS_SHOWN = 5
_NARROWEST = 40
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
_HOW = {
    Safety.SAFE: "apply with {}",
    Safety.UNSAFE: "unsafe: apply with {} --unsafe-fixes",
    Safety.DISPLAY: "to be made by hand",
}
_DIFF = {"+": "green", "-": "red", "@": "dim"}


def render(report: Report, *, color: bool = False, width: int = 100) -> str:
    paint = _painter() if color else _plain
    in_full, in_short = _by_detail(report)
    blocks = [
        "\n".join((*_finding(finding, paint, width, report.fix_with), *_repeated(others, paint)))
        for finding, others in told_once(in_full)
    ]
    blocks += ["\n".join(short_notes(in_short, paint))] if in_short else []
    problems = [f"{paint('bold yellow', 'problem')}: {inert(each)}" for each in report.problems]
    blocks += ["\n".join(problems)] if problems else []
    blocks += ["\n".join(map(inert, report.notes))] if report.notes else []
    style = "bold" if report.findings or problems else "bold green"
    return "\n\n".join([*blocks, paint(style, closing(report))])


def _by_detail(report: Report) -> tuple[list[Finding], list[Finding]]:
    """What is shown in full, and the notes that are shown in short."""
    full: list[Finding] = []
    short: list[Finding] = []
    for each in report.findings:
        is_short = report.short_notes and each.severity is Severity.NOTE
        (short if is_short else full).append(each)
    return full, short


@dataclass(frozen=True)
class _Sheet:
    """One finding's layout: a gutter for line numbers, and what stands right of it."""

    paint: Paint
    gutter: int
    room: int

    def row(self, text: str = "", number: int | None = None) -> str:
        label = "" if number is None else str(number)
        bar = self.paint("bright_blue", f"{label:>{self.gutter}} |")
        return f"{bar} {text}" if text else bar

    def arrow(self, site: Site, column: bool = True) -> str:
        place = place_of(site, column)
        arrow = " " * self.gutter + "-->"
        return f"{self.paint('bright_blue', arrow)} {place}"


def _finding(finding: Finding, paint: Paint, width: int, fix_with: str) -> Iterator[str]:
    sites = [finding.site, *(step.site for step in finding.trail)]
    gutter = max(len(str(max(site.line, site.end_line))) for site in sites)
    sheet = _Sheet(paint, gutter, max(width, _NARROWEST) - gutter - 3)
    style = _STYLES[finding.severity]
    sure = finding.confidence is Confidence.HIGH
    doubt = "" if sure else " " + paint("dim", f"({finding.confidence.value} confidence)")
    head = paint(style, f"{finding.severity.value}[{inert(finding.code)}]")
    yield f"{head} {paint('bold', inert(finding.name))}: {headline(finding.message)}{doubt}"
    yield sheet.arrow(finding.site)
    yield from _source(finding.site, sheet, style)
    for number, step in enumerate(finding.trail, 1):
        yield f"{paint('bold cyan', f'note {number}')}: {headline(step.message)}"
        if place_of(step.site) == place_of(finding.site):
            continue  # it is shown above
        yield sheet.arrow(step.site)
        if step.site.source:
            line = step.site.source.split("\n")[0].rstrip()
            yield sheet.row(excerpt(line, room=sheet.room).text, step.site.line)
    for fix in finding.fixes:
        yield from _fix(fix, sheet, fix_with)
    for setting in finding.settings:
        yield f"{paint('bold green', 'setting')}: {_setting(setting)}"
    if finding.evidence:
        seen = ", ".join(f"{name} {value}" for name, value in finding.evidence.items())
        yield f"{paint('bold cyan', 'seen')}: {inert(seen)}"
    if finding.siblings:
        yield from _siblings(finding.siblings, sheet)


def _repeated(others: Sequence[Finding], paint: Paint) -> Iterator[str]:
    if others:
        where = f"{len(others)} more findings say this of lines {lines_of(others)}"
        yield f"{paint('bold cyan', 'the same')}: {where}"


def _source(site: Site, sheet: _Sheet, style: str) -> Iterator[str]:
    if not site.source:
        return
    lines = site.source.split("\n")
    yield sheet.row()
    for index, line in enumerate(lines[:_LINES_SHOWN]):
        text = line.rstrip()
        start = site.column - 1 if index == 0 else len(text) - len(text.lstrip())
        end = site.end_column - 1 if index == len(lines) - 1 else len(text)
        part = excerpt(text, start, end, sheet.room)
        yield sheet.row(part.text, site.line + index)
        if text or len(lines) == 1:
            carets = sheet.paint(style, "^" * max(part.length, 1))
            yield sheet.row(" " * part.offset + carets)
    if len(lines) > _LINES_SHOWN:
        yield sheet.row(f"... {len(lines) - _LINES_SHOWN} more lines")


def _fix(fix: Fix, sheet: _Sheet, fix_with: str) -> Iterator[str]:
    how = sheet.paint("dim", f"({_HOW[fix.safety].format(fix_with)})")
    yield f"{sheet.paint('bold green', 'fix')}: {inert(fix.description)} {how}"
    for line in diff_lines(fix.preview, sheet.room) if fix.preview else ():
        yield sheet.row(sheet.paint(_DIFF.get(line[:1], ""), line))


def _setting(setting: Setting) -> str:
    where = f" ({inert(setting.place)})" if setting.place else ""
    return inert(f"{setting.library} {setting.name}={setting.value} - {setting.why}") + where


def _siblings(siblings: Sequence[Site], sheet: _Sheet) -> Iterator[str]:
    count = len(siblings)
    yield f"{sheet.paint('bold cyan', 'same pattern')}: {count} other place{'s' * (count > 1)}"
    for site in siblings[:_SIBLINGS_SHOWN]:
        yield sheet.arrow(site, column=False)
    if count > _SIBLINGS_SHOWN:
        yield sheet.row(f"... and {count - _SIBLINGS_SHOWN} more")


def _plain(style: str, text: str) -> str:
    return text


def _painter() -> Paint:
    from rich.color import ColorSystem
    from rich.style import Style

    def paint(style: str, text: str) -> str:
        if not (style and text):
            return text
        return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)

    return paint
