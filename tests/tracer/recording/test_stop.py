"""A recording with a guard stops a program before a step that destroys data, and only then."""

from __future__ import annotations

import pickle
import subprocess
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import tensortrail  # noqa: E402
from tensortrail.findings import Confidence, Finding, Severity, Site  # noqa: E402
from tensortrail.rules import Did  # noqa: E402
from tests import warm  # noqa: E402

MAPPED = """\
import torch
torch.save({"weight": torch.ones(1000)}, "model.pt")
before = open("model.pt", "rb").read()
weights = torch.load("model.pt", mmap=True)
"""
OVERWRITES = 'torch.save({"weight": torch.zeros(2)}, "model.pt")'
IS_WHOLE = 'print("whole", open("model.pt", "rb").read() == before)'
CAUGHT = {
    "any exception is caught": (
        f"try:\n    {OVERWRITES}\nexcept Exception:\n    print('went on')\nfinally:\n    {IS_WHOLE}"
    ),
    "it is caught": (
        f"import tensortrail\ntry:\n    {OVERWRITES}\nexcept tensortrail.Stopped:\n    {IS_WHOLE}"
    ),
    "in a thread": (
        "import threading\ndef save():\n"
        f"    {OVERWRITES}\nthread = threading.Thread(target=save)\n"
        f"thread.start(); thread.join()\n{IS_WHOLE}"
    ),
}


def traced(folder: Path, source: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(source)
    return warm.run(["-m", "tensortrail", "trace", *options, "script.py"], folder)


def test_the_message_says_what_where_and_what_to_change(tmp_path: Path) -> None:
    source = f"{MAPPED}import atexit\natexit.register(lambda: {IS_WHOLE})\n{OVERWRITES}"
    done = traced(tmp_path, source, "--guard")
    line = source.count("\n") + 1
    assert (done.returncode, done.stdout) == (3, "whole True\n")
    before, _, told = done.stderr.partition("tensortrail.Stopped: ")
    assert f'File "{tmp_path}/script.py", line {line}' in before
    assert "STO206 `torch.save` overwrites" in told
    assert "stopped before it happened" in told
    assert f"at      script.py:{line}" in told
    assert "change  mmap=False in torch.load, script.py:4" in told


@pytest.mark.parametrize("attempt", CAUGHT.values(), ids=CAUGHT.keys())
def test_nothing_is_touched_and_the_exit_code_tells(tmp_path: Path, attempt: str) -> None:
    done = traced(tmp_path, MAPPED + attempt, "--guard", "--quiet")
    assert (done.returncode, done.stdout) == (3, "whole True\n"), done.stderr


def test_without_a_guard_the_program_goes_on(tmp_path: Path) -> None:
    done = traced(tmp_path, f"{MAPPED}{OVERWRITES}\n{IS_WHOLE}", "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "whole False\n", "")


HARMLESS = f"""\
import os
{OVERWRITES.replace("model.pt", "other.pt")}
{OVERWRITES.replace("model.pt", "new.pt")}
os.replace("new.pt", "model.pt")
for twice in range(2):
    torch.save({{"weight": torch.ones(2, device="meta")}}, "placeholders.pt")
weights = torch.load("other.pt", mmap=True)
del weights
{OVERWRITES.replace("model.pt", "other.pt")}
raise SystemExit(7)
"""


def test_what_destroys_nothing_is_not_stopped(tmp_path: Path) -> None:
    done = traced(tmp_path, MAPPED + HARMLESS, "--guard", "--quiet")
    assert (done.returncode, done.stderr) == (7, "")


@pytest.mark.complete
def test_a_spawned_child_is_guarded_too(tmp_path: Path) -> None:
    body = (MAPPED + OVERWRITES).replace("\n", "\n    ")
    source = (
        "import multiprocessing\nimport torch\n"
        f"def work():\n    {body}\n"
        "if __name__ == '__main__':\n"
        "    child = multiprocessing.get_context('spawn').Process(target=work)\n"
        "    child.start(); child.join(); print(child.exitcode)\n"
    )
    done = traced(tmp_path, source, "--guard", "--quiet")
    assert done.stdout == "1\n"
    assert "STO206" in done.stderr


def test_a_block_is_guarded_and_the_trail_records_the_stop(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    torch.save({"weight": torch.ones(1000)}, path)
    before = path.read_bytes()
    with tensortrail.trace(tmp_path / "run", guard=True) as run:
        weights = torch.load(path, mmap=True)
        with pytest.raises(tensortrail.Stopped) as stopped:
            torch.save({"weight": torch.zeros(2)}, path)
    assert path.read_bytes() == before
    assert weights["weight"].sum() == 1000
    assert stopped.value.finding.code == "STO206"
    events = run.timeline().events(Did.HOOK)
    assert [each.facts["stopped"] for each in events if "stopped" in each.facts] == ["STO206"]
    assert [each.code for each in run.findings()] == ["STO206"]


def test_it_can_be_handed_to_another_process() -> None:
    site = Site("train.py", 3)
    finding = Finding("STO206", "mmap-overwrite", "it is", Severity.ERROR, Confidence.HIGH, site)
    again = pickle.loads(pickle.dumps(tensortrail.Stopped(finding)))
    assert again.finding == finding
    assert str(again) == str(tensortrail.Stopped(finding))
