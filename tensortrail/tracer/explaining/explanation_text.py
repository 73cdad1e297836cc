"""An explanation is written as lines for a terminal."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Sequence

from tensortrail.findings import Setting, Site
from tensortrail.inert import inert
from tensortrail.plurals import counted
from tensortrail.rules.shared.sizes import dimensions, memory
from tensortrail.rules.shared.told_causes import sentence
from tensortrail.rules.timeline import Did, Event
from tensortrail.tracer.explaining import memory_table
from tensortrail.tracer.explaining.explanation import Explanation
from tensortrail.tracer.explaining.operand import Operand
from tensortrail.tracer.reading.roots import line_of
from tensortrail.tracer.reading.sentences import short, who

Paint = Callable[[str, str], str]
_CODES = {"bold": "1", "red": "1;31", "cyan": "1;36", "green": "1;32", "dim": "2"}
MOST_SHOWN = 80
MOST_OF_ERROR = 120
_VERBS = {Did.CREATE: "made", Did.LOAD: "read", Did.SWAP: "put in place", Did.STAGE: "staged"}


def render(
    explanations: Sequence[Explanation], color: bool = False, rank: int | None = None
) -> str:
    """With a rank, each line begins with it: the lines of several ranks come mixed."""
    if not explanations:
        return ""
    paint: Paint = _colored if color else lambda _, text: text
    before = "" if rank is None else f"[rank {rank}] "
    title = paint("bold", "tensortrail: what was where")
    lines = [title, *(line for each in explanations for line in _lines(each, paint))]
    return "".join(f"{before}{line}\n" for line in lines)


def _colored(style: str, text: str) -> str:
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def _lines(told: Explanation, paint: Paint) -> Iterator[str]:
    if told.of_several:
        yield f"  {paint('red', 'error')}    {inert(_clipped(told.error))}"
    for hidden in told.hidden:
        yield f"  {paint('red', 'behind it')}  {inert(hidden)}"
    if told.op:
        place = f" at {_place(told.at)}" if told.at else ""
        given = " was given" if told.operands else ""
        yield f"  {paint('bold', inert(told.op))}{place}{_thread(told)}{given}"
    elif told.at is not None and told.cause is not None and not told.findings:
        yield f"  {paint('bold', 'at')}       {_place(told.at)}{_source(told.at)}"
    yield from _operands(told.operands, paint)
    if told.met is not None and told.first is not None:
        where = f" at {_place(told.met.site)}" if told.met.site else ""
        devices = " and ".join(map(str, told.met.facts.get("devices", ())))
        yield f"  {paint('bold', 'it began')}{where}: {devices} met in {inert(told.met.op)}"
        yield from _operands((told.first,), paint)
    if told.needed:
        yield f"  {paint('bold', 'needed')}   {inert(told.needed)}"
    if told.filled:
        yield from _filled(told, paint)
    if told.holders:
        yield f"  {paint('bold', 'held by')}  {inert(', '.join(told.holders))}"
    if told.findings:
        yield from _found(told, paint)
    elif told.cause is not None:
        yield f"  {paint('cyan', 'cause')}    {sentence(told.cause.cause)}"
        if told.cause.advice:
            yield f"  {paint('green', 'change')}   {sentence(told.cause.advice)}"
    for setting in told.settings:
        yield f"  {_setting(setting, paint)}"
    if not told.findings and told.cause is not None and told.cause.see:
        yield f"  {paint('dim', 'see')}      {', '.join(told.cause.see)}"
    if told.alike:
        errors = counted(told.alike, "more error")
        yield f"  {paint('dim', 'alike')}    {errors} of the group came about in the same way"


def _clipped(message: str) -> str:
    return message if len(message) <= MOST_OF_ERROR else f"{message[: MOST_OF_ERROR - 3]}..."


def _filled(told: Explanation, paint: Paint) -> Iterator[str]:
    """What lies on the device: in all what the error says is allocated."""
    rows = [each.cells for each in memory_table.table(told.filled)]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    nbytes = memory(sum(each["bytes"] for each in told.filled))
    kinds = memory_table.by_kind(told.filled)
    yield f"  {paint('bold', 'filled')}   {nbytes} in all: {inert(kinds)}"
    for size, *cells, more in rows:
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths[1:], strict=True))
        grows = f"  {paint('red', more)}" if more else ""
        yield f"    {size:>{widths[0]}}  {inert(line)}{grows}".rstrip()


def _found(told: Explanation, paint: Paint) -> Iterator[str]:
    """The findings of this run: the same words that its report has."""
    for number, finding in enumerate(told.findings):
        here = told.at is not None and line_of(finding.site) == line_of(told.at)
        where = "" if here else f" ({_place(finding.site)})"
        label = paint("cyan", "cause") + "    " if number == 0 else paint("cyan", "also") + "     "
        yield f"  {label}{finding.code} {inert(finding.message)}{where}"
        for fix in finding.fixes:
            yield f"  {paint('green', 'change')}   {inert(fix.description)}"
        for setting in finding.settings:
            yield f"  {_setting(setting, paint)}"


def _operands(operands: Sequence[Operand], paint: Paint) -> Iterator[str]:
    rows = [(inert(each.argument), each.device, _tensor(each), each.name) for each in operands]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(3)]
    for operand, (argument, device, tensor, name) in zip(operands, rows, strict=True):
        shown = f"{device:<{widths[1]}}"
        shown = paint("red", shown) if operand.odd else shown
        line = f"    {argument:<{widths[0]}}  {shown}  {tensor:<{widths[2]}}"
        yield f"{line}  {paint('bold', inert(name))}".rstrip() if name else line.rstrip()
        indent = " " * (widths[0] + 6)
        for event in (operand.placed, operand.made):
            if event is not None:
                yield indent + _placed(event)
        if operand.hook:
            yield indent + inert(operand.hook)
        for site in operand.behind:
            yield f"{indent}from {_place(site)}: {inert(site.source)}"


def _tensor(operand: Operand) -> str:
    return f"{operand.dtype} {dimensions(operand.shape)}"


def _placed(event: Event) -> str:
    if event.did is Did.MOVE and event.storage and event.other:
        what = f"moved {event.other.device} -> {event.storage.device}"
    else:
        what = _VERBS.get(event.did, event.did.value)
    where = f" at {_place(event.site)}" if event.site else ""
    by = f" [{_place(event.by)}]" if event.by and event.site else ""
    path = f" from {inert(str(event.facts['path']))}" if event.facts.get("path") else ""
    hook = f" for {inert(str(event.facts['hook']))}" if event.facts.get("hook") else ""
    return f"{what}{path}{where}, {inert(event.op)}{by}{hook}{inert(who(event, within_rank=True))}"


def _thread(told: Explanation) -> str:
    return inert(who(told.raised, within_rank=True)) if told.raised is not None else ""


def _place(site: Site) -> str:
    function = f" in {site.function}" if site.function and site.function != "<module>" else ""
    return inert(f"{short(site.file)}:{site.line}{function}")


def _source(site: Site) -> str:
    line = linecache.getline(site.file, site.line).strip()[:MOST_SHOWN]
    return f": {inert(line)}" if line else ""


def _setting(setting: Setting, paint: Paint) -> str:
    label = "argument" if setting.is_argument else "setting "
    return f"{paint('green', label)} {inert(setting.said)}"
