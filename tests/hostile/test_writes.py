"""Fixes at bad moments, of files with several names, by another user: no file is broken."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tensortrail.analyzer.choosing.request import CheckResult
from tensortrail.analyzer.fixing.fixer import compiles, fix_file
from tensortrail.findings import Edit, Finding, Site
from tests.analyzer.test_fixer import finding_with

from .attacked import BAD, FIX, FIXED, Attacked

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="owners and links of POSIX")


@POSIX
@pytest.mark.parametrize("hard", [True, False])
@pytest.mark.parametrize("paths", [(".",), ("a.py", "b.py"), ("b.py", "a.py")])
def test_a_file_of_two_names_is_fixed_once(
    attacked: Attacked, hard: bool, paths: tuple[str, ...]
) -> None:
    first = attacked.write("a.py", BAD)
    second = attacked.project / "b.py"
    os.link(first, second) if hard else second.symlink_to("a.py")
    done = attacked.check(*paths, *FIX)
    assert first.read_text() == second.read_text() == FIXED
    assert "1 finding fixed" in done.out
    assert done.code == 0
    assert second.is_symlink() != hard
    assert os.path.samefile(first, second)


@POSIX
def test_suppressions_are_added_once_too(attacked: Attacked) -> None:
    first = attacked.write("a.py", BAD)
    (attacked.project / "b.py").symlink_to("a.py")
    done = attacked.check(".", "--add-ignores")
    assert first.read_text().count("tensortrail: ignore") == 1
    assert "Added 1 suppression in 1 file." in done.err


@POSIX
@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root gives away")
@pytest.mark.parametrize("linked", [True, False])
def test_owner_group_and_permissions_stay(attacked: Attacked, linked: bool) -> None:
    path = attacked.write("a.py", BAD)
    if linked:
        os.link(path, attacked.project / "kept_elsewhere")
    path.chmod(0o640)
    os.chown(path, 1234, 2345)
    attacked.check("a.py", *FIX)
    status = path.stat()
    assert path.read_text() == FIXED
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (1234, 2345, 0o640)
    assert status.st_nlink == 1 + linked
    assert sorted(os.listdir()) == sorted([".git", "a.py", *["kept_elsewhere"] * linked])


def test_a_file_that_changes_during_the_check_is_left_alone(
    attacked: Attacked, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = attacked.write("a.py", BAD)
    edited = "import os\n\n" + BAD
    other = attacked.write("b.py", BAD)

    def edit(result: CheckResult) -> list[str]:
        path.write_text(edited)
        return []

    monkeypatch.setattr("tensortrail.cli.check.notes", edit)
    for how in (FIX, ("--add-ignores",)):
        path.write_text(BAD)
        done = attacked.check(".", *how)
        assert path.read_text() == edited
        assert "a.py" in done.err
        assert "changed since it was checked" in done.err
    assert other.read_text() != BAD


def test_a_file_that_changes_while_its_fix_is_made_is_left_alone(
    attacked: Attacked, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = attacked.write("a.py", BAD)
    real = fix_file

    def slow(*arguments: object) -> object:
        done = real(*arguments)  # type: ignore[arg-type]
        path.write_text("mine\n")
        return done

    monkeypatch.setattr("tensortrail.cli.check_fixes.fix_file", slow)
    assert "changed since it was checked" in attacked.check("a.py", *FIX).err
    assert path.read_text() == "mine\n"


def test_a_fix_that_parses_and_does_not_compile_is_dropped() -> None:
    data = b"f(device=d)\n"
    twice = finding_with(Edit(Site("a.py", 1, start=2, end=10), "device=d, device=d"))
    fixed = fix_file("a.py", data, [twice], True, lambda name, new: [])
    assert fixed.after == data
    assert "would not compile" in fixed.dropped[0]
    assert not compiles(b"f(device=d, device=d)\n")
    assert not compiles(b"return 1\n")


def test_a_fix_that_brings_another_finding_is_dropped() -> None:
    data = b"x = 1\ny = 2\n"
    one = finding_with(Edit(Site("a.py", 1, start=0, end=1), "z"))
    two = finding_with(Edit(Site("a.py", 2, start=6, end=7), "w"))
    other = finding_with(Edit(Site("a.py", 2, start=6, end=7), "w"))
    object.__setattr__(other, "code", "BBB101")
    fixed = fix_file("a.py", data, [one, two], True, lambda name, new: [other])
    assert fixed.after == data
    assert "it would bring BBB101" in fixed.dropped[0]


def test_one_bad_fix_among_many_costs_only_itself() -> None:
    names = [f"v{number:02}" for number in range(40)]
    data = "".join(f"{name} = 1\n" for name in names).encode()

    def find(name: str, data: bytes) -> list[Finding]:
        found = []
        for number, line in enumerate(data.split(b"\n")):
            if line.startswith(b"v"):
                start = data.index(line)
                text = "1" if line.startswith(b"v00") else "w"
                edit = Edit(
                    Site(name, number + 1, start=start, end=start + 1, source=str(line)), text
                )
                found.append(finding_with(edit))
        return found

    looks: list[int] = []

    def counted(name: str, data: bytes) -> list[Finding]:
        looks.append(1)
        return find(name, data)

    fixed = fix_file("a.py", data, find("a.py", data), True, counted)
    assert fixed.applied == 39
    assert fixed.after.startswith(b"v00 = 1\nw01 = 1\n")
    assert len(looks) < 20


@pytest.mark.parametrize(
    ("lines", "inserted"),
    [
        (["a = 1\n", "{bad}\r\n", "b = 2\r\n"], "\r\n"),
        (["a = 1\r\n", "{bad}\n", "b = 2\r\n"], "\n"),
        (["a = 1\r\n", "b = 2\n", "{bad}"], "\n"),
        (["a = 1\n", "b = 2\r\n", "{bad}"], "\r\n"),
    ],
)
def test_an_inserted_line_ends_like_its_neighbours(lines: list[str], inserted: str) -> None:
    from tensortrail.analyzer.judging.module import PythonModule, open_project
    from tensortrail.findings import Safety

    module = PythonModule("a.py", "".join(lines).format(bad="c = 3").encode(), open_project())
    start = module.source.data.index(b"c = 3")
    edit = Edit(module.source.site(start, start + 5), "c = 3\nd = 4")
    fix = module.fix("", Safety.SAFE, edit)
    assert fix is not None
    assert fix.edits[0].text == f"c = 3{inserted}d = 4"


KILLED = """
import os, signal, sys
from tensortrail.cli import main
real, count = os.replace, [int(sys.argv[1])]
def replace(*names):
    count[0] -= 1
    if count[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    real(*names)
os.replace = replace
main(["check", ".", "--fix", "--unsafe-fixes", "--no-cache"])
"""


@POSIX
@pytest.mark.parametrize("at", [1, 3])
def test_a_fix_killed_midway_leaves_whole_files(attacked: Attacked, at: int) -> None:
    for number in range(4):
        attacked.write(f"f{number}.py", BAD)
    subprocess.run([sys.executable, "-c", KILLED, str(at)], capture_output=True, timeout=60)
    texts = [Path(f"f{number}.py").read_text() for number in range(4)]
    assert texts == [FIXED] * (at - 1) + [BAD] * (5 - at)
    assert attacked.check(".").code == 1


@POSIX
@pytest.mark.complete
def test_fixes_killed_at_any_moment(attacked: Attacked) -> None:
    command = [sys.executable, "-m", "tensortrail", "check", ".", *FIX]
    names = [f"f{number}.py" for number in range(30)]

    def started() -> subprocess.Popen[bytes]:
        for name in names:
            attacked.write(name, BAD * 20)
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    began = time.monotonic()
    started().wait()
    whole = time.monotonic() - began
    fixed = 0
    for step in range(40):
        running = started()
        time.sleep(1.5 * whole * step / 39)  # the files are written at the end
        running.kill()
        running.wait()
        for name in names:
            text = Path(name).read_text()
            assert text in (BAD * 20, FIXED * 20)
            fixed += text == FIXED * 20
    assert 0 < fixed < 40 * 30
