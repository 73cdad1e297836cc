"""What a rule says of itself: its code and name, how severe it is, what its files hold."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from tensortrail.findings import Confidence, Severity
from tensortrail.rules.checkpoint_part import Part
from tensortrail.rules.examples import Bad, Good

if TYPE_CHECKING:  # a check of code does not need it
    from tensortrail.rules.settings_file import SettingsKind


class Near(NamedTuple):
    """A trigger finer than a word: the pattern fits what begins on the line of the word."""

    word: str
    pattern: re.Pattern[bytes]
    """Matched at the start of a line that holds the word; may go on over the next ones."""
    also: tuple[str, ...] = ()
    """Words that must be in the file besides."""


Trigger = str | tuple[str, ...] | Near


class Declared:
    code: ClassVar[str]
    name: ClassVar[str]
    since: ClassVar[str] = ""
    """The first release that has it; "" until there is one."""
    severity: ClassVar[Severity] = Severity.WARNING
    confidence: ClassVar[Confidence] = Confidence.HIGH
    default: ClassVar[bool] = True
    """In the default selection. Rules earn it by being right on real trees."""
    notes: ClassVar[bool] = True
    """Its notes are in the default selection too; else only those that are `told`, and all of them
    where the rule is selected: true, and seldom worth a glance on code that was not read before."""
    warns: ClassVar[bool] = True
    """Its warnings are reported as such; else as notes: of those on code that was not read before,
    fewer than six of ten were worth acting on."""
    errors_as: ClassVar[Severity] = Severity.ERROR
    """What its errors are reported as. Of errors on code that was not read before, eight of ten
    have to be worth acting on, of warnings six."""
    proven: ClassVar[bool] = True
    """It found something worth acting on in code that it was not written for. Until then all its
    findings in code are reported as notes."""
    passes_clear: ClassVar[bool] = True
    """A run that passed a line without harm speaks against a finding there."""
    compares_ranks: ClassVar[bool] = False
    """Its half for runs looks at all ranks together; that of others at one after the other."""
    explains: ClassVar[Sequence[str]] = ()
    """Codes of findings that say less about the same line, in a run or in code: not reported."""
    yields: ClassVar[bool] = False
    """Its findings in a run go where another rule reports an error at their line."""
    needs_callers: ClassVar[bool] = False
    """What it finds harms only who runs that code: a note where nothing of the project comes to it,
    also in a folder of modules without any program."""
    consequence: ClassVar[bool] = False
    """Its findings in a run state a failure. Another finding about the same tensor says why."""
    triggers: ClassVar[Sequence[Trigger]] = ()
    """The file is read closer only if one of these is in it: a word, all words of a tuple, or a
    word on a line of some form. They must over-approximate: the rule can say nothing about a
    file without them. Rare words cost least."""
    shape: ClassVar[Sequence[re.Pattern[bytes]]] = ()
    """A second, finer filter on files that passed the triggers: one of these is found in them.
    Same duty. Patterns that begin with literal text are fast."""
    bad: ClassVar[Sequence[Bad]] = ()
    good: ClassVar[Sequence[Good]] = ()
    reads: ClassVar[Part] = Part.FILES
    """Of a checkpoint: without this part its check cannot run."""
    concerns: ClassVar[Sequence[SettingsKind]] = ()
    """Whose settings it is about."""
    read_in: ClassVar[str] = ""
    """The release and the place of the code that says so, for a rule about settings."""

    @classmethod
    def usual_severity(cls) -> Severity:
        """Of what `check` reports of it, unless the finding has another."""
        return cls.reported(cls.severity)

    @classmethod
    def reported(cls, severity: Severity) -> Severity:
        """How `check` reports a finding of that severity."""
        if not cls.proven or (severity is Severity.WARNING and not cls.warns):
            return Severity.NOTE
        return cls.errors_as if severity is Severity.ERROR else severity
