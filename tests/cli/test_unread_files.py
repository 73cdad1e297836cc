"""Files that a check could not read, or may not edit, are told of with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensortrail.analyzer.reading.parsing import NEWER
from tensortrail.cli import main

pytestmark = pytest.mark.long

BAD = 'import torch\n\n\ndef f(t):\n    return t.weight.device == "meta"\n'
LATER = f"type X[[T]] = list[T]\n{BAD}"
"""No Python reads it: in which words that is told depends on the one that runs the test."""
LATIN = f"# -*- coding: latin-1 -*-\n# caf\xe9\n{BAD}".encode("latin-1")


@pytest.fixture
def later(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project in the syntax of a Python that does not run here."""
    monkeypatch.setattr("tensortrail.analyzer.reading.parsing.is_newer", lambda error: True)
    (here / "src").mkdir()
    (here / "src" / "later.py").write_text(LATER)
    (here / "src" / "apart.py").write_text("x = 1\n")
    return here


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["src"], 2),
        (["src/later.py"], 0),  # a hook is given the files of one commit
        (["src", "--exit-zero"], 0),
        (["src", "--allow-empty"], 0),
    ],
)
def test_a_folder_of_which_nothing_was_read_is_not_clean(
    later: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int
) -> None:
    assert main(["check", "--jobs", "1", *arguments]) == code
    out, err = capsys.readouterr()
    assert NEWER in out
    told = "nothing was checked: the file that uses torch is written for a later Python than"
    assert (told in err) is (code == 2)


def test_one_file_that_was_read_is_enough(later: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (later / "src" / "read.py").write_text("import torch\n")
    assert main(["check", "--jobs", "1", "src"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("option", ["--fix", "--diff", "--add-ignores"])
def test_why_a_file_of_another_encoding_is_left(
    here: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    (here / "latin.py").write_bytes(LATIN)
    code = main(["check", option])
    told = "the file is in iso-8859-1, and only UTF-8 is edited"
    assert told in capsys.readouterr().err
    assert (here / "latin.py").read_bytes() == LATIN
    assert code == (0 if option == "--diff" else 1)


@pytest.mark.parametrize(
    ("data", "code", "told"),
    [
        (
            BAD.encode("utf-16"),
            1,
            "error[TTR001] unreadable-source: written in UTF-16, which",
        ),
        ("x = 1\n".encode("utf-16"), 0, "note[TTR001] unreadable-source: written in UTF-16, which"),
        (
            b"\x7fELF\0\1",
            0,
            "note[TTR001] unreadable-source: the file contains null bytes",
        ),
        (b"import torch\n\0", 1, "error[TTR001] unreadable-source: the file contains null bytes"),
    ],
    ids=["UTF-16", "UTF-16 without torch", "binary", "binary with torch"],
)
@pytest.mark.parametrize("named", ["no_text.py", "."])
def test_a_file_with_zero_bytes_was_not_checked(
    here: Path, capsys: pytest.CaptureFixture[str], data: bytes, code: int, told: str, named: str
) -> None:
    (here / "no_text.py").write_bytes(data)
    assert main(["check", named]) == code
    assert told in capsys.readouterr().out


def test_a_file_that_is_no_python_needs_no_page(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "broken.py").write_text("import torch\ndef f(:\n")
    main(["check", "--diff"])
    err = capsys.readouterr().err
    assert "TTR001 at broken.py:2: not valid Python" in err
    assert "explain" not in err
