"""Files and settings that no editor would write: each gets a message, the others are checked."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

import pytest

from tensortrail.analyzer.reading.gitignore import bounded
from tests.parts import first_of

from .attacked import BAD, Attacked

pytestmark = pytest.mark.long

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices of POSIX")
ELIFS = "def f(t, n):\n    if n < 0:\n        return 0\n" + "".join(
    f"    elif n == {number}:\n        return t.weight.device == 'meta'\n"
    for number in range(2_000)
)
NESTED = "x = " + "-" * 3_000 + "t.weight.device\ny = t.weight.device == 'meta'\n"
CHAIN = "y = t.weight" + ".to(1)" * 3_000 + ".device == 'meta'\n"
SUMS = "y = " + " + ".join(["t"] * 5_000) + " + t.weight.device == 'meta'\n"
ODD: dict[str, str | bytes] = {
    "idna": "# coding: idna\n" + BAD,
    "punycode": "# coding: punycode\n" + BAD,
    "hex": "# coding: hex\n" + BAD,
    "undefined": "# coding: undefined\n" + BAD,
    "unicode_escape": "# coding: unicode_escape\n" + BAD,
    "utf7": "# coding: utf-7\n+AGEAYgBj\n" + BAD,
    "no such": "# coding: klingon\n" + BAD,
    "no utf-8": BAD.encode() + b"# \xff\n",
    "nul": BAD.encode() + b"\0",
    "bom and another": b"\xef\xbb\xbf# coding: latin-1\n" + BAD.encode(),
    "utf-16": BAD.encode("utf-16"),
    "elif": ELIFS,
    "nested": NESTED,
    "chain": CHAIN,
    "sums": SUMS,
    "brackets": "(" * 50_000,
    "suppressions": "x = 1  # tensortrail: ignore[OFF101\n" * 2_000,
    "unclosed": BAD + "# noqa: DEV501\nx = '''",
    "indent": BAD + "  x = 1  # tensortrail: ignore\n",
    "digits": "x = " + "9" * 100_000 + "\n" + BAD,
    "large": BAD + "#" * 21_000_000,
    "line": BAD + "x = '" + "a" * 5_000_000 + "'\n",
}

CONSOLE = "import sys; del sys.path[0]; from tensortrail.cli import main; sys.exit(main())"
NO_TRIGGER = ("brackets", "digits", "utf-16")


@pytest.mark.parametrize("how", first_of([(), ("--fix", "--unsafe-fixes"), ("--add-ignores",)]))
@pytest.mark.parametrize("name", ODD)
def test_an_odd_file_costs_no_other_its_finding(
    attacked: Attacked, name: str, how: tuple[str, ...]
) -> None:
    odd = attacked.write("odd.py", ODD[name])
    before = odd.read_bytes()
    attacked.write("other.py", BAD)
    began = time.process_time()
    done = attacked.check("odd.py", "other.py", *how)
    assert time.process_time() - began < 10
    assert "internal error" not in done.err
    if not how:
        assert done.code == 1
        assert done.found("other.py") == ["DEV501"]
        assert done.found("odd.py") or name in NO_TRIGGER
    else:
        assert (attacked.project / "other.py").read_text() != BAD
        assert odd.read_bytes() == before or attacked.check("odd.py").code in (0, 1)


@POSIX
def test_what_is_no_file_gets_a_message(attacked: Attacked) -> None:
    os.mkfifo("pipe.py")
    server = socket.socket(socket.AF_UNIX)
    server.bind("socket.py")
    attacked.write("other.py", BAD)
    done = attacked.check("pipe.py", "/dev/zero", "socket.py", "other.py")
    server.close()
    assert done.found("other.py") == ["DEV501"]
    assert "pipe.py:1:1: TTR001 [error] cannot be opened: it is a pipe, not a file" in done.out
    assert "/dev/zero:1:1: TTR001 [error] cannot be opened: it is a device" in done.out
    assert "socket.py:1:1: TTR001 [error] cannot be opened: it is a socket" in done.out


@POSIX
def test_what_is_no_file_is_no_ignore_file_and_no_module(attacked: Attacked) -> None:
    os.mkfifo(".gitignore")
    os.mkfifo("other.py")
    attacked.write("bad.py", "import other\nfrom other import x\n" + BAD)
    done = attacked.check(".")
    assert done.found("bad.py") == ["DEV501"]
    assert ".gitignore: not used: it is a pipe" in done.out


@pytest.mark.parametrize("line", ["!", "\\", "[z-a]", "a\\", "x" * 5_000, "a/**/" * 30])
def test_an_ignore_line_that_says_nothing_is_named(attacked: Attacked, line: str) -> None:
    attacked.write("bad.py", BAD)
    attacked.write("gen.py", BAD)
    attacked.write(".gitignore", f"# first\n{line}\ngen.py\n")
    done = attacked.check(".")
    assert done.found("bad.py") == ["DEV501"]
    assert done.found("gen.py") == []
    assert ".gitignore:2: this pattern cannot be used" in done.out


@pytest.mark.parametrize("line", ["*a" * 40, "*a" * 40 + "/", "*?a" * 30, "*[ab]" * 30, "*" * 500])
def test_many_stars_take_no_time(attacked: Attacked, line: str) -> None:
    attacked.write(".gitignore", line + "b\n")
    for number in range(20):
        attacked.write(f"{'a' * 200}{number}.py", BAD)
    began = time.process_time()
    done = attacked.check(".")
    assert time.process_time() - began < 5
    assert done.out.count("DEV501") == 20


@pytest.mark.parametrize(
    ("regex", "same"),
    [
        (r"^(?:.+/)?[^/]*a[^/]*b[^/]*(?:(?P<ps_d>/)|$)", ["xaxbx", "d/ab", "ba", "a/b", "aXb/c"]),
        (r"^x[^/]*\.[^/]*y(?:(?P<ps_d>/)|$)", ["x..y", "x.y", "xy", "x.a.b.y", "x.a/y"]),
        (r"^[^/]*[a-c][^/][^/]*[^/]*z/", ["abz/x", "qaqz/x", "qqz/x", "az/z/", "aaz"]),
    ],
)
def test_the_same_names_are_ignored(regex: str, same: list[str]) -> None:
    import re

    safe = bounded(regex)
    assert safe is not None
    assert [bool(re.match(safe, name)) for name in same] == [
        bool(re.match(regex, name)) for name in same
    ]


TOO_DEEP = "x = " + "[" * 5_000
SETTINGS: dict[str, tuple[str | bytes, str]] = {
    "brackets": (f"{TOO_DEEP}\n[tool.tensortrail]\n", "nested too deeply"),
    "nul": ('[tool.tensortrail]\ncache-dir = "a\\u0000b"\n', "cache-dir must be a string"),
    "nul in exclude": ('[tool.tensortrail]\nexclude = ["a\\u0000b"]\n', "exclude must be"),
    "number": (f"[tool.tensortrail]\njobs = {'9' * 5_000}\n", "not valid TOML"),
    "bytes": (b"[tool.tensortrail]\n\xff\n", "not valid TOML"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_cannot_be_meant_are_a_message(attacked: Attacked, name: str) -> None:
    content, message = SETTINGS[name]
    attacked.write("bad.py", BAD)
    attacked.write("pyproject.toml", content)
    done = attacked.check(".")
    assert done.code == 2
    assert message in done.err
    assert "internal error" not in done.err
    assert attacked.check(".", "--isolated").found("bad.py") == ["DEV501"]


def test_a_very_deep_tree(attacked: Attacked) -> None:
    attacked.write("bad.py", BAD)
    here = os.getcwd()
    for _ in range(130):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(here)
    done = attacked.check(".")
    assert done.found("bad.py") == ["DEV501"]
    assert "more than 100 folders deep" in done.out


def test_what_git_ignores_is_said_where_nothing_is_left(attacked: Attacked) -> None:
    for name in ("gen/a.py", "gen/deep/b.py", "c_pb2.py", "build/d.py"):
        attacked.write(name, BAD)
    attacked.write(".gitignore", "# made\n\ngen/\n*_pb2.py\n")
    done = attacked.check(".")
    assert done.code == 2
    assert "no Python files found in ." in done.err
    told = "--no-respect-gitignore checks them"
    assert f"2 files left out by 'gen/' (./.gitignore:3); {told}" in done.err
    assert f"1 file left out by '*_pb2.py' (./.gitignore:4); {told}" in done.err
    assert "1 file left out by the folder name 'build'; give its path" in done.err
    assert attacked.check(".", "--no-respect-gitignore").out.count("DEV501") == 3


MODULES = ("rich", "libcst", "pathspec", "tomllib", "difflib", "hashlib", "json", "torch", "bad")


@pytest.mark.parametrize("command", [("-m", "tensortrail"), ("-c", CONSOLE)])
def test_nothing_of_a_checkout_is_imported(attacked: Attacked, command: tuple[str, ...]) -> None:
    for name in MODULES:
        attacked.write(f"{name}.py", "open('was_run', 'w')\n" + BAD)
    attacked.write("evil-1.dist-info/entry_points.txt", "[tensortrail.rules]\nx = bad\n")
    attacked.write("evil-1.dist-info/METADATA", "Name: evil\nVersion: 1\n")
    attacked.write(".gitignore", "gen/\n")
    for how in ((), ("--fix", "--unsafe-fixes")):
        run = [sys.executable, *command, "check", ".", "--color", "always", *how]
        done = subprocess.run(run, capture_output=True, text=True, timeout=60)
        assert "DEV501" in done.stdout or how, done.stderr
    assert not os.path.exists("was_run")
    assert "device.type" in (attacked.project / "bad.py").read_text()
