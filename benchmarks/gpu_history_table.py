"""The verdicts on fixes of the past, as tables of the guide to GPU tests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "gpu_history.jsonl"
GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "gpu-tests.md"
BEGIN, END = "<!-- written by benchmarks.gpu_history -->", "<!-- end of gpu_history -->"
HEAD = (
    "| project | fixes tried | found by the rehearsal alone | explained | line named |\n"
    "| --- | --- | --- | --- | --- |"
)
TITLES = {"theirs": "With the project's own test:", "ours": "With a test written for this:"}
Row = dict[str, Any]


def recorded() -> list[Row]:
    if not RESULTS.is_file():
        return []
    return [json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines()]


def summary() -> str:
    parts = []
    for test, title in TITLES.items():
        rows = [row for row in recorded() if row["test"] == test]
        if rows:
            parts += [title, table(rows)]
            if reasons := not_told(rows):
                parts += ["Not found, by reason:", reasons]
    return "\n\n".join(parts)


def table(rows: Sequence[Row]) -> str:
    projects = sorted({row["project"] for row in rows})
    lines = [_line(name, [row for row in rows if row["project"] == name]) for name in projects]
    return "\n".join([HEAD, *lines, _line("all", rows)])


def _line(name: str, rows: Sequence[Row]) -> str:
    told = [row for row in rows if row["told_apart"]]
    explained = sum(row["explained"] for row in told)
    named = sum(row["names_the_line"] for row in told)
    return f"| {name} | {len(rows)} | {len(told)} | {explained} | {named} |"


def not_told(rows: Iterable[Row]) -> str:
    reasons = Counter(kind(row["why"]) for row in rows if not row["told_apart"])
    lines = [f"| {count} | {reason} |" for reason, count in reasons.most_common()]
    return "\n".join(["| fixes | reason |", "| --- | --- |", *lines]) if lines else ""


def kind(why: str) -> str:
    return why.partition(":")[0]


def write_guide() -> None:
    before, _, rest = GUIDE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    GUIDE.write_text(f"{before}{BEGIN}\n\n{summary()}\n\n{END}{after}", encoding="utf-8")
