"""For people at a terminal: the line, a caret, the trail, the fix, the setting."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator

from tensortrail.findings import Confidence, Finding, Fix, Report, Safety, Severity, Site
from tensortrail.reporters.inert import inert
from tensortrail.reporters.summary import closing

Paint = Callable[[str, str], str]
_LINES_SHOWN = 6
_SIBLINGS_SHOWN = 5
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}


def render(report: Report, *, color: bool = False, width: int = 100) -> str:
    paint = _painter() if color else _plain
    blocks = ["\n".join(_finding(finding, paint)) for finding in report.findings]
    problems = [paint("bold yellow", "problem: ") + inert(each) for each in report.problems]
    style = "bold green" if not report.findings else "bold"
    return "\n\n".join([*blocks, *problems, paint(style, closing(report))])


def _finding(finding: Finding, paint: Paint) -> Iterator[str]:
    style = _STYLES[finding.severity]
    doubt = (
        "" if finding.confidence is Confidence.HIGH else f" ({finding.confidence.value} confidence)"
    )
    head = paint(style, f"{finding.severity.value}[{finding.code}]")
    yield f"{head} {paint('bold', finding.name)}: {inert(finding.message)}{paint('dim', doubt)}"
    yield from _place(finding.site, paint, style)
    for number, step in enumerate(finding.trail, 1):
        yield f"  {paint('bold cyan', f'{number}.')} {inert(step.message)}"
        yield from _line(step.site, paint)
    for fix in finding.fixes:
        yield from _fix(fix, paint)
    for setting in finding.settings:
        where = f", {setting.where}" if setting.where else ""
        name = f"{setting.library}: {setting.name}={setting.value}{where}"
        yield f"  {paint('bold green', 'setting:')} {inert(name)}"
        yield f"    {inert(setting.why)}"
    if finding.siblings:
        shown = [f"{inert(each.file)}:{each.line}" for each in finding.siblings[:_SIBLINGS_SHOWN]]
        more = len(finding.siblings) - len(shown)
        rest = f" and {more} more" if more > 0 else ""
        yield f"  {paint('bold cyan', 'same shape at:')} {', '.join(shown)}{rest}"


def _place(site: Site, paint: Paint, style: str) -> Iterator[str]:
    yield f"  {paint('blue', '-->')} {inert(site.file)}:{site.line}:{site.column}"
    if not site.source:
        return
    lines = site.source.split("\n")
    gutter = len(str(site.line + len(lines) - 1))
    bar = paint("blue", "|")
    yield f" {' ' * gutter} {bar}"
    for index, text in enumerate(lines[:_LINES_SHOWN]):
        number = str(site.line + index).rjust(gutter)
        yield f" {paint('blue', number)} {bar} {_shown(text)}".rstrip()
        start = site.column - 1 if index == 0 else len(text) - len(text.lstrip())
        end = site.end_column - 1 if index == len(lines) - 1 else len(text.rstrip())
        carets = "^" * max(1, _columns(text[start:end]))
        yield f" {' ' * gutter} {bar} {' ' * _columns(text[:start])}{paint(style, carets)}"
    if len(lines) > _LINES_SHOWN:
        yield f" {' ' * gutter} {bar} ... {len(lines) - _LINES_SHOWN} more lines"


def _line(site: Site, paint: Paint) -> Iterator[str]:
    text = site.source.split("\n")[0].strip()
    place = paint("dim", f"{inert(site.file)}:{site.line}")
    yield f"     {place}" + (f"  {_shown(text)}" if text else "")


def _fix(fix: Fix, paint: Paint) -> Iterator[str]:
    note = {
        Safety.SAFE: "apply with --fix",
        Safety.UNSAFE: "unsafe: apply with --fix --unsafe-fixes",
        Safety.DISPLAY: "to be made by hand",
    }[fix.safety]
    yield f"  {paint('bold green', 'fix:')} {inert(fix.description)} {paint('dim', f'({note})')}"
    for line in fix.preview.split("\n") if fix.preview else ():
        style = {"+": "green", "-": "red", "@": "dim"}.get(line[:1], "")
        yield f"    {paint(style, _shown(line)) if style else _shown(line)}".rstrip()


def _shown(text: str) -> str:
    return inert(text.expandtabs(4))


def _columns(text: str) -> int:
    """How many columns a terminal takes for it, as `_shown` prints it."""
    return sum(_width(each) for each in _shown(text))


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) == "Cf":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _plain(style: str, text: str) -> str:
    return text


def _painter() -> Paint:
    from rich.color import ColorSystem
    from rich.style import Style

    def paint(style: str, text: str) -> str:
        return Style.parse(style).render(text, color_system=ColorSystem.STANDARD) if text else ""

    return paint
