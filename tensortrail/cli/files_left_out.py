"""Which files a check did not look at, by whose word, and how to have them checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensortrail.analyzer.choosing.request import CheckResult
from tensortrail.plurals import counted

_SHOWN = 5


def why_nothing(result: CheckResult) -> list[str]:
    """What to say below "no Python files found"."""
    from tensortrail.analyzer.reading.discover import counted_by_reason

    counts = counted_by_reason(result.left_out).most_common()
    lines = [f"{counted(count, 'file')} left out by {reason}" for reason, count in counts[:_SHOWN]]
    if len(counts) > _SHOWN:
        rest = sum(count for _, count in counts[_SHOWN:])
        lines.append(f"{counted(rest, 'file')} left out by {len(counts) - _SHOWN} other reasons")
    lines += notes(result)
    return [*lines, "name a file or folder that has some, or pass --allow-empty"]


def notes(result: CheckResult) -> Iterator[str]:
    """What is said about files that were not looked at in any run."""
    if result.outside:
        links = counted(len(result.outside), "link")
        shown = _some(result.outside)
        yield f"{links} out of the project not followed: {shown} (give a path to have it checked)"
    if result.pointers:
        notebooks = counted(len(result.pointers), "notebook")
        shown = _some(result.pointers)
        yield f"{notebooks} not checked, `git lfs pull` fetches the content: {shown}"


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:_SHOWN]) + ", ..." * (len(paths) > _SHOWN)
