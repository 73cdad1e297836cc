"""Settings as a patch with reasons, and as lines to be used by hand."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tensortrail.findings import Setting, Site, Suggestion
from tensortrail.reporters.suggestions import as_json, as_text, snippet

from .samples import finding

CALL = Setting("lib", "size", "7", "less", "save", call="save", at=Site("b.py", 4))
HOSTILE = Setting(
    "lib\n--- x", "size\n+++ x", "7\n@@ -1 +1 @@\n-a\n+b", "why\x1b[0m\ndiff --git a/x b/x", "w"
)
DIFF = "--- ./a.py\n+++ ./a.py\n@@ -1 +1 @@\n-a\n+b\n"


def test_reasons_stand_before_the_patch() -> None:
    told = Suggestion(CALL, (finding(),), (Setting("lib", "other", "1", "also"),))
    assert as_text([told], DIFF) == (
        "# OFF101 a.py:3: unguarded-deallocate\n#   lib size=7: less\n"
        f"#   or lib other=1: also\n{DIFF}"
    )


def test_what_is_left_stands_behind_it() -> None:
    left = Suggestion(CALL, (finding(),), left="two calls")
    assert as_text([left], DIFF).partition(DIFF)[2] == (
        "# OFF101 a.py:3: unguarded-deallocate\n#   lib size=7: less\n"
        "#   by hand, save, b.py:4: two calls\nsave(..., size=7)\n"
    )


@pytest.mark.parametrize("left", ["", "no\n--- y"])
def test_text_from_a_run_makes_no_patch_of_its_own(tmp_path: Path, left: str) -> None:
    """Only what is in the diff is applied, whatever a setting says."""
    (tmp_path / "a.py").write_text("a\n")
    (tmp_path / "x").write_text("a\n")
    text = as_text([Suggestion(HOSTILE, (finding(),), left=left)], DIFF)
    assert "\x1b" not in text
    for line in text.replace(DIFF, "").splitlines():
        assert line.startswith("#") or not line.startswith(("-", "+", "@", "diff"))
    done = subprocess.run(["patch", "-p0"], input=text, cwd=tmp_path, text=True, check=False)
    assert done.returncode == 0
    assert (tmp_path / "a.py").read_text() == "b\n"
    assert (tmp_path / "x").read_text() == "a\n"


@pytest.mark.parametrize(
    ("setting", "shown"),
    [
        (CALL, "save(..., size=7)"),
        (Setting("lib", "A", "x y", "", "environment"), "export A='x y'"),
        (Setting("lib", "size", "7", ""), ""),
        (Setting("lib", "size", "7", "", call="+++ y\n"), "# +++ y\\x0a(..., size=7)"),
        (
            Setting("lib", "how", "C()", "", call="save", imports="from a import C"),
            "from a import C\nsave(..., how=C())",
        ),
    ],
)
def test_as_the_library_reads_it(setting: Setting, shown: str) -> None:
    assert snippet(setting) == shown


def test_json_says_all_of_it() -> None:
    told = Suggestion(CALL, (finding(),), (HOSTILE,), left="two calls")
    data = json.loads(as_json([told], DIFF, ("odd\x1b",)))
    assert data["patch"] == DIFF
    assert data["problems"] == ["odd\\x1b"]
    (setting,) = data["settings"]
    assert (setting["in_patch"], setting["left"]) == (False, "two calls")
    assert setting["at"] == {"file": "b.py", "line": 4}
    assert setting["findings"] == [{"code": "OFF101", "file": "a.py", "line": 3}]
    assert [each["library"] for each in setting["or"]] == ["lib\n--- x"]
