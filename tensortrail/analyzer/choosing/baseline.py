"""Findings that a project lives with, known by their content: a line that moves keeps its entry."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from tensortrail.files import read, write
from tensortrail.findings import Finding, Severity

DEFAULT_NAME = "tensortrail-baseline.json"
_LARGEST = 100_000_000
_SHOWN = 80
"""Characters of the code that an entry quotes."""


class BadBaseline(ValueError):
    """The file is no baseline; the message says why, in one line."""


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """A finding of one file, however often and wherever it stands there."""

    file: str
    """From the folder of the baseline, with `/`."""
    code: str
    key: str
    severity: str = field(compare=False)
    source: str = field(compare=False)
    """The beginning of the flagged code, for people."""


@dataclass(frozen=True)
class Baseline:
    path: str
    entries: Mapping[Entry, int] = field(default_factory=dict)
    """How many findings each stands for."""
    where: str = "in the baseline"
    """Where people find them."""

    @property
    def total(self) -> int:
        return sum(self.entries.values())

    def entry(self, finding: Finding) -> Entry:
        folder = os.path.dirname(os.path.abspath(self.path))
        file = os.path.relpath(os.path.abspath(finding.site.file), folder).replace(os.sep, "/")
        key = sha256(finding.content.encode("utf-8", "backslashreplace")).hexdigest()[:16]
        source = " ".join(finding.site.source.split())[:_SHOWN]
        return Entry(file, finding.code, key, finding.severity.value, source)

    def file_of(self, entry: Entry) -> str:
        return os.path.join(os.path.dirname(os.path.abspath(self.path)), entry.file)

    def split(self, findings: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
        """The findings that are new, and those that have an entry."""
        left = Counter(self.entries)
        new: list[Finding] = []
        known: list[Finding] = []
        for finding in findings:
            entry = self.entry(finding)
            (known if left[entry] > 0 else new).append(finding)
            left[entry] -= 1
        return self._moved(new, known, left) if new else (new, known)

    def _moved(
        self, new: list[Finding], known: list[Finding], left: Counter[Entry]
    ) -> tuple[list[Finding], list[Finding]]:
        """A file that has another name now keeps its entries."""
        rest = Counter[tuple[str, str]]()
        for entry, count in left.items():
            if count > 0 and not os.path.exists(self.file_of(entry)):
                rest[entry.code, entry.key] += count
        still_new: list[Finding] = []
        for finding in new:
            entry = self.entry(finding)
            content = entry.code, entry.key
            (known if rest[content] > 0 else still_new).append(finding)
            rest[content] -= 1
        return still_new, known

    def renewed(self, findings: Iterable[Finding], judged: Callable[[Entry], bool]) -> Baseline:
        """With these findings, and the entries of what was not `judged` this time."""
        counts = Counter(map(self.entry, findings))
        kept = Counter({entry: n for entry, n in self.entries.items() if not judged(entry)})
        return Baseline(self.path, counts | kept, self.where)

    def save(self) -> None:
        rows = [
            json.dumps(_as_object(entry, self.entries[entry]), ensure_ascii=True)
            for entry in sorted(self.entries)
        ]
        listed = ",\n".join(f"  {row}" for row in rows)
        text = f'{{"version": 1, "findings": [\n{listed}\n]}}\n'
        write(self.path, text.encode())


def load(path: str) -> Baseline:
    """Raises OSError or BadBaseline."""
    try:
        told = json.loads(read(path, _LARGEST))
        if told["version"] != 1:
            raise BadBaseline(f"its version is {told['version']!r}, and 1 is known here")
        return Baseline(path, Counter(dict(map(_from_object, told["findings"]))))
    except BadBaseline:
        raise
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadBaseline("it was not written by `--write-baseline`") from error


def _as_object(entry: Entry, count: int) -> dict[str, Any]:
    return {
        "file": entry.file,
        "code": entry.code,
        "severity": entry.severity,
        "count": count,
        "key": entry.key,
        "source": entry.source,
    }


def _from_object(told: Mapping[str, Any]) -> tuple[Entry, int]:
    entry = Entry(
        told["file"], told["code"], told["key"], Severity(told["severity"]).value, told["source"]
    )
    texts = (entry.file, entry.code, entry.key, entry.source)
    count = told["count"]
    if not all(isinstance(each, str) and "\0" not in each for each in texts):
        raise ValueError
    if not isinstance(count, int) or count < 1:
        raise ValueError
    return entry, count
