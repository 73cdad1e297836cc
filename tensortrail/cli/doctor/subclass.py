"""`tensortrail doctor subclass module:Class`: what checkpoints, sharding, offloading and compiling
need of a wrapper tensor subclass, and whether it does that."""

from __future__ import annotations

import shutil
import sys
import tempfile
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from io import StringIO
from typing import TYPE_CHECKING, Any

from tensortrail.cli.console import fail, wants_color, write_text
from tensortrail.cli.exit_codes import CLEAN, FAILED, FOUND
from tensortrail.cli.extras import install, lacking
from tensortrail.files import write

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from tensortrail.doctor.subclass.words import Examination, Row

OPERATION, VERDICT = 36, 16
COLORS = {"handled": "green", "not applicable": "dim"}


def run(options: Namespace) -> int:
    if package := lacking("trace"):
        fail(f"{package} is not installed here", f"the operations are run: {install('trace')}")
        return FAILED
    from tensortrail.doctor.subclass.words import CannotMake
    from tensortrail.tracer.rehearsal.devices.spec import SpecError

    try:
        with _rehearsing(options.rehearse):
            found = _examined(options)
    except (CannotMake, SpecError) as error:
        fail(str(error))
        return FAILED
    if not found.rows:
        fail(f"no use is named {' or '.join(options.use)}")
        return FAILED
    failing = found.unexcused(options.except_for)
    if options.format == "json":
        text = _json(found, failing)
    else:
        color = options.output is None and wants_color(options.color, sys.stdout)
        text = _text(found, failing, color, shutil.get_terminal_size((100, 40)).columns)
    if options.output is None:
        write_text(text, sys.stdout)
    else:
        write(options.output, text.encode())
    return FOUND if failing else CLEAN


def _examined(options: Namespace) -> Examination:
    from tensortrail.doctor.subclass.examine import examine
    from tensortrail.doctor.subclass.resolve import maker

    with redirect_stdout(sys.stderr):
        return examine(maker(options.subclass, options.make), options.use)


@contextmanager
def _rehearsing(devices: str) -> Iterator[None]:
    if not devices:
        yield
        return
    from tensortrail.doctor.subclass import looks
    from tensortrail.tracer.recording.begin import begin
    from tensortrail.tracer.recording.options import Options
    from tensortrail.tracer.rehearsal.devices.spec import parse_spec
    from tensortrail.tracer.rehearsal.tensor.simulated import SimParameter, SimTensor

    spec = parse_spec(devices)
    with tempfile.TemporaryDirectory() as folder:
        running = begin(folder, Options(rehearse=spec))
        looks.PLAIN.update((SimTensor, SimParameter))
        try:
            yield
        finally:
            looks.PLAIN.difference_update((SimTensor, SimParameter))
            running.stop()


def _json(found: Examination, failing: tuple[Row, ...]) -> str:
    from tensortrail.reporters.jsontext import to_json

    rows: list[dict[str, Any]] = [
        {**asdict(row), "verdict": row.verdict.value, "codes": list(row.codes)}
        | {"excused": row.verdict.fails and row not in failing}
        for row in found.rows
    ]
    about = {"class": found.kind, "instance": found.about, "versions": found.versions}
    return to_json({**about, "failing": len(failing), "rows": rows}) + "\n"


def _text(found: Examination, failing: tuple[Row, ...], color: bool, width: int) -> str:
    from rich.console import Console
    from rich.text import Text

    from tensortrail.inert import inert

    out = StringIO()
    console = Console(
        file=out, width=max(width, 80), force_terminal=color, no_color=not color, highlight=False
    )
    console.print(Text(inert(f"{found.kind}: {found.about}"), style="bold"))
    console.print(Text(inert(found.versions)))
    for use in dict.fromkeys(row.use for row in found.rows):
        console.print()
        console.print(_table(use, [row for row in found.rows if row.use == use], failing))
    console.print()
    console.print(Text(_summary(found, failing)))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def _table(use: str, rows: list[Row], failing: tuple[Row, ...]) -> Table:
    """Of one use: each operation, how it was answered, and what that breaks."""
    from rich.table import Table

    tried = [row for row in rows if row.verdict.value != "not applicable"]
    bad = sum(row.verdict.fails for row in rows)
    title = f"{use}: {bad} of {len(tried)} fail" if bad else f"{use}: all {len(tried)} handled"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, expand=True)
    table.add_column("operation", width=OPERATION, overflow="fold")
    table.add_column("verdict", width=VERDICT, overflow="fold")
    table.add_column("the result, and what fails because of it", ratio=1, overflow="fold")
    for row in rows:
        table.add_row(*_cells(row, excused=row.verdict.fails and row not in failing))
    return table


def _cells(row: Row, excused: bool) -> Iterator[Text]:
    from rich.text import Text

    from tensortrail.inert import inert

    verdict = row.verdict.value
    yield Text(row.op)
    yield Text(f"{verdict} (excused)" if excused else verdict, style=COLORS.get(verdict, "red"))
    told = inert(row.told)
    yield Text(f"{told}\n{row.breaks} [{', '.join(row.codes)}]" if row.breaks else told)


def _summary(found: Examination, failing: tuple[Row, ...]) -> str:
    counts = Counter(row.verdict.value for row in found.rows)
    told = ", ".join(f"{count} {value}" for value, count in counts.items())
    excused = len(found.failing) - len(failing)
    return told + (f"; {excused} excused" if excused else "")
