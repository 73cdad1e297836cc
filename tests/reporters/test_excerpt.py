"""Where characters come to lie on a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortrail.reporters.diff_excerpt import diff_lines
from tensortrail.reporters.excerpt import Excerpt, excerpt


@pytest.mark.parametrize(
    ("line", "columns"),
    [
        ("abc", 3),
        ("\tab", 6),
        ("ab\tc", 5),
        ("漢字", 4),
        ("e\u0301", 1),
        ("\U0001f525", 2),
        ("\U0001f44d\U0001f3fd", 2),
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", 2),
        ("\u2764\ufe0f", 2),
        ("\u1112\u1161\u11ab", 2),
        ("ｗ", 2),
        ("\u202e", 6),
    ],
)
def test_widths(line: str, columns: int) -> None:
    assert excerpt(line, 0, len(line)).length == columns


def test_tabs_fill_to_the_next_stop() -> None:
    assert excerpt("a\tb", 2, 3) == Excerpt("a   b", 4, 1)


def test_positions_outside_the_line_are_taken_as_its_end() -> None:
    assert excerpt("abc", 7, 9) == Excerpt("abc", 3, 0)


def test_a_cut_line_says_so() -> None:
    assert excerpt("a" * 50, room=20) == Excerpt("a" * 17 + "...", 0, 0)
    shown = excerpt("a" * 50 + "HERE" + "b" * 50, 50, 54, 20)
    assert shown.text.startswith("...a")
    assert shown.text.endswith("b...")
    assert shown.text[shown.offset : shown.offset + shown.length] == "HERE"


def test_lines_of_megabytes() -> None:
    shown = excerpt("a" * 3_000_000 + "HERE" + "b" * 2_000_000, 3_000_000, 3_000_004, 40)
    assert len(shown.text) <= 40
    assert shown.text[shown.offset : shown.offset + shown.length] == "HERE"
    end = excerpt("a" * 3_000_000 + "HERE", 3_000_000, 3_000_004, 40)
    assert end.text.endswith("aHERE")


ASCII = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#"))


@given(ASCII, ASCII, ASCII, st.integers(20, 60))
def test_the_flagged_text_is_shown_in_the_room_there_is(
    before: str, flagged: str, after: str, room: int
) -> None:
    start, end = len(before), len(before) + len(flagged)
    shown = excerpt(before + flagged + after, start, end, room)
    assert len(shown.text) <= room
    visible = shown.text[shown.offset : shown.offset + shown.length]
    assert flagged.startswith(visible)
    assert bool(visible) == bool(flagged)


@given(st.text(), st.integers(-3, 30), st.integers(-3, 30), st.integers(20, 60))
def test_any_text_any_range(line: str, start: int, end: int, room: int) -> None:
    shown = excerpt(line, start, end, room)
    assert shown.offset >= 0
    assert shown.length >= 0
    assert "\n" not in shown.text


def test_a_diff_in_a_narrow_terminal_shows_what_changes() -> None:
    before = "-            chosen = torch.randint(0, 2, (batch.shape[0], 1)).cuda()"
    after = before.replace("-", "+", 1).replace(".cuda()", ".to(mask.device)")
    shown = list(diff_lines(f"@@ -3 +3 @@\n{before}\n{after}", 40))
    assert shown[0] == "@@ -3 +3 @@"
    assert shown[1].startswith("-...")
    assert shown[1].endswith(".cuda()")
    assert shown[2].startswith("+...")
    assert shown[2].endswith(".to(mask.device)")
    assert max(map(len, shown)) <= 40
