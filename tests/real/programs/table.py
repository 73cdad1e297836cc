"""The table of docs/programs.md: what a program says by itself, what is added, what a patch does.

`python -m tests.real.programs.table [NAME ...]` runs these, or all of them, and writes it."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tensortrail.rules.runs.cause_told import CauseTold
from tensortrail.tracer.exports.finding_lines import TOLD
from tests.real.programs.cases import CASES, HERE, Case, Ended, again, patch, traced

PAGE = Path(__file__).parents[3] / "docs" / "programs.md"
TITLE = "tensortrail: what was where"
LONGEST = 420
HEAD = """\
# Programs that fail

These programs fail as programs of users do. Each was run on a CPU with the real libraries. The
table shows the error, the finding with its cause, and the change that `tensortrail trace` suggests.
If `tensortrail fix` has a patch, it was applied and the program was run again.

The programs are in `tests/real/programs/failing`. `python -m tests.real.programs.table` writes this
page; a test compares it with the runs.

| program | the error | what tensortrail reports | change | patch |
| --- | --- | --- | --- | --- |
"""


def row(case: Case, ended: Ended, runs_now: bool) -> str:
    assert ended.found, f"{case.name}:\n{ended.told}"
    told = ended.told.replace(str(ended.folder), "")
    options = f" `--rehearse {case.rehearse}`" if case.rehearse else ""
    tried = "with it, it runs to its end" if runs_now else "none"
    found = next(each for each in ended.found if each.split()[1] == case.words[0])
    cells = (_error(told), _short(_whole(found, told)), _change(told), tried)
    return f"| {' | '.join((f'`{case.name}`{options}: {_story(case)}', *map(_cell, cells)))} |\n"


def _whole(found: str, told: str) -> str:
    """With the words of the explanation, where the last lines leave it to that."""
    code = found.split()[1]
    before = "" if code == CauseTold.code else f"{code} "
    said = re.search(rf"^  (?:cause|also) +{before}(.+)$", told, re.MULTILINE)
    if not found.endswith(TOLD) or said is None:
        return found
    return found.removesuffix(TOLD) + re.sub(r" \([\w./-]+:\d+(?: in [^()]+)?\)$", "", said[1])


def _story(case: Case) -> str:
    """The program's docstring, if it has one."""
    found = re.match(r'"""(.+?)"""', (HERE / f"{case.name}.py").read_text())
    return found[1] if found else case.name


def _error(told: str) -> str:
    before = told.partition("tensortrail: ")[0]
    found = re.findall(
        r"^(?:E +|\[rank\d+\]: +)?((?:[\w.]*(?:Error|Exception)|torch\.[\w.]+): .*)$",
        before,
        re.MULTILINE,
    )
    return _short(found[-1], 160) if found else "none: it catches or never raises one"


def _change(told: str) -> str:
    found = re.search(r"^  (?:change|setting|argument) +(.+)$", told, re.MULTILINE)
    return _short(found[1]) if found else ""


def _short(text: str, most: int = LONGEST) -> str:
    """Without colours, and without what is another one in each run."""
    text = re.sub(r"\x1b\[\d*m", "", text)
    text = re.sub(r"\b0x[0-9a-f]{6,}", "0x...", text)
    text = re.sub(r"(?<!\w)/(?:tmp|var)/[\w./\-]*/", "", text)
    return text if len(text) <= most else f"{text[:most].rpartition(' ')[0]} ..."


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def row_of(case: Case, folder: Path) -> str:
    ended = traced(case, folder)
    if case.patched:
        patch(case, folder)
    return row(case, ended, case.patched and again(case, folder, "patched").code == 0)


def main(names: Sequence[str]) -> None:
    """Rows of programs that are not named stay as they are."""
    old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    lines = [each for each in old.splitlines(keepends=True) if each.startswith("| `")]
    rows = {each[3 : each.index("`", 3)]: each for each in lines}
    for case in CASES:
        if not names or case.name in names:
            with tempfile.TemporaryDirectory() as folder:
                rows[case.name] = row_of(case, Path(folder))
        page = HEAD + "".join(rows[each.name] for each in CASES if each.name in rows)
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
