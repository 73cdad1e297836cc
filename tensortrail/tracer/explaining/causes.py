"""A known cause is what usually lies behind a message about devices, storages or checkpoints."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tensortrail.findings import Setting
from tensortrail.toml import own_table

READ_AT_MOST = 50_000
"""Characters of a message looked at: half of them from its start, half from its end."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One family of messages and what to tell a user who meets one of them."""

    name: str
    family: str
    patterns: tuple[re.Pattern[str], ...]
    """Searched in "type: message", as the last lines of a traceback show it."""
    cause: str
    advice: str
    settings: tuple[Setting, ...] = ()
    see: tuple[str, ...] = ()
    catch_all: bool = False
    """The message stands before another error, and that one must be shown."""


@dataclass(frozen=True, slots=True)
class Match:
    cause: Cause
    found: Mapping[str, str]
    """What the message says itself: `device`, `other`, `argument`, `kernel`, `tensor`, ..."""


def match(type_name: str, message: str) -> Match | None:
    """The first entry of the table that fits. `type_name` as a traceback writes it
    ("torch.OutOfMemoryError"), or "" for a line of a log."""
    if len(message) > READ_AT_MOST:
        half = READ_AT_MOST // 2
        message = f"{message[:half]}\n{message[-half:]}"
    text = f"{type_name}: {message}" if type_name else message
    for cause in all_causes():
        for pattern in cause.patterns:
            if hit := pattern.search(text):
                said = {name: value for name, value in hit.groupdict().items() if value}
                return Match(cause, said)
    return None


def match_chain(error: BaseException) -> list[tuple[BaseException, Match | None]]:
    """The error and those it came from, the outermost first."""
    return [(link, match(type_name_of(link), _message_of(link))) for link in chain(error)]


def type_name_of(error: BaseException) -> str:
    """The type as a traceback writes it."""
    kind = type(error)
    if kind.__module__ in ("builtins", "__main__"):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


@functools.cache
def all_causes() -> tuple[Cause, ...]:
    """The table in its order: the special before the general."""
    table = own_table(__package__, "causes.toml")
    return tuple(_cause(entry, table["words"]) for entry in table["cause"])


def _cause(entry: dict[str, Any], words: Mapping[str, str]) -> Cause:
    return Cause(
        name=entry["name"],
        family=entry["family"],
        patterns=tuple(_compiled(pattern, words) for pattern in entry["patterns"]),
        cause=entry["cause"],
        advice=entry["advice"],
        settings=tuple(Setting(**setting) for setting in entry.get("settings", ())),
        catch_all=entry.get("catch_all", False),
        see=tuple(entry.get("see", ())),
    )


def _compiled(pattern: str, words: Mapping[str, str]) -> re.Pattern[str]:
    for word, meaning in words.items():
        pattern = pattern.replace(f"{{{word}}}", meaning)
    return re.compile(pattern)


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error and those it came from, as a traceback shows them: the outermost first."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        shown = None if link.__suppress_context__ else link.__context__
        link = shown if link.__cause__ is None else link.__cause__


def _message_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a user's class may fail to describe itself
        return ""
