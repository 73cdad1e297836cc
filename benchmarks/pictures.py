"""Pictures of the README, from real output: the terminal and the page of the demo's program.

python -m benchmarks.pictures   # needs chromium for the page
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tensortrail.cli.demo import PROGRAM

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
WIDTH, PAGE = 100, "1200,900"
BROWSER = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
           "--no-first-run", "--disable-background-networking", "--disable-sync")  # fmt: skip


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
        terminal(folder, PICTURES / "terminal.svg")
        if browser := shutil.which("chromium"):
            page(folder, browser, PICTURES / "page.png")


def terminal(folder: Path, picture: Path) -> None:
    done = _tensortrail(folder, "trace", "--rehearse", "cuda", "--color", "always", "train.py")
    told = "tensortrail: what was where" + done.stderr.partition("tensortrail: what was where")[2]
    error = next(each for each in done.stderr.splitlines() if each.startswith("RuntimeError"))
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text("$ tensortrail trace --rehearse cuda train.py", style="bold"))
    console.print(Text(done.stdout.strip()))
    console.print(Text(f"...\n{error}\n"))
    console.print(Text.from_ansi(told.replace(f"{folder}{os.sep}", "")))
    console.save_svg(str(picture), title="tensortrail")


def page(folder: Path, browser: str, picture: Path) -> None:
    _tensortrail(folder, "report", "--format", "html", "--output", "page.html")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [browser, *BROWSER, f"--user-data-dir={profile}", f"--window-size={PAGE}",
             f"--screenshot={picture}", (folder / "page.html").as_uri()],
            check=True, capture_output=True,
        )  # fmt: skip


def _tensortrail(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": str(WIDTH), "FORCE_COLOR": "1"}
    started = [sys.executable, "-m", "tensortrail", *command]
    return subprocess.run(started, cwd=folder, env=env, capture_output=True, text=True)


if __name__ == "__main__":
    main()
