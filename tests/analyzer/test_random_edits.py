"""After any edits of a project of real code, the cache answers what a check without it finds."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.choosing.rule_index import listed
from tensortrail.analyzer.judging.engine import check
from tensortrail.findings import Finding
from tests.parts import first_of

pytestmark = pytest.mark.long

_FILES = (
    "__init__.py big_modeling.py checkpointing.py hooks.py state.py utils/__init__.py "
    "utils/constants.py utils/memory.py utils/offload.py utils/operations.py utils/other.py "
    "utils/random.py utils/torch_xla.py"
).split()
"""Of accelerate: they ask one another, and import what is not here as well. The largest is left
out, for more edits in the same time."""
_EDITS = 8
Edit = Callable[[list[str], random.Random], None]


def _comment(lines: list[str], chance: random.Random) -> None:
    lines.append("# changed\n")


def _moved_down(lines: list[str], chance: random.Random) -> None:
    lines.insert(0, "\n")


def _removed(lines: list[str], chance: random.Random) -> None:
    del lines[chance.randrange(len(lines))]


def _twice(lines: list[str], chance: random.Random) -> None:
    number = chance.randrange(len(lines))
    lines.insert(number, lines[number])


def _replacing(words: str, other: str) -> Edit:
    """Some line that has the words gets others."""

    def edit(lines: list[str], chance: random.Random) -> None:
        having = [number for number, line in enumerate(lines) if re.search(words, line)]
        if having:
            number = chance.choice(having)
            lines[number] = re.sub(words, other, lines[number], count=1)

    return edit


_OF_A_FILE: tuple[Edit, ...] = (
    _comment,
    _moved_down,
    _removed,
    _twice,
    _replacing(r"\b\d+\b", "7"),
    _replacing(r"\bdevice\b", "place"),
    _replacing(r"\"\w+\"", '"cuda"'),
    _replacing(r"\b(def|class) (\w+)", r"\1 other_\2"),
    _replacing(r"return .*", "return None"),
    _replacing(r"\bimport (\w+)", r"import \1 as renamed"),
)


@pytest.mark.parametrize("seed", first_of([1, 2]))
def test_a_warm_check_is_a_cold_one(tmp_path: Path, seed: int) -> None:
    files = _copied(tmp_path / "pkg")
    chance = random.Random(seed)
    cache = str(tmp_path / "cache")
    assert _found(tmp_path / "pkg", cache)
    for _ in range(_EDITS):
        done = [_edited(each, chance) for each in chance.sample(files, chance.randint(1, 3))]
        assert _found(tmp_path / "pkg", cache) == _found(tmp_path / "pkg", None), done


def _copied(package: Path) -> list[Path]:
    accelerate = Path(pytest.importorskip("accelerate").__file__).parent
    for name in _FILES:
        _write(package / name, (accelerate / name).read_text())
    return [package / name for name in _FILES]


def _edited(file: Path, chance: random.Random) -> str:
    lines = file.read_text().splitlines(keepends=True)
    edit = chance.choice(_OF_A_FILE)
    if lines:
        edit(lines, chance)
    _write(file, "".join(lines))
    return f"{file.name}: {edit.__name__}"


def _write(file: Path, text: str) -> None:
    """As if it had been written before the check began."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    stamp = file.stat().st_mtime_ns - 5_000_000
    os.utime(file, ns=(stamp, stamp))


def _found(package: Path, cache: str | None) -> tuple[Finding, ...]:
    codes = frozenset(listed())
    request = CheckRequest(paths=(str(package),), cache_dir=cache, codes=codes, jobs=1)
    return check(request).findings
