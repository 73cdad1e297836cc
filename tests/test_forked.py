"""What happens to a test in a forked process is shown by the first one."""

from __future__ import annotations

from pathlib import Path

from tests import warm

FIRST = """\
import os

def test_one(): pass
def test_killed(): os.kill(os.getpid(), 9)
def test_behind_it(): pass
"""
SECOND = """\
import pytest, warnings

def test_fails():
    print("some words")
    warnings.warn("an odd value", DeprecationWarning)
    assert not "this"

@pytest.mark.skip(reason="not today")
def test_skipped(): pass
"""


def told(folder: Path, *options: str) -> tuple[int, str]:
    (folder / "test_first.py").write_text(FIRST)
    (folder / "test_second.py").write_text(SECOND)
    forked = ("-p", "tests.forked", "--processes", "2", "-rs", *options)
    done = warm.run([*warm.PYTEST, *forked], folder)
    return done.returncode, done.stdout


def test_failures_warnings_skipped_tests_and_a_process_that_was_killed(tmp_path: Path) -> None:
    code, shown = told(tmp_path)
    assert code == 1
    assert "2 failed, 1 passed, 1 skipped" in shown
    assert "the process ended with -9 here; the tests of the file that follow were not run" in shown
    assert "some words" in shown
    assert "test_second.py:5: DeprecationWarning: an odd value" in shown
    assert "SKIPPED [1] test_second.py:8: not today" in shown


def test_the_first_failure_ends_all_processes_if_that_is_asked_for(tmp_path: Path) -> None:
    code, shown = told(tmp_path, "-x")
    assert code == 1
    assert "stopping after 1 failures" in shown
