"""Two checkouts say the same: findings, reports, pages and trails, text for text.

    python benchmarks/same_runs.py BEFORE AFTER [--keep FOLDER]

Both judge `examples/` and every example of every rule of BEFORE, and record ten programs; both
then read the recordings of BEFORE. Of new recordings, times and process numbers are left out."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from same_programs import PROGRAMS

FORMATS = ("text", "html", "perfetto", "jsonl", "json")
CHECKS = (
    ("findings", ("check", ".", "--select", "ALL", "--output-format", "json")),
    ("default", ("check", ".", "--output-format", "text")),
    ("fixes", ("check", ".", "--select", "ALL", "--diff", "--unsafe-fixes")),
)
PASSING = ("time", "pid", "process", "address")
MOST_LINES = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--keep", type=Path, help="leave what both said in this folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = (options.keep or Path(made)).resolve()
        code, runs = folder / "code", folder / "runs"
        _write_code(options.before.resolve(), code)
        said = []
        for name, checkout in (("before", options.before), ("after", options.after)):
            out = folder / name
            out.mkdir(parents=True, exist_ok=True)
            _record(checkout.resolve(), out / "recorded")
            if not runs.exists():
                shutil.copytree(out / "recorded", runs)
            _ask(checkout.resolve(), "--say", code, runs, out)
            said.append({path.relative_to(out): path for path in _texts(out)})
        return _compared(*said)


def _ask(checkout: Path, what: str, *paths: Path) -> None:
    """Run this file with the package of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(checkout), "COLUMNS": "120"}
    command = [sys.executable, __file__, what, *map(str, paths)]
    subprocess.run(command, env=environment, check=True)


def _write_code(before: Path, code: Path) -> None:
    shutil.copytree(before / "examples", code / "examples", dirs_exist_ok=True)
    _ask(before, "--examples", code)


def _record(checkout: Path, folder: Path) -> None:
    """Each program writes `run.jsonl`, without what no two runs have in common."""
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    for name, program in PROGRAMS.items():
        place = folder / name
        place.mkdir(parents=True)
        (place / "program.py").write_text(program.source, encoding="utf-8")
        command = [sys.executable, "-m", "tensortrail", "trace", "--directory", "run"]
        command += [*program.options, "program.py"]
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, check=False
        )
        told = re.sub(
            r"0x[0-9a-f]+|\d+\.\d+ ?s\b", "", f"{done.returncode}\n{done.stdout}{done.stderr}"
        )
        (place / "told.txt").write_text(
            told.replace(str(checkout), "").replace(str(place), ""), encoding="utf-8"
        )


# --- in a process of its own, with one checkout's package -------------------------------------
def examples(code: Path) -> None:
    from tensortrail.rules import all_rules

    for name, rule in all_rules().items():
        for number, each in enumerate([*rule.bad, *rule.good]):
            for path, text in {each.path: each.source, **each.files}.items():
                file = code / "rules" / f"{name}_{number}" / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")


def say(code: Path, runs: Path, out: Path) -> None:
    os.chdir(code)
    for name, command in CHECKS:
        text = _output([*command, "--no-cache", "--isolated", "--jobs", "1"])
        (out / f"{name}.txt").write_text(text, encoding="utf-8")
    for run in sorted(runs.iterdir()):
        for kind in FORMATS:
            file = out / f"{run.name}.{kind}.txt"
            _output(["report", str(run / "run"), "--format", kind, "-o", str(file)])
    for run in sorted((out / "recorded").iterdir()):
        file = run / "events.txt"
        _output(["report", str(run / "run"), "--format", "jsonl", "-o", str(file)])
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        kept = [{key: row[key] for key in row if key not in PASSING} for row in lines]
        text = "\n".join(json.dumps(row, sort_keys=True) for row in kept)
        file.write_text(text.replace(str(run), "") + "\n", encoding="utf-8")


def _output(arguments: list[str]) -> str:
    from tensortrail.cli import main as command

    written = io.StringIO()
    with contextlib.redirect_stdout(written), contextlib.redirect_stderr(written):
        try:
            code = command(arguments)
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 2
    return f"{written.getvalue()}\nexit code {code}\n"


# --- and both held against each other ---------------------------------------------------------
def _texts(out: Path) -> Iterator[Path]:
    yield from sorted(out.rglob("*.txt"))


def _compared(before: dict[Path, Path], after: dict[Path, Path]) -> int:
    different = 0
    for name in sorted(before.keys() | after.keys()):
        texts = [
            found[name].read_text("utf-8") if name in found else "" for found in (before, after)
        ]
        if texts[0] != texts[1]:
            different += 1
            lines = difflib.unified_diff(*(text.splitlines() for text in texts), lineterm="", n=0)
            print(f"DIFFERENT {name}", *[line[:200] for line in lines][:MOST_LINES], sep="\n  ")
    size = sum(path.stat().st_size for path in before.values())
    print(f"{len(before)} texts of {size / 1e6:.1f} MB, {different} of them different")
    return bool(different)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--examples"]:
        examples(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["--say"]:
        say(*map(Path, sys.argv[2:5]))
    else:
        sys.exit(main())
