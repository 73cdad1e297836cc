"""Fixes: checked, repeated until stable, written in one step."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.fixing.fixer import fix_file
from tensortrail.analyzer.fixing.previews import unified_diff, with_previews
from tensortrail.analyzer.judging.engine import check
from tensortrail.analyzer.reading.notebooks.program import RawCell, join
from tensortrail.files import write
from tensortrail.findings import Confidence as C
from tensortrail.findings import Edit, Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Bad, Good, all_rules

BAD = 'def f(t):\n    return t.weight.device == "meta", t.weight.device != "cpu"\n'


def find(name: str, data: bytes) -> Sequence[Finding]:
    codes = frozenset(all_rules())
    request = CheckRequest(stdin=(name, data), codes=codes, cache_dir=None, siblings=False)
    return check(request).findings


def test_two_fixes_of_one_line() -> None:
    data = BAD.encode()
    fixed = fix_file("a.py", data, find("a.py", data), True, find)
    assert fixed.applied == 2
    assert fixed.after.decode() == BAD.replace(".device", ".device.type")
    assert fixed.left == ()


def test_unsafe_fixes_wait_for_consent() -> None:
    data = BAD.encode()
    fixed = fix_file("a.py", data, find("a.py", data), False, find)
    assert (fixed.after, fixed.applied, len(fixed.left)) == (data, 0, 2)


def finding_with(edit: Edit) -> Finding:
    fix = Fix("a fix", Safety.SAFE, (edit,))
    return Finding("AAA101", "a", "m", Severity.ERROR, C.HIGH, edit.site, fixes=(fix,))


def test_a_fix_that_breaks_the_file_is_dropped_and_told() -> None:
    data = b"x = 1\n"
    broken = finding_with(Edit(Site("a.py", 1, start=0, end=1), "def"))
    fixed = fix_file("a.py", data, [broken], True, lambda name, new: [broken])
    assert fixed.after == data
    assert "would not compile" in fixed.dropped[0]


def test_a_fix_that_mends_nothing_is_dropped_and_told() -> None:
    data = b"x = 1\n"
    vain = finding_with(Edit(Site("a.py", 1, start=0, end=1), "y"))
    fixed = fix_file("a.py", data, [vain], True, lambda name, new: [vain])
    assert fixed.after == data
    assert "would remain" in fixed.dropped[0]
    assert fixed.left[0].fixes == (), "the closing line would call it fixable"


def test_a_dropped_fix_of_a_notebook_is_placed_in_its_cell() -> None:
    data = join([RawCell(1, "import torch"), RawCell(3, "x = 1\ny = 2")])
    start = data.index(b"y = 2")
    site = Site("nb.ipynb", data[:start].count(b"\n") + 1, start=start, end=start + 1)
    vain = finding_with(Edit(site, "z"))
    fixed = fix_file("nb.ipynb", data, [vain], True, lambda name, new: [vain])
    assert fixed.dropped == ("nb.ipynb:cell 3:2: fix of AAA101 dropped: the finding would remain",)


def test_writing_keeps_permissions_and_links(tmp_path: Path) -> None:
    target = tmp_path / "real.py"
    target.write_text("x = 1\n")
    target.chmod(0o750)
    link = tmp_path / "link.py"
    if sys.platform != "win32":
        link.symlink_to(target)
        write(str(link), b"x = 2\n")
        assert link.is_symlink()
        assert target.stat().st_mode & 0o777 == 0o750
    else:
        write(str(target), b"x = 2\n")
    assert target.read_text() == "x = 2\n"
    assert sorted(os.listdir(tmp_path)) in (["link.py", "real.py"], ["real.py"])


def test_a_failed_write_leaves_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "a.py"
    target.write_text("x = 1\n")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tensortrail.files.os.replace", full)
    with pytest.raises(OSError, match="No space"):
        write(str(target), b"x = 2\n")
    assert target.read_text() == "x = 1\n"
    assert os.listdir(tmp_path) == ["a.py"]


def test_a_diff_has_the_lines_that_other_tools_see() -> None:
    """Form feeds and the separators of Unicode end no line of a diff."""
    diff = unified_diff("a.py", b"x\x0c = '\xe2\x80\xa8'\r\nb\n", b"x\x0c = '\xe2\x80\xa8'\r\nc")
    assert diff == (
        "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x\x0c = '\u2028'\r\n-b\n+c\n"
        "\\ No newline at end of file\n"
    )


def test_previews_and_diffs() -> None:
    data = BAD.encode()
    (first, *_) = with_previews(find("a.py", data), lambda path: data)
    assert '-    return t.weight.device == "meta"' in first.fixes[0].preview
    assert '+    return t.weight.device.type == "meta"' in first.fixes[0].preview
    diff = unified_diff("a.py", b"x = 1\n", b"x = 2")
    assert diff.startswith("--- a/a.py\n+++ b/a.py\n")
    assert "No newline at end of file" in diff


def test_a_byte_order_mark_is_not_in_a_preview() -> None:
    data = b"\xef\xbb\xbf" + b'def f(t): return t.weight.device == "meta"\n'
    (first, *_) = with_previews(find("a.py", data), lambda path: data)
    assert '\n-def f(t): return t.weight.device == "meta"' in first.fixes[0].preview


EXAMPLES = [
    example.source
    for rule in all_rules().values()
    if rule.reads_code()
    for example in [*rule.bad, *rule.good]
    if isinstance(example, (Bad, Good)) and not example.files
]


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(EXAMPLES), min_size=1, max_size=3),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from(["", "\ufeff", "# \U0001f525 fire\n"]),
)
def test_any_fix_keeps_the_file_parsable_and_is_idempotent(
    parts: list[str], newline: str, nested: bool, head: str
) -> None:
    source = "\n".join(parts)
    if nested:
        source = "if True:\n" + "".join(f"    {line}\n" for line in source.split("\n"))
    data = (head + source).replace("\n", newline).encode()
    ast.parse(data)
    once = fix_file("a.py", data, find("a.py", data), True, find)
    ast.parse(once.after)
    assert len(once.left) <= len(find("a.py", data))
    twice = fix_file("a.py", once.after, find("a.py", once.after), True, find)
    assert twice.after == once.after
    assert _without_fixes(once.left) == _without_fixes(find("a.py", once.after))


def _without_fixes(findings: Iterable[Finding]) -> list[Finding]:
    """Of a finding that is left no fix is offered that was tried and dropped."""
    return [replace(each, fixes=()) for each in findings]
