"""Caches of other folders, cut, flipped, swapped and made up: no finding hidden, none invented."""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from zlib import crc32

import pytest

from tensortrail.analyzer.judging.cache_folder import FILE

from .attacked import BAD, CLEAN, Attacked

pytestmark = pytest.mark.long

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="pipes and times of POSIX")
STORED = Path(".tensortrail_cache") / FILE
SAME_SIZE = CLEAN + "#" * (len(BAD) - len(CLEAN) - 1) + "\n"


def project_of_several(attacked: Attacked) -> list[str]:
    for number in range(6):
        attacked.write(f"bad{number}.py", BAD)
        attacked.write(f"clean{number}.py", SAME_SIZE)
    attacked.check(".", cache=True)
    return [line for line in attacked.check(".").out.splitlines() if ": DEV" in line]


def findings_in(attacked: Attacked) -> tuple[list[str], bool]:
    """What is found with the cache as it lies, and whether it was said to be damaged."""
    done = attacked.check(".", cache=True)
    assert done.code == 1, done.err
    lines = done.out.splitlines()
    problems = [line for line in lines if line.startswith("problem: ")]
    assert all("the cache was damaged" in line for line in problems)
    return [line for line in lines if ": DEV" in line], bool(problems)


def same_name(attacked: Attacked, monkeypatch: pytest.MonkeyPatch) -> None:
    attacked.write("pyproject.toml", "[tool.tensortrail]\n")
    for name, text in (("a.py", SAME_SIZE), ("sub/a.py", BAD)):
        os.utime(attacked.write(name, text), ns=(1, 1))


def test_a_file_of_another_folder_is_another_file(
    attacked: Attacked, monkeypatch: pytest.MonkeyPatch
) -> None:
    same_name(attacked, monkeypatch)
    assert attacked.check("a.py", cache=True).code == 0
    monkeypatch.chdir("sub")
    assert attacked.check("a.py", cache=True).found("a.py") == ["DEV501"]
    monkeypatch.chdir("..")
    for _ in range(2):
        assert attacked.check(".", cache=True).found("sub/a.py") == ["DEV501"]


@POSIX
def test_a_change_that_hides_its_time_is_seen(attacked: Attacked) -> None:
    path = attacked.write("a.py", SAME_SIZE)
    before = path.stat()
    assert attacked.check(".", cache=True).code == 0
    path.write_text(BAD)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert attacked.check(".", cache=True).found("a.py") == ["DEV501"]


@POSIX
def test_a_cache_that_comes_with_its_files_is_not_believed(attacked: Attacked) -> None:
    """An archive brings contents, sizes and times: enough to make a finding look known."""
    path = attacked.write("a.py", SAME_SIZE)
    attacked.check(".", cache=True)
    fingerprint, needed, entries, seen = json.loads(STORED.read_bytes().partition(b"\n")[2])
    path.write_text(BAD)
    status = path.stat()
    entries["a.py"] = [status.st_size, status.st_mtime_ns, 0]
    stored = json.dumps([fingerprint, needed, entries, seen]).encode()
    STORED.write_bytes(b"%08x\n%b" % (crc32(stored), stored))
    assert attacked.check(".", cache=True).found("a.py") == ["DEV501"]


def test_findings_are_kept_while_nothing_changes(attacked: Attacked) -> None:
    expected = project_of_several(attacked)
    stored = STORED.read_bytes()
    assert findings_in(attacked) == (expected, False)
    assert STORED.read_bytes() == stored


def test_a_damaged_cache_is_dropped_and_said_once(attacked: Attacked) -> None:
    expected = project_of_several(attacked)
    STORED.write_bytes(STORED.read_bytes()[:-7])
    assert findings_in(attacked) == (expected, True)
    assert findings_in(attacked) == (expected, False)


