"""What tensortrail tells a user. Reporters know these words and nothing else of ours."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from operator import attrgetter
from typing import Any, TypeVar

T = TypeVar("T")


def alike(cls: type[T]) -> type[T]:
    """Dataclasses compare, hash and show themselves in the same way: that code would be compiled
    for each of them at each start, which takes longer than anything else of it."""
    kind: Any = cls
    names = [each.name for each in fields(kind)]
    said = attrgetter(*(each.name for each in fields(kind) if each.compare))

    def equal(one: Any, other: Any) -> bool:
        return said(one) == said(other) if one.__class__ is other.__class__ else NotImplemented

    def shown(one: Any) -> str:
        parts = ", ".join(f"{name}={getattr(one, name)!r}" for name in names)
        return f"{one.__class__.__qualname__}({parts})"

    kind.__eq__, kind.__hash__, kind.__repr__ = equal, lambda one: hash(said(one)), shown
    return cls


class Severity(str, Enum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """The worst has the lowest."""
        return list(Severity).index(self)


def severest(*severities: Severity) -> Severity:
    return min(severities, key=lambda each: each.rank)


class Confidence(str, Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Safety(str, Enum):
    """How far a fix may be trusted: `--fix` applies safe ones, `--unsafe-fixes` the next."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display-only"


@alike
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Site:
    """A place in source. Lines and columns count from 1, columns in code points;
    `start` and `end` are byte offsets, -1 where only the line is known.

    In a file that has no lines, a stored checkpoint, the line is 0."""

    file: str
    line: int
    column: int = 1
    end_line: int = 0
    end_column: int = 0
    start: int = -1
    end: int = -1
    function: str = ""
    source: str = field(default="", compare=False)
    """The lines `line`..`end_line` as they stand in the file, for reporters to show."""
    cell: int = 0
    """Of a notebook, from 1: lines count in this cell. 0: in the file."""
    file_line: int = 0
    file_end_line: int = 0
    """The lines of the file itself, for what is in a cell."""

    def __post_init__(self) -> None:
        if not self.end_line:
            object.__setattr__(self, "end_line", self.line)
        if not self.end_column:
            object.__setattr__(self, "end_column", self.column)

    @property
    def place(self) -> str:
        """`src/train.py:12`."""
        return f"{self.file}:{self.line}"

    @property
    def short_place(self) -> str:
        """`train.py:12`, where the folder goes without saying."""
        return f"{os.path.basename(self.file)}:{self.line}"

    @property
    def in_file(self) -> Site:
        """The place in the file itself; of a cell's code only the lines are known there."""
        if not self.cell:
            return self
        return Site(self.file, self.file_line, end_line=self.file_end_line, function=self.function)


@alike
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Step:
    """One place on a tensor's trail and what happened there."""

    site: Site
    message: str


@alike
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Edit:
    """Replace the bytes `site.start`..`site.end` of `site.file` with `text`."""

    site: Site
    text: str


@alike
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fix:
    """A change of code or of settings that takes the risk away."""

    description: str
    safety: Safety
    edits: tuple[Edit, ...]
    preview: str = field(default="", compare=False)
    """The edits as a unified diff without its file header; filled in by the engine."""


@alike
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Setting:
    """A setting of a library that takes the risk away."""

    library: str
    name: str
    value: str
    why: str
    where: str = ""
    call: str = ""
    """The function that takes it as an argument, by its last name; `value` is Python then."""
    at: Site | None = None
    """The call that should carry it, where it is known."""
    position: int = -1
    """Where the call takes it without its name as well; -1 if nowhere."""
    imports: str = ""
    """The import that `value` needs: `from package import name`."""

    @property
    def place(self) -> str:
        """Where to put it, as people say it: `save_pretrained, train.py:12`."""
        at = self.at.place if self.at else ""
        return ", ".join(filter(None, (self.where, at)))

    @property
    def is_argument(self) -> bool:
        """Of the program's own call of torch, and not of a library or the environment."""
        return self.library == "torch" and self.where != "environment"

    @property
    def said(self) -> str:
        place = f" ({self.place})" if self.place else ""
        said = f"{self.name}={self.value}{place}: {self.why}"
        return said if self.is_argument else f"{self.library}: {said}"


@alike
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Finding:
    """A risk at one place, and what to do about it."""

    code: str
    name: str
    message: str
    severity: Severity
    confidence: Confidence
    site: Site
    trail: tuple[Step, ...] = ()
    fixes: tuple[Fix, ...] = ()
    settings: tuple[Setting, ...] = ()
    siblings: tuple[Site, ...] = ()
    """Other places in the project that look like the flagged expression."""
    evidence: Mapping[str, str] = field(default_factory=dict, compare=False)
    storages: tuple[tuple[str, int], ...] = field(default=(), compare=False)
    """What it is about in a recorded run: process and number of each storage."""
    told: bool = field(default=False, compare=False)
    """A note that is reported by default, of a rule whose notes are not."""
    at_least: Severity = field(default=Severity.NOTE, compare=False)
    """How severe those are reported that it stands for."""

    @property
    def change(self) -> str:
        """What to change, in words: the first fix, or else the first setting."""
        for fix in self.fixes:
            return fix.description
        for setting in self.settings:
            return setting.said
        return ""

    @property
    def content(self) -> str:
        """What is found in which code, wherever that stands in its file."""
        return f"{self.code}:{' '.join(self.site.source.split()) or self.message}"

    @property
    def worst_first(self) -> tuple[int, str, int, int, str]:
        """Orders findings by their severity, then by their place."""
        return (self.severity.rank, *self.sort_key)

    @property
    def sort_key(self) -> tuple[str, int, int, str]:
        return (self.site.file, self.site.line, self.site.column, self.code)


@alike
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Suggestion:
    """A setting that a run calls for."""

    setting: Setting
    findings: tuple[Finding, ...]
    """Those it takes away."""
    others: tuple[Setting, ...] = ()
    """Other ways to the same end."""
    left: str = ""
    """Why it is not put into the source; empty if it is."""


@alike
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RuleInfo:
    """What reporters may say about a rule (SARIF's rule help, `explain`)."""

    code: str
    name: str
    summary: str
    severity: Severity
    confidence: Confidence
    page: str
    """The whole page of the rule, in Markdown."""


@alike
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Report:
    """One run's result, as reporters receive it."""

    findings: tuple[Finding, ...]
    rules: Mapping[str, RuleInfo]
    files_checked: int = 0
    fixed: int = 0
    problems: tuple[str, ...] = ()
    """Messages about inputs that could not be read, each one line."""
    root: str = ""
    version: str = ""
    known: int = 0
    """Findings that the baseline holds, which are not among these."""
    known_where: str = "in the baseline"
    notes: tuple[str, ...] = ()
    """What else is worth knowing of the run, each one line."""
    short_notes: bool = False
    """People read of the notes among the findings only what they say and where."""
    hidden: int = 0
    """Notes that were asked to be left out, which are not among these."""
    quiet: int = 0
    """Notes with too little evidence to be among these."""
    fix_with: str = "--fix"
    """What applies the fixes: an option of the command that found these, or another command."""
