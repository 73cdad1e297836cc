"""The commands of docs/guides/doctor.md and what they print.

`python -m tests.doctor.checkpoint.guide` writes it anew."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from tensortrail.doctor import plan_save
from tests.doctor.checkpoint.damages import DAMAGES
from tests.doctor.checkpoint.written import copy, write_all
from tests.doctor.saves.families import (
    FAMILIES,
    KILOBYTES,
    comes_back,
    offloaded,
    write_model,
)
from tests.doctor.saves.memory import MEASURED, measured

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "doctor.md"
BLOCK = re.compile(
    r"(<!-- damage: ?(\w*) -->\n```sh\n(tensortrail [^\n]*)\n```\n\n```\n)(.*?)(?=```)", re.DOTALL
)

SETTINGS = re.compile(
    r"(```yaml\n# (\S+)\n(.*?)```\n\n<!-- settings: \2 -->\n"
    r"```sh\n(tensortrail [^\n]*)\n```\n\n```\n)(.*?)(?=```)",
    re.DOTALL,
)
PLAN = re.compile(
    r"(<!-- plan -->\n```sh\n(tensortrail [^\n]*)\n```\n\n```\n)(.*?)(?=```)", re.DOTALL
)
PLACEMENT = re.compile(
    r"(<!-- placement -->\n```sh\n(tensortrail [^\n]*)\n```\n\n```\n)(.*?)(?=```)", re.DOTALL
)
TABLE = re.compile(r"(<!-- table of plans -->\n)(.*?)(<!-- end of table of plans -->)", re.DOTALL)


def current(page: str) -> str:
    """The page with what its commands print now."""
    page = SETTINGS.sub(lambda found: found[1] + of_settings(found[2], found[3], found[4]), page)
    return BLOCK.sub(lambda found: found[1] + printed(found[2], found[3]), page)


def of_settings(name: str, text: str, command: str) -> str:
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / name).write_text(text, encoding="utf-8")
        return ran(command, place)


def printed(name: str, command: str) -> str:
    damage = next((each for each in DAMAGES if each.name == name), None)
    base = damage.base if damage else "sharded"
    with tempfile.TemporaryDirectory() as place:
        write_all(Path(place) / "whole")
        folder = copy(Path(place) / "whole" / base, Path(place) / "my-model")
        if damage is not None:
            damage.do(folder)
        return ran(command, place)


def ran(command: str, place: str) -> str:
    words = [sys.executable, "-m", *shlex.split(command)]
    env = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    return subprocess.run(words, cwd=place, env=env, capture_output=True, text=True).stdout


def with_plans(page: str) -> str:
    """The page with what is planned now, and what came of the real saves."""
    page = PLAN.sub(lambda found: found[1] + planned(found[2]), page)
    page = PLACEMENT.sub(lambda found: found[1] + placed(found[2]), page)
    return TABLE.sub(lambda found: f"{found[1]}{table()}{found[3]}", page)


def planned(command: str) -> str:
    with tempfile.TemporaryDirectory() as place:
        write_model("nomic_bert", Path(place) / "my-model")
        return ran(command, place)


def placed(command: str) -> str:
    """Of the configuration of Llama 2 7B, which is what the class has where nothing is said."""
    from transformers import LlamaConfig

    config = LlamaConfig(architectures=["LlamaForCausalLM"], dtype="bfloat16")
    with tempfile.TemporaryDirectory() as place:
        config.save_pretrained(Path(place) / "llama-7b")
        return ran(command, place)


def table() -> str:
    """Each family at each size: what was planned; a real save that disagrees has a mark."""
    sizes = " | ".join(f"{size} KB" for size in KILOBYTES)
    rows = [f"| model | groups | {sizes} |", f"| --- | --- |{' --- |' * len(KILOBYTES)}"]
    for family in FAMILIES:
        with tempfile.TemporaryDirectory() as place:
            rows.append(_row(family, Path(place)))
    rows += ["", "| save | planned at the peak | measured |", "| --- | --- | --- |"]
    for family, size in MEASURED:
        one, other = measured(family, size)
        rows.append(f"| {family}, {size} | {one / 1e6:.0f} MB | {other / 1e6:.0f} MB |")
    return "\n".join(rows) + "\n"


def _row(family: str, place: Path) -> str:
    whole = write_model(family, place / "model")
    model = offloaded(whole, place / "model")
    cells, groups = [], 0
    for size in KILOBYTES:
        plan = plan_save(place / "model", f"{size}KB")
        is_so = comes_back(whole, model, place / str(size), f"{size}KB") is plan.works
        cells.append(("works" if plan.works else "**fails**") + ("" if is_so else " (wrong)"))
        groups = len(plan.groups)
    return f"| {family} | {groups} | {' | '.join(cells)} |"


if __name__ == "__main__":
    written = current(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(with_plans(written), encoding="utf-8")
