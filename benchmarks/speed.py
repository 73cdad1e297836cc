"""The lint beside its peers, in one run: CPU seconds for each million lines, and as ratios.

    python benchmarks/speed.py TREE [--peers DIR]

Peers are found on PATH or in DIR/bin: ruff, ast-grep, torchfix, fixit. Those that are missing are
named with the line that installs them; nothing is installed here.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Row:
    name: str
    cpu: float
    wall: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--peers", type=Path, help="a virtual environment that has the peers")
    options = parser.parse_args()
    lines = sum(file.read_bytes().count(b"\n") for file in options.tree.rglob("*.py"))
    print(f"{options.tree}: {lines:,} lines")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as cache:
        own = [sys.executable, "-m", "tensortrail", "check", str(options.tree), "--exit-zero"]
        own += ["--no-siblings", "--isolated", "--output-format", "concise", "--jobs", "1"]
        rows.append(timed("tensortrail, cold", [*own, "--no-cache"]))
        timed("", [*own, "--cache-dir", cache])
        rows.append(timed("tensortrail, warm", [*own, "--cache-dir", cache]))
    rows.append(timed("tensortrail, start", [sys.executable, "-m", "tensortrail", "--version"]))
    few = sorted(options.tree.rglob("*.py"))[:5]
    own5 = [sys.executable, "-m", "tensortrail", "check", *map(str, few), "--exit-zero"]
    rows.append(timed("tensortrail, 5 files", [*own5, "--no-cache", "--isolated"]))
    rows += [row for row in (peer_row(peer, options) for peer in PEERS) if row is not None]
    show(rows, lines)


PEERS = {
    "ruff": (
        ["ruff", "check", "--isolated", "--no-cache", "--select", "F,E9", "--exit-zero"],
        "ruff",
    ),
    "ast-grep": (
        ["ast-grep", "run", "-l", "py", "-p", "$X.device == $Y", "-j", "1"],
        "ast-grep-cli",
    ),
    "torchfix": (["torchfix", "--select", "ALL"], "torchfix"),
    "fixit": (["fixit", "--quiet", "lint"], "fixit"),
}


def peer_row(name: str, options: argparse.Namespace) -> Row | None:
    command, package = PEERS[name]
    folder = str(options.peers / "bin") if options.peers else ""
    found = shutil.which(
        command[0], path=os.pathsep.join(filter(None, [folder, os.environ["PATH"]]))
    )
    if found is None:
        print(f"{name} is not here: pip install {package}")
        return None
    return timed(name, [found, *command[1:], str(options.tree)])


def timed(name: str, command: list[str]) -> Row:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    times = os.times()
    environment = {**os.environ, "RAYON_NUM_THREADS": "1", "TMPDIR": tempfile.gettempdir()}
    subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Row(name, cpu, os.times().elapsed - times.elapsed)


def show(rows: list[Row], lines: int) -> None:
    base = rows[0].cpu
    print(f"{'':<22}{'CPU s':>9}{'wall s':>9}{'CPU s / 1 M lines':>20}{'ratio to cold':>15}")
    for row in rows:
        share = row.cpu * 1e6 / lines
        print(f"{row.name:<22}{row.cpu:>9.2f}{row.wall:>9.2f}{share:>20.2f}{row.cpu / base:>15.2f}")


if __name__ == "__main__":
    main()
