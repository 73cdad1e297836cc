"""Who notices which damage: doctor, the reader of safetensors, from_pretrained of transformers.

    python benchmarks/checkpoint_damages.py        # a table in Markdown

The damages are those of the tests. "refuses" is an exception, "warns" a load that names keys it
could not match, "loads" one that says nothing."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from safetensors import safe_open

from tensortrail.doctor.checkpoint.examine import examine
from tests.doctor.checkpoint.damaged_model import Config, loading_info
from tests.doctor.checkpoint.damages import DAMAGES
from tests.doctor.checkpoint.damaging import Damage
from tests.doctor.checkpoint.written import copy, write_all

SILENT = {"loads", "-"}


def by_doctor(folder: Path) -> str:
    codes = dict.fromkeys(finding.code for finding in examine(str(folder)).findings)
    return ", ".join(codes) or "-"


def by_safetensors(folder: Path) -> str:
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        return "-"
    try:
        for file in files:
            with safe_open(file, "pt") as opened:
                for key in opened.keys():  # noqa: SIM118 - it is no mapping
                    opened.get_tensor(key)
    except Exception:
        return "refuses"
    return "loads"


def by_transformers(folder: Path) -> str:
    Config().save_pretrained(folder)
    try:
        told = loading_info(folder)
    except Exception:
        return "refuses"
    return "warns" if any(told[key] for key in told) else "loads"


def row(whole: Path, damage: Damage, place: Path) -> tuple[str, str, str]:
    folder = copy(whole / damage.base, place / damage.name)
    damage.do(folder)
    return by_doctor(folder), by_safetensors(folder), by_transformers(folder)


def main() -> None:
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_all(place / "whole")
        print("| damage | doctor | safetensors | from_pretrained |\n| --- | --- | --- | --- |")
        noticed: Counter[str] = Counter()
        for damage in DAMAGES:
            cells: Any = row(place / "whole", damage, place)
            noticed.update(
                {name: cell not in SILENT for name, cell in zip(COLUMNS, cells, strict=True)}
            )
            words = damage.name.replace("_", " ")
            print(f"| {damage.base}: {words} | {' | '.join(cells)} |")
        total = ", ".join(f"{name} {noticed[name]}" for name in COLUMNS)
        print(f"\nNoticed, of {len(DAMAGES)}: {total}.")


COLUMNS = ("doctor", "safetensors", "from_pretrained")


if __name__ == "__main__":
    main()