@pytest.mark.parametrize("count", [25, pytest.param(1_500, marks=pytest.mark.complete)])
def test_a_cache_cut_flipped_or_swapped_changes_nothing(attacked: Attacked, count: int) -> None:
    expected = project_of_several(attacked)
    whole, chance = STORED.read_bytes(), random.Random(7)
    for number in range(count):
        damaged = bytearray(whole)
        first, second = sorted(chance.sample(range(len(whole)), 2))
        if number % 3 == 0:
            del damaged[first:]
        elif number % 3 == 1:
            damaged[first] ^= 1 << chance.randrange(8)
        else:
            damaged[first:second] = damaged[first:second][::-1]
        STORED.write_bytes(damaged)
        found, said = findings_in(attacked)
        assert found == expected
        assert said == (bytes(damaged) != whole)


MADE_UP = [
    b"",
    b"null",
    b"[]",
    b"[" * 100_000,
    b'{"a": 1}',
    b"[FINGERPRINT, 3]",
    b'[FINGERPRINT, [], {"bad0.py": 3, "bad1.py": [1], "bad2.py": {"a": []}}, null]',
    b"[FINGERPRINT, 3, {}, null]",
    b'[FINGERPRINT, [["bad0.py", 1], 3], {}, null]',
    b'[FINGERPRINT, [[["bad0.py"], 1, 1, 1]], {}, null]',
    b'[FINGERPRINT, [["bad0.py", [], {}, null]], {"bad0.py": [1, 1, 1, "", "", [], [9]]}, 1]',
]


@pytest.mark.parametrize("stored", MADE_UP, ids=range(len(MADE_UP)))
def test_a_made_up_cache_with_a_good_checksum(attacked: Attacked, stored: bytes) -> None:
    expected = project_of_several(attacked)
    fingerprint = json.loads(STORED.read_bytes().partition(b"\n")[2])[0]
    stored = stored.replace(b"FINGERPRINT", json.dumps(fingerprint).encode())
    STORED.write_bytes(b"%08x\n%b" % (crc32(stored), stored))
    assert findings_in(attacked)[0] == expected


@pytest.mark.parametrize("part", [3, 4, 5, 6, 7])
@pytest.mark.parametrize("instead", [None, 0, "", [], {}, [{}], [None], {"bad1.py": 1}])
def test_a_made_up_entry(attacked: Attacked, part: int, instead: object) -> None:
    expected = project_of_several(attacked)
    fingerprint, needed, entries, seen = json.loads(STORED.read_bytes().partition(b"\n")[2])
    entries["bad0.py"][part] = instead
    stored = json.dumps([fingerprint, needed, entries, seen]).encode()
    STORED.write_bytes(b"%08x\n%b" % (crc32(stored), stored))
    assert findings_in(attacked)[0] == expected


@pytest.mark.parametrize(
    "instead",
    [0, "", {}, [1], [None, None], {"bad1.py": 1}, {"bad1.py": [{"file": 1, "line": ""}]}],
)
@pytest.mark.parametrize("part", [0, 1, 2])
def test_made_up_places_of_shapes(attacked: Attacked, part: int, instead: object) -> None:
    expected = project_of_several(attacked)
    fingerprint, needed, entries, seen = json.loads(STORED.read_bytes().partition(b"\n")[2])
    listing, shapes = seen
    seen = [instead, [listing, instead], [listing, dict.fromkeys(shapes, instead)]][part]
    stored = json.dumps([fingerprint, needed, entries, seen]).encode()
    STORED.write_bytes(b"%08x\n%b" % (crc32(stored), stored))
    assert shapes
    assert findings_in(attacked)[0] == expected


@POSIX
@pytest.mark.parametrize("what", ["fifo", "folder", "device"])
def test_a_cache_file_that_is_no_file(attacked: Attacked, what: str) -> None:
    attacked.write("bad.py", BAD)
    STORED.parent.mkdir()
    if what == "fifo":
        os.mkfifo(STORED)
    elif what == "folder":
        STORED.mkdir()
    else:
        STORED.symlink_to("/dev/zero")
    done = attacked.check(".", cache=True)
    assert done.found("bad.py") == ["DEV501"]
    assert "no cache is kept" in done.out


def test_a_cache_nobody_can_write_is_no_error(attacked: Attacked) -> None:
    attacked.write("bad.py", BAD)
    attacked.write(".tensortrail_cache", "a file where the folder should be")
    assert attacked.check(".", cache=True).found("bad.py") == ["DEV501"]
