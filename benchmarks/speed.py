"""The lint beside its peers and its budgets, in one run: CPU seconds, and as ratios to ruff.

    python benchmarks/speed.py TREE [--peers DIR] [--select CODES]

Peers are found on PATH or in DIR/bin: ruff, ast-grep, torchfix, fixit. Those that are missing are
named with the line that installs them; nothing is installed here. The tree is copied, as five of
its files are changed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FEW = 5
BUFFERS = (35_000, 95_000)
"""Bytes of files that are edited."""
_EDITED = """
import sys, time
from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.judging.engine import Checker
path = sys.argv[1]
data = open(path, "rb").read()
checker = Checker(CheckRequest(cache_dir=None, siblings=False))
checker(path, data)
times = []
for number in range(7):
    data += b"\\nchanged = %d\\n" % number
    begun = time.thread_time()
    checker(path, data)
    times.append(time.thread_time() - begun)
print(sorted(times)[3])
"""


class Row(NamedTuple):
    name: str
    cpu: float
    megabytes: float = 0


class Budget(NamedTuple):
    """What is allowed: seconds, or times what ruff takes."""

    row: Row
    allowed: float
    is_ratio: bool = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--peers", type=Path, help="a virtual environment that has the peers")
    parser.add_argument("--select", default="DEFAULT", help="the rules that run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree", options.tree.name)
        shutil.copytree(options.tree, tree, ignore=shutil.ignore_patterns("*.so", "*.pyc"))
        files = sorted(tree.rglob("*.py"))
        lines = sum(file.read_bytes().count(b"\n") for file in files)
        print(f"{options.tree}: {lines:,} lines, rules {options.select}")
        budgets = list(_budgets(tree, files, Path(folder, "cache"), options.select))
        peers = [row for each in PEERS if (row := _peer(each, tree, options.peers)) is not None]
    _show([*(each.row for each in budgets), *peers], lines)
    ruff = next((each.cpu for each in peers if each.name == "ruff"), None)
    _show_budgets(budgets, ruff)


def _budgets(tree: Path, files: list[Path], cache: Path, select: str) -> Iterator[Budget]:
    checked = ["-m", "tensortrail", "check", str(tree), "--exit-zero"]
    checked += ["--isolated", "--output-format", "concise", "--jobs", "1", "--select", select]
    kept = [*checked, "--cache-dir", str(cache)]
    clean = tree.parent / "clean.py"
    clean.write_text("x = 1\n", encoding="utf-8")
    start = ["-m", "tensortrail", "check", str(clean), "--isolated", "--no-cache"]
    _timed("", start)  # the index of the rules is made
    yield Budget(_timed("start", start), 0.06)
    yield Budget(_timed("cold", kept), 1.0, is_ratio=True)
    yield Budget(_timed("warm", kept), 0.1, is_ratio=True)
    for each in _spread(files, FEW):
        each.write_bytes(each.read_bytes() + b"\n# changed\n")
    yield Budget(_timed(f"{FEW} changed files", kept), 0.15)
    for size in BUFFERS:
        file = min(files, key=lambda each: abs(each.stat().st_size - size))
        done = subprocess.run(
            [sys.executable, "-c", _EDITED, str(file)], capture_output=True, text=True, check=True
        )
        yield Budget(Row(f"open file, {file.stat().st_size // 1000} KB", float(done.stdout)), 0.05)


def _spread(files: list[Path], count: int) -> list[Path]:
    """Files from all over the tree that import torch."""
    wanted = [each for each in files if b"import torch" in each.read_bytes()]
    return wanted[:: max(1, len(wanted) // count)][:count]


PEERS = {
    "ruff": (["ruff", "check", "--isolated", "--no-cache", "--exit-zero"], "ruff"),
    "ast-grep": (
        ["ast-grep", "run", "-l", "py", "-p", "$X.device == $Y", "-j", "1"],
        "ast-grep-cli",
    ),
    "torchfix": (["torchfix", "--select", "ALL"], "torchfix"),
    "fixit": (["fixit", "--quiet", "lint"], "fixit"),
}


def _peer(name: str, tree: Path, peers: Path | None) -> Row | None:
    command, package = PEERS[name]
    places = [str(peers / "bin")] if peers else []
    found = shutil.which(command[0], path=os.pathsep.join([*places, os.environ["PATH"]]))
    if found is None:
        print(f"{name} is not here: pip install {package}")
        return None
    return _timed(name, [*command[1:], str(tree)], found)


def _timed(name: str, arguments: list[str], program: str = sys.executable) -> Row:
    """CPU seconds and the peak of memory of the process; of its children too for the seconds."""
    environment = {**os.environ, "RAYON_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # every start would compile the tool
    with open(os.devnull, "wb") as nothing:
        process = subprocess.Popen(
            [program, *arguments], stdout=nothing, stderr=nothing, env=environment
        )
        _, _, usage = os.wait4(process.pid, 0)
    return Row(name, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def _show(rows: list[Row], lines: int) -> None:
    print(f"{'':<24}{'CPU s':>9}{'CPU s / 1 M lines':>20}{'peak MB':>10}")
    for row in rows:
        print(f"{row.name:<24}{row.cpu:>9.2f}{row.cpu * 1e6 / lines:>20.2f}{row.megabytes:>10.0f}")


def _show_budgets(budgets: list[Budget], ruff: float | None) -> None:
    """Bars: `#` up to what is taken, `|` where the budget ends; one `#` is a fifth of it."""
    print("\nBudgets, a fifth of each a sign:")
    for row, allowed, is_ratio in budgets:
        if is_ratio and ruff is None:
            continue
        taken = row.cpu / ruff if is_ratio and ruff is not None else row.cpu
        parts = round(5 * taken / allowed)
        bar = "#" * min(parts, 5) + "." * max(0, 5 - parts) + "|" + "#" * min(parts - 5, 40)
        unit = "x ruff" if is_ratio else " s"
        print(f"{row.name:<24}{taken:>8.2f}{unit} of {allowed}{unit:<8}{bar}")


if __name__ == "__main__":
    main()
