"""Runs every check that a checkpoint has the parts for, and says which of them could not run."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tensortrail.doctor.checkpoint.folder import Progress, read_checkpoint
from tensortrail.findings import Finding
from tensortrail.rules import Rule, all_rules
from tensortrail.rules.checkpoint import Checkpoint


class Check(NamedTuple):
    code: str
    name: str
    left_out: str
    """Why it did not run; "" if it did."""


class Examination(NamedTuple):
    checkpoint: Checkpoint
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]
    problems: tuple[str, ...]
    below: tuple[str, ...]

    @property
    def ran(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.left_out)


def examine(
    path: str, codes: Collection[str] | None = None, progress: Progress | None = None
) -> Examination:
    """`codes`: of the rules to run; None runs those of the default selection."""
    read = read_checkpoint(path, progress)
    findings: list[Finding] = []
    checks: list[Check] = []
    for rule in _rules():
        reason = _left_out(rule, read.checkpoint, codes)
        checks.append(Check(rule.code, rule.name, reason))
        if not reason:
            findings += rule().examine(read.checkpoint)
    ordered = sorted(findings, key=lambda each: (each.site.file, each.site.start, each.code))
    return Examination(read.checkpoint, tuple(ordered), tuple(checks), read.problems, read.below)


def _rules() -> list[type[Rule]]:
    return [rule for rule in all_rules().values() if rule.examines_checkpoints()]


def _left_out(rule: type[Rule], checkpoint: Checkpoint, codes: Collection[str] | None) -> str:
    chosen = rule.default if codes is None else rule.code in codes
    if not chosen:
        return "not selected"
    return "" if checkpoint.has(rule.reads) else f"no {rule.reads.value} here"
