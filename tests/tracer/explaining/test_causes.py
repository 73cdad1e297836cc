"""The table of known causes: what it knows, what it leaves alone, and that it stays sound."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tensortrail.tracer.explaining.causes import READ_AT_MOST, all_causes, match, match_chain

HERE = Path(__file__).parent
FAMILIES = (
    "compile meta-data device-mismatch storage subclass checkpoint shards offload memory async"
    " hidden"
).split()
GROUPS = set(
    "argument bytes device expected file found input kernel library method module op other"
    " position prefix rank tensor type value weight where why".split()
)
SPLIT = "We could not revert some weight conversions because of offlading"
NO_DATA = "Cannot copy out of meta tensor; no data!"


def rows(name: str) -> list[dict[str, Any]]:
    lines = (HERE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


KNOWN = rows("error-samples") + rows("error-variants")
UNRELATED = rows("unrelated-messages")


def shown(row: dict[str, Any]) -> str:
    return f"{row.get('cause', row['type'])}-{row['message'][:40]}"


@pytest.mark.parametrize("row", KNOWN, ids=shown)
def test_a_message_leads_to_its_cause_and_what_it_says(row: dict[str, Any]) -> None:
    hit = match(row["type"], row["message"])
    assert hit is not None
    assert (hit.cause.name, dict(hit.found)) == (row["cause"], row["found"])


@pytest.mark.parametrize("row", UNRELATED, ids=shown)
def test_a_message_about_something_else_has_no_cause_here(row: dict[str, Any]) -> None:
    assert match(row["type"], row["message"]) is None


def test_every_entry_is_met_by_a_variant_of_its_message() -> None:
    assert {row["cause"] for row in rows("error-variants")} == {c.name for c in all_causes()}


def test_a_message_carried_inside_another_is_found() -> None:
    carried = "Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback:\n{}"
    for row in rows("error-samples"):
        if row["type"] and not row["message"].startswith(("b_q_weight", "Untracked tensor")):
            hit = match("RuntimeError", carried.format(f"{row['type']}: {row['message']}\n"))
            assert hit is not None
            assert hit.cause.name == row["cause"]


# --- the table ----------------------------------------------------------------------------


def test_names_are_unique_and_families_stand_together() -> None:
    names = [cause.name for cause in all_causes()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)
    assert [family for family, _ in groupby(all_causes(), lambda c: c.family)] == FAMILIES


def test_every_entry_tells_a_user_what_happened_and_what_to_do() -> None:
    for cause in all_causes():
        for text in (cause.cause, cause.advice):
            assert text[0].isupper() or re.match(r"\w+[._]\w", text), cause.name
            assert text.endswith("."), cause.name
            assert 30 <= len(text) <= 330, cause.name
        for setting in cause.settings:
            parts = (setting.library, setting.name, setting.value, setting.where, setting.why)
            assert all(parts), cause.name
            assert ".." not in setting.value, cause.name


def test_references_are_in_form() -> None:
    for cause in all_causes():
        for reference in cause.see:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+#\d+|[a-z_ ]+ docs: [\w ]+", reference)


def test_every_word_a_message_gives_is_one_of_a_few() -> None:
    given = {group for c in all_causes() for p in c.patterns for group in p.groupindex}
    assert given == GROUPS


def test_an_entry_that_hides_another_error_says_so() -> None:
    hiding = [cause for cause in all_causes() if cause.catch_all]
    assert {"weight-conversion-not-reverted", "parameter-swap-refused"} <= {c.name for c in hiding}
    assert all("error" in cause.cause for cause in hiding)


# --- no message makes the search slow -----------------------------------------------------


def repetitions(parsed: Any, factor: int = 1) -> Iterator[int]:
    """How often each repetition may run, those around it multiplied in."""
    for _, argument in parsed:
        for part in argument if isinstance(argument, (tuple, list)) else (argument,):
            if hasattr(part, "getwidth"):
                repeats = isinstance(argument, tuple) and len(argument) == 3
                most = factor * int(argument[1]) if repeats and part is argument[2] else factor
                yield most
                yield from repetitions(part, most)
            elif isinstance(part, list):
                for branch in part:
                    if hasattr(branch, "getwidth"):
                        yield from repetitions(branch, factor)


def test_the_guard_below_sees_what_is_not_bounded() -> None:
    parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
    for endless in (r"a+", r"(?:ab)*c", r"x(?:y|z+)", r"(?P<g>a{1,90}){1,90}", r"(?=a*)b"):
        assert max(repetitions(parser.parse(endless))) > 2000, endless


def test_every_repetition_is_bounded() -> None:
    parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
    for cause in all_causes():
        for pattern in cause.patterns:
            parsed = parser.parse(pattern.pattern)
            assert max(repetitions(parsed), default=1) <= 2000, (cause.name, pattern.pattern)
            assert parsed.getwidth()[1] <= 5000, (cause.name, pattern.pattern)


def hostile() -> Iterator[str]:
    for row in {row["cause"]: row for row in KNOWN}.values():
        text = f"{row['type']}: {row['message']}"
        for begun in (text[: len(text) // 2], text[:-4]):
            yield (begun * (100_000 // len(begun) + 1))[:100_000]
    for unit in ("a", "a.", ".", " ", "\n", "-", "/", "'", '"', "[", "a b ", "conv", "\x00", "é"):
        yield unit * (100_000 // len(unit))


@pytest.mark.complete
def test_long_messages_full_of_beginnings_come_to_an_end() -> None:
    answers = [match("RuntimeError", message) for message in hostile()]
    assert len(answers) == 2 * len(all_causes()) + 14


def test_the_end_of_a_huge_message_is_read_too() -> None:
    hit = match("RuntimeError", "x" * (3 * READ_AT_MOST) + f"\n{NO_DATA}")
    assert hit is not None
    assert hit.cause.name == "meta-tensor-copied"


# --- chains -------------------------------------------------------------------------------


def names(error: BaseException) -> list[str | None]:
    return [hit.cause.name if hit else None for _, hit in match_chain(error)]


def raised(outer: BaseException, inner: BaseException, how: str) -> BaseException:
    try:
        try:
            raise inner
        except BaseException as first:
            if how == "from":
                raise outer from first
            if how == "from None":
                raise outer from None
            raise outer  # noqa: B904 (the missing `from` is the case)
    except BaseException as last:
        return last


@pytest.mark.parametrize("how", ["from", "while handling"])
def test_the_error_behind_a_catch_all_is_given_after_it(how: str) -> None:
    error = raised(RuntimeError(SPLIT), NotImplementedError(NO_DATA), how)
    [(outer, first), (inner, second)] = match_chain(error)
    assert first is not None
    assert first.cause.catch_all
    assert second is not None
    assert not second.cause.catch_all
    assert (type(outer), type(inner)) == (RuntimeError, NotImplementedError)
    assert second.cause.name == "meta-tensor-copied"


def test_what_the_author_suppressed_stays_so() -> None:
    error = raised(RuntimeError(SPLIT), NotImplementedError(NO_DATA), "from None")
    assert names(error) == ["weight-conversion-not-reverted"]


def test_an_explicit_cause_goes_before_what_was_being_handled() -> None:
    error = raised(RuntimeError(SPLIT), KeyError("x"), "while handling")
    error.__cause__ = NotImplementedError(NO_DATA)
    assert names(error) == ["weight-conversion-not-reverted", "meta-tensor-copied"]


def test_links_without_a_known_cause_are_kept() -> None:
    middle = raised(ValueError("bad shard"), NotImplementedError(NO_DATA), "from")
    assert names(raised(RuntimeError(SPLIT), middle, "from")) == [
        "weight-conversion-not-reverted",
        None,
        "meta-tensor-copied",
    ]


def test_a_chain_that_leads_back_ends() -> None:
    first, second = RuntimeError(SPLIT), NotImplementedError(NO_DATA)
    first.__cause__, second.__cause__ = second, first
    assert names(first) == ["weight-conversion-not-reverted", "meta-tensor-copied"]


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


class Empty(Exception):
    def __len__(self) -> int:
        return 0


def test_errors_that_cannot_be_printed_or_count_as_false_do_not_stop_the_walk() -> None:
    mute = raised(Mute(), KeyError(), "from")
    error = raised(RuntimeError("outer"), raised(Empty(), mute, "from"), "from")
    assert [type(link) for link, _ in match_chain(error)] == [RuntimeError, Empty, Mute, KeyError]


def test_types_are_named_as_a_traceback_names_them() -> None:
    class OutOfMemoryError(RuntimeError):
        pass

    OutOfMemoryError.__module__ = "torch"
    OutOfMemoryError.__qualname__ = "OutOfMemoryError"
    error = OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    [(_, hit)] = match_chain(error)
    assert hit is not None
    assert dict(hit.found) == {"device": "CUDA", "bytes": "2.00 GiB"}


def test_the_table_is_read_without_torch() -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from tensortrail.tracer.explaining.causes import match\n"
        f"print(match('', {NO_DATA!r}).cause.name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["meta-tensor-copied"]
