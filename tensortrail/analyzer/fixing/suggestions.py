"""The settings that the findings of a run call for, and the files with them put in."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace

from tensortrail.analyzer.fixing.previews import unified_diff
from tensortrail.analyzer.fixing.script_settings import Patched, patched
from tensortrail.files import read
from tensortrail.findings import Finding, Setting, Suggestion
from tensortrail.rules.unchanging import unchanging

FROM_HERE = ("./", "./")
"""Before the names in a diff: so `patch -p0`, `patch -p1` and `git apply` all find the file."""


@unchanging(frozen=True, slots=False)
class Plan:
    suggestions: tuple[Suggestion, ...]
    files: tuple[tuple[str, Patched], ...] = ()
    """Those that change, by their path."""

    @property
    def left(self) -> list[Suggestion]:
        return [each for each in self.suggestions if each.left]

    @property
    def diff(self) -> str:
        return "".join(
            unified_diff(os.path.relpath(path), done.before, done.after, FROM_HERE)
            for path, done in self.files
        )


def plan(findings: Iterable[Finding], refuse: Callable[[str], str]) -> Plan:
    """What to change where. `refuse` says why a file must not be touched, if so."""
    suggestions = suggested(findings)
    clash = _contradictions(suggestions)
    by_file: dict[str, list[Suggestion]] = defaultdict(list)
    told: list[Suggestion] = []
    for each in suggestions:
        if (why := clash.get(_slot(each.setting))) or (why := _not_in_source(each.setting)):
            told.append(replace(each, left=why))
        elif each.setting.at is not None:
            by_file[each.setting.at.file].append(each)
    files: list[tuple[str, Patched]] = []
    for path, here in sorted(by_file.items()):
        done, left = _in_file(path, [each.setting for each in here], refuse)
        told += [replace(each, left=left.get(each.setting, "")) for each in here]
        if done is not None and done.after != done.before:
            files.append((path, done))
    return Plan(tuple(sorted(told, key=lambda each: bool(each.left))), tuple(files))


def _not_in_source(setting: Setting) -> str:
    if setting.where == "environment":
        return "it is read from the environment"
    if not setting.call:
        return "it is not an argument of a call"
    return "" if setting.at else "the run does not know the call that takes it"


def suggested(findings: Iterable[Finding]) -> list[Suggestion]:
    """One setting for each finding that has some, the first unless another one is taken already;
    each setting once."""
    telling = [each for each in findings if each.settings]
    taken: dict[Hashable, Suggestion] = {}
    for finding in sorted(telling, key=lambda each: len(each.settings)):
        setting = next((s for s in finding.settings if _key(s) in taken), finding.settings[0])
        others = tuple(each for each in finding.settings if _key(each) != _key(setting))
        known = taken.get(_key(setting), Suggestion(setting, ()))
        taken[_key(setting)] = Suggestion(
            known.setting,
            (*known.findings, finding),
            tuple(dict.fromkeys((*known.others, *others))),
        )
    return sorted(taken.values(), key=lambda each: each.findings[0].sort_key)


def _key(setting: Setting) -> Hashable:
    where = "" if setting.at else setting.where
    return (setting.library, setting.value, where, _slot(setting))


def _slot(setting: Setting) -> Hashable:
    """What can hold one value only."""
    at = (setting.at.file, setting.at.line) if setting.at else None
    return (setting.call, setting.name, at)


def _contradictions(suggestions: Sequence[Suggestion]) -> dict[Hashable, str]:
    values: dict[Hashable, list[str]] = defaultdict(list)
    for each in suggestions:
        if each.setting.at is not None:
            values[_slot(each.setting)].append(f"{each.setting.name}={each.setting.value}")
    return {
        slot: f"this call is asked for {' and for '.join(asked)}"
        for slot, asked in values.items()
        if len(set(asked)) > 1
    }


def _in_file(
    path: str, settings: list[Setting], refuse: Callable[[str], str]
) -> tuple[Patched | None, dict[Setting, str]]:
    why = refuse(path) if path.isprintable() else "no diff can hold the name of the file"
    if not why:
        try:
            done = patched(path, read(path), settings)
        except OSError as error:
            why = f"{path}: {error.strerror or error}"
        else:
            return done, dict(done.refused)
    return None, dict.fromkeys(settings, why)
