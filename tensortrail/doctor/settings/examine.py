"""Runs every check that the settings files have something for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from tensortrail.doctor.checks import NOT_SELECTED, Check
from tensortrail.doctor.settings.reading import Malformed, Unreadable, read_settings, settings_files
from tensortrail.doctor.settings.silenced import silenced
from tensortrail.findings import Finding
from tensortrail.rules import Rule, all_rules
from tensortrail.rules.settings_file import SettingsFile


class Examination(NamedTuple):
    files: tuple[SettingsFile, ...]
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]
    problems: tuple[str, ...]
    others: int
    """Files in the folders that are nobody's settings."""

    @property
    def ran(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.left_out)


def examine(paths: Sequence[str], codes: Collection[str] | None = None) -> Examination:
    """`codes`: of the rules to run; None runs those of the default selection."""
    files: list[SettingsFile] = []
    problems: list[str] = []
    others = 0
    for path in paths:
        for name in settings_files(path):
            try:
                files.append(read_settings(name))
            except Unreadable as error:
                if name == path or isinstance(error, Malformed):
                    problems.append(f"{name} was not checked: {error}")
                others += 1
    findings = [each for file in files for each in review(file, codes)]
    checks = tuple(Check(each.code, each.name, _why_not(each, files, codes)) for each in _rules())
    return Examination(tuple(files), tuple(findings), checks, tuple(problems), others)


def review(file: SettingsFile, codes: Collection[str] | None = None) -> list[Finding]:
    """What the rules find in one file, in the order of its lines."""
    found = [
        finding
        for rule in _rules()
        if not _not_selected(rule, codes) and file.kind in rule.concerns
        for finding in rule().review(file)
    ]
    return sorted(silenced(found, file.path), key=lambda each: each.sort_key)


def _rules() -> list[type[Rule]]:
    return [rule for rule in all_rules().values() if rule.reviews_settings()]


def _not_selected(rule: type[Rule], codes: Collection[str] | None) -> bool:
    return rule.code not in codes if codes is not None else not rule.default


def _why_not(rule: type[Rule], files: Sequence[SettingsFile], codes: Collection[str] | None) -> str:
    if _not_selected(rule, codes):
        return NOT_SELECTED
    if any(file.kind in rule.concerns for file in files):
        return ""
    return f"no {' and no '.join(kind.value for kind in rule.concerns)} here"
