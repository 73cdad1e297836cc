"""One file's source in, its findings out: the door between the engine and the semantic core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensortrail.analyzer.project import Project
from tensortrail.findings import Finding
from tensortrail.rules import Rule


class Unreadable(Exception):
    """The source cannot be judged; the message says why, in one line, with the place."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Judgement:
    findings: tuple[Finding, ...]
    depends_on: tuple[str, ...]
    """Other files whose facts were consulted: the findings hold while these are unchanged."""


def judge(path: str, data: bytes, rules: Sequence[Rule], project: Project) -> Judgement:
    """Run the static halves of `rules` over one file's bytes.

    Raises Unreadable for bytes that are no Python source; never another exception for bad input.
    """
    raise NotImplementedError
