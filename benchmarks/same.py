"""Whether a change of the analyzer changes a finding: two versions over the same files.

    python -m benchmarks.same OLD TREE... [--repeat N]

OLD is a checkout of the version to compare with. Both versions check every example of the rules of
OLD and every tree, in one process each, without a cache; the JSON has to be the same to the byte.
Printed with it: CPU nanoseconds a line, the least of N runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_EXAMPLES = """
import sys
from pathlib import Path
from tensortrail.rules import all_rules
for code, rule in all_rules().items():
    for number, each in enumerate([*rule.bad, *rule.good]):
        folder = Path(sys.argv[1], f"{code}_{number}")
        for name, text in {each.path: each.source, **each.files}.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="")
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    different = 0
    with tempfile.TemporaryDirectory() as folder:
        run(options.old, ["-c", _EXAMPLES, folder])
        for tree in [Path(folder), *options.trees]:
            before, old = checked(options.old, tree, options.repeat)
            after, new = checked(ROOT, tree, options.repeat)
            lines = sum(
                file.read_bytes().count(b"\n") for file in tree.rglob("*.py") if file.is_file()
            )
            same = old == new
            different += not same
            per_line = 1e9 / max(1, lines)
            print(
                f"{tree}: {lines:,} lines, {before * per_line:,.0f} -> {after * per_line:,.0f} ns "
                f"a line, {before:.1f} -> {after:.1f} s: {'the same' if same else 'DIFFERENT'}",
                flush=True,
            )
            if not same:
                show(old, new)
    return 1 if different else 0


def checked(version: Path, tree: Path, repeat: int) -> tuple[float, bytes]:
    """CPU seconds and the JSON of a check with that version."""
    command = ["-m", "tensortrail", "check", str(tree), "--no-cache", "--isolated", "--exit-zero"]
    command += ["--jobs", "1", "--output-format", "json", "--no-respect-gitignore"]
    runs = [run(version, command) for _ in range(repeat)]
    return min(seconds for seconds, _ in runs), runs[0][1]


def run(version: Path, arguments: list[str]) -> tuple[float, bytes]:
    environment = {**os.environ, "PYTHONPATH": str(version)}
    with tempfile.TemporaryFile() as out, tempfile.TemporaryDirectory() as elsewhere:
        process = subprocess.Popen(
            [sys.executable, *arguments], stdout=out, env=environment, cwd=elsewhere
        )
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{version}: {' '.join(arguments[:3])} ended with {status}")
        out.seek(0)
        return usage.ru_utime + usage.ru_stime, out.read()


def show(old: bytes, new: bytes) -> None:
    """The first lines that differ."""
    pairs = zip(old.split(b"\n"), new.split(b"\n"), strict=False)
    for one, other in [pair for pair in pairs if pair[0] != pair[1]][:5]:
        print(f"  - {one[:300]!r}\n  + {other[:300]!r}")


if __name__ == "__main__":
    sys.exit(main())
