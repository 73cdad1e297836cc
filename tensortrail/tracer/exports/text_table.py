"""A table of the text report."""

from __future__ import annotations

from typing import Any

from tensortrail.inert import inert
from tensortrail.rules.timeline import Event
from tensortrail.tracer.reading.sentences import place

ROWS = 12


def table_of(title: str, *columns: tuple[str, str]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for name, justify in columns:
        table.add_column(
            name,
            justify=justify,  # type: ignore[arg-type]
            overflow="fold",
            no_wrap=name in ("over time", "device", "way"),
        )
    return table


def cells(*values: Any) -> list[Any]:
    from rich.text import Text

    return [Text(inert(str(value))) for value in values]


def where(event: Event) -> str:
    at = place(event.site or event.by)
    return at if event.process == "main" else f"{at} ({event.process})"
