"""The index of the rules says what the rules say, and is made anew when they change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tensortrail
from tensortrail.analyzer.choosing import installed, rule_index
from tensortrail.analyzer.choosing.installed import OWN
from tensortrail.analyzer.choosing.rule_index import listed, listed_as
from tensortrail.analyzer.choosing.triggers import Filter
from tensortrail.rules import all_rules

IMPORTED = """
import sys
from tensortrail.cli import main
code = main(["check", "--no-cache", "--isolated", sys.argv[1]])
found = [name for name in sys.modules if name.startswith("tensortrail.rules.")]
print(code, len(found), "importlib.metadata" in sys.modules)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    listed.cache_clear()
    yield tmp_path
    listed.cache_clear()


def kept(folder: Path) -> Path:
    (found,) = folder.rglob("rules.index.json")
    return found


def again() -> object:
    listed.cache_clear()
    return {code: each._replace(filter=each.filter.to_data()) for code, each in listed().items()}


def test_it_says_what_the_rules_say(folder: Path) -> None:
    from_rules = again()
    assert from_rules == again(), "from the file"
    assert kept(folder).is_file()
    for code, rule in all_rules().items():
        each = listed()[code]
        assert each.load() is rule
        assert (each.default, each.reads_code) == (rule.default, rule.reads_code())
        of_runs = (rule.watches_runs(), rule.examines_checkpoints())
        assert (each.watches_runs, each.examines_checkpoints) == of_runs
        written = json.loads(json.dumps(listed_as(rule).filter.to_data()))
        assert Filter.from_data(written).to_data() == each.filter.to_data()


@pytest.mark.parametrize("damage", [b"", b"[]", b"[1, 2, 3]", b"\xff"])
def test_a_damaged_one_is_made_anew(folder: Path, damage: bytes) -> None:
    before = again()
    kept(folder).write_bytes(damage)
    assert again() == before
    assert json.loads(kept(folder).read_bytes())


def test_one_of_other_files_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again()
    stale = json.loads(kept(folder).read_bytes())
    stale[2] = stale[2][:1]
    kept(folder).write_text(json.dumps(stale))
    listed.cache_clear()
    assert len(listed()) == 1, "the key fits"
    monkeypatch.setattr(rule_index, "packages", lambda: [["elsewhere", 1]])
    listed.cache_clear()
    assert len(listed()) == len(all_rules())


def test_nothing_is_written_where_python_writes_no_bytecode(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    again()
    assert not list(folder.rglob("rules.index.json"))


def test_nothing_is_written_by_a_process_that_is_older_than_the_rules(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = max(os.stat(each).st_ctime_ns for each in Path(OWN).rglob("*.py"))
    monkeypatch.setattr(tensortrail, "BEGUN", newest)
    again()
    assert not list(folder.rglob("rules.index.json"))
    monkeypatch.setattr(tensortrail, "BEGUN", newest + 1)
    monkeypatch.setattr(installed, "packages", list)
    again()
    assert kept(folder).is_file()


def test_a_clean_file_imports_no_rule(tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text("x = 1\n")
    prefix = f"pycache_prefix={tmp_path / 'bytecode'}"
    command = [sys.executable, "-X", prefix, "-c", IMPORTED, str(tmp_path / "clean.py")]
    told = [
        subprocess.run(
            command, capture_output=True, text=True, check=True, env={"PATH": ""}, cwd=tmp_path
        ).stdout.splitlines()[-1]
        for _ in range(2)
    ]
    assert told[0].startswith("0 ")
    assert told[0].endswith("True")
    assert told[1] == "0 0 False"
