"""Damaged real files: no crash, no hang, no finding hidden, none invented, no fix that breaks."""

from __future__ import annotations

import ast
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.fixing.fixer import compiles, fix_file
from tensortrail.analyzer.judging.engine import Checker, check
from tensortrail.findings import Finding
from tensortrail.rules import all_rules

from .attacked import BAD
from .mutations import mutants

LONGEST = 10
BATCH = 25
SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.complete) for seed in range(2, 90))]
"""2,225 files in the complete run."""
REQUEST = CheckRequest(codes=frozenset(all_rules()), siblings=False, jobs=1)


class TooLong(BaseException):
    """Not caught by what catches errors of rules."""


@contextmanager
def limited(what: str) -> Iterator[None]:
    """Ten seconds of work; a minute on the clock, for the machine may have other things to do."""

    def stop(*_: object) -> None:
        raise TooLong(f"{what} hangs")

    if sys.platform == "win32":
        yield
        return
    before, began = signal.signal(signal.SIGALRM, stop), time.process_time()
    signal.alarm(60)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert time.process_time() - began < LONGEST, what


OF_THE_FILE = "TTR004"
"""It stands at the first line: the file was checked in part."""


def is_python(data: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def in_short(findings: Sequence[Finding], down: int = 0) -> list[tuple[str, int, int]]:
    return [
        (each.code, each.site.line + down * (each.code != OF_THE_FILE), each.site.column)
        for each in findings
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_damaged_files(tmp_path: Path, seed: int) -> None:
    """Each seed is a batch in one folder, beside a file whose finding is known."""
    request = REQUEST._replace(paths=(str(tmp_path),), root=str(tmp_path))
    request = request._replace(cache_dir=str(tmp_path / ".tensortrail_cache"))
    (tmp_path / "known.py").write_text(BAD)
    batch = {f"m{number:02}.py": data for number, data in enumerate(islice(mutants(seed), BATCH))}
    for name, data in batch.items():
        (tmp_path / name).write_bytes(data)
    with limited("the check of a batch"):
        cold = check(request)
    warm = check(request)
    assert warm.findings == cold.findings
    assert len(cold.files) == BATCH + 1
    by_file: dict[str, list[Finding]] = {Path(each).name: [] for each in cold.files}
    for finding in cold.findings:
        by_file[Path(finding.site.file).name].append(finding)
    assert [each.code for each in by_file.pop("known.py")] == ["DEV501"]
    check_bytes = Checker(request)
    everything = Checker(request._replace(use_triggers=False))
    for name, found in by_file.items():
        path, data = str(tmp_path / name), batch[name]
        crashed = [each.message for each in found if each.code == "TTR003"]
        assert all("nested too deeply" in message for message in crashed), crashed
        if not is_python(data):
            assert {each.code for each in found} <= {"TTR001"}
            continue
        if crashed or "TTR001" in {each.code for each in found}:
            continue  # an encoding or a depth that is refused
        with limited(name):
            unfiltered = everything(path, data)
        if unfiltered and unfiltered[0].code == "TTR001" and not found:
            continue  # without a word that a rule looks for nobody tried to read it
        assert in_short(unfiltered) == in_short(found)
        if data.startswith(b"\xef\xbb\xbf") or b"coding" in data[:200]:
            continue
        moved = check_bytes(path, b"# one\n\n" + data)
        assert in_short(moved) == in_short(found, 2)
        fixed = fix_file(path, data, found, True, check_bytes)
        assert compiles(fixed.after) or fixed.after == data
        again = fix_file(path, fixed.after, check_bytes(path, fixed.after), True, check_bytes)
        assert again.after == fixed.after
        assert len(fixed.left) <= len(found)
