"""`tensortrail weights`: snapshots of weights as files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tensortrail.cli import main
from tensortrail.cli.exit_codes import CLEAN, FAILED, FOUND
from tensortrail.tracer.audit.marks import Mark
from tensortrail.tracer.audit.snapshot import Snapshot


def mark(exact: int, **more: object) -> Mark:
    facts: dict[str, object] = {"exact": exact, "loose": exact, "turn": exact, **more}
    return Mark("float32", (4, exact), "cpu", 16 * exact, **facts)  # type: ignore[arg-type]


def saved(folder: Path, name: str, marks: dict[str, Mark], rank: int | None = None) -> str:
    path = folder / f"{name}.json"
    Snapshot(name, marks, rank=rank).save(path)
    return str(path)


def test_two_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = saved(tmp_path, "before", {"a": mark(1), "b": mark(2)})
    changed = mark(2, loose=9, writer="`SGD.step` at a.py:3")
    after = saved(tmp_path, "after", {"a": mark(1), "b": changed})
    assert main(["weights", "compare", before, after]) == FOUND
    assert capsys.readouterr().out.splitlines() == [
        "weights, before -> after: 2 tensors, not all hold the same values",
        "  1 changed by `SGD.step` at a.py:3: b",
        "  1 unchanged: a",
    ]
    assert main(["weights", "compare", before, before]) == CLEAN


def test_names_are_matched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = saved(tmp_path, "trainer", {"model.w": mark(1), "model.v": mark(2)})
    after = saved(tmp_path, "engine", {"net.w": mark(1), "net.v": mark(2)})
    assert main(["weights", "compare", "--format", "json", before, after]) == CLEAN
    told = json.loads(capsys.readouterr().out)
    assert told["same"] is True
    assert told["matched"] == {"model.w": "net.w", "model.v": "net.v"}
    assert [each["became"] for each in told["changes"]] == ["unchanged", "unchanged"]


def test_what_was_lost_between(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = saved(tmp_path, "before", {"a": mark(1)})
    asleep = saved(tmp_path, "asleep", {"a": mark(1, without="its memory is freed")})
    assert main(["weights", "compare", before, asleep, before]) == CLEAN
    assert "1 restored: a" in capsys.readouterr().out


def test_ranks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = [{"a": mark(1), "b": mark(2)}] * 2 + [{"a": mark(1), "b": mark(3)}]
    files = [saved(tmp_path, f"r{n}", each, n) for n, each in enumerate(held, 1)]
    assert main(["weights", "ranks", *files]) == FOUND
    assert capsys.readouterr().out.splitlines() == [
        "weights of 3 ranks: these are not the same on all",
        "  b: rank 3",
    ]
    assert main(["weights", "ranks", *files[:2]]) == CLEAN


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file"),
        ("{}", "no snapshot of tensortrail's"),
        ('{"tensortrail snapshot": 0}', "made by another version of tensortrail"),
    ],
)
def test_what_is_no_snapshot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, said: str
) -> None:
    good, bad = saved(tmp_path, "good", {"a": mark(1)}), tmp_path / "bad.json"
    if text is not None:
        bad.write_text(text)
    assert main(["weights", "compare", good, str(bad)]) == FAILED
    assert said in capsys.readouterr().err
    assert main(["weights", "compare", good]) == FAILED
