"""Runs every check that a checkpoint has the parts for, and says which of them could not run."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from tensortrail.doctor.checkpoint.folder import Progress, Read, read_checkpoint
from tensortrail.doctor.checks import NOT_SELECTED, Check
from tensortrail.findings import Finding
from tensortrail.rules import Rule, all_rules
from tensortrail.rules.checkpoint import Checkpoint


class Examination(NamedTuple):
    checkpoint: Checkpoint
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]
    problems: tuple[str, ...]
    below: tuple[str, ...]

    @property
    def fine(self) -> bool:
        """Checks ran, all that is there was read, and nothing was found."""
        return bool(self.ran) and not self.findings and not self.problems

    @property
    def ran(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.left_out)


def examine(
    path: str,
    codes: Collection[str] | None = None,
    progress: Progress | None = None,
    model: str = "",
    values: bool = False,
    manifest: bool = False,
) -> Examination:
    """`codes`: of the rules to run; None runs those of the default selection. `model`: the
    configuration to compare with, "" for none. `values`: whether the tensors are read, too.
    `manifest`: whether the checksums beside them are compared.

    The components of a pipeline are examined too, and what is found in them is found in it."""
    found = _examined(path, codes, progress, model, values, manifest)
    for name in sorted(found.checkpoint.components):
        found = together(found, _examined(os.path.join(path, name), codes, progress, "", values))
    return found


def _examined(
    path: str,
    codes: Collection[str] | None,
    progress: Progress | None,
    model: str = "",
    values: bool = False,
    manifest: bool = False,
) -> Examination:
    read = read_checkpoint(path, progress)
    if manifest:
        read = _with_manifest(read, progress)
    if values:
        read = _with_values(read, progress)
    if model:
        read = _with_comparison(read, model)
    findings: list[Finding] = []
    checks: list[Check] = []
    for rule in _rules():
        reason = _left_out(rule, read.checkpoint, codes)
        checks.append(Check(rule.code, rule.name, reason))
        if not reason:
            findings += rule().examine(read.checkpoint)
    ordered = sorted(findings, key=lambda each: (each.site.file, each.site.start, each.code))
    return Examination(read.checkpoint, tuple(ordered), tuple(checks), read.problems, read.below)


def _with_values(read: Read, progress: Progress | None) -> Read:
    from tensortrail.doctor.checkpoint.values import CannotLook, look_at_values

    try:
        found = replace(read.checkpoint, values=look_at_values(read.checkpoint, progress))
    except CannotLook as error:
        told = f"the values were not looked at: {error}"
        return read._replace(problems=(*read.problems, told))
    return read._replace(checkpoint=found)


def _with_manifest(read: Read, progress: Progress | None) -> Read:
    from tensortrail.doctor.checkpoint.manifest import NoManifest, verified

    if read.checkpoint.single:
        told = "a manifest lists a folder: name that one"
        return read._replace(problems=(*read.problems, told))
    try:
        found = replace(read.checkpoint, manifest=verified(read.checkpoint.path, progress))
    except (NoManifest, OSError) as error:
        told = f"the manifest was not verified: {error}"
        return read._replace(problems=(*read.problems, told))
    return read._replace(checkpoint=found)


def _with_comparison(read: Read, model: str) -> Read:
    from tensortrail.doctor.checkpoint.model_keys import compare
    from tensortrail.doctor.library_models import NoModel

    try:
        compared = replace(read.checkpoint, comparison=compare(read.checkpoint, model))
    except NoModel as error:
        told = f"the names were not compared with a model: {error}"
        return read._replace(problems=(*read.problems, told))
    return read._replace(checkpoint=compared)


def together(whole: Examination, part: Examination) -> Examination:
    """A check ran if it ran on the whole or on some part."""
    return whole._replace(
        checkpoint=replace(
            whole.checkpoint,
            files=(*whole.checkpoint.files, *part.checkpoint.files),
            indexes=(*whole.checkpoint.indexes, *part.checkpoint.indexes),
        ),
        findings=(*whole.findings, *part.findings),
        checks=tuple(
            one if not one.left_out else other
            for one, other in zip(whole.checks, part.checks, strict=True)
        ),
        problems=(*whole.problems, *part.problems),
    )


def _rules() -> list[type[Rule]]:
    return [rule for rule in all_rules().values() if rule.examines_checkpoints()]


def _left_out(rule: type[Rule], checkpoint: Checkpoint, codes: Collection[str] | None) -> str:
    chosen = rule.default if codes is None else rule.code in codes
    if not chosen:
        return NOT_SELECTED
    return "" if checkpoint.has(rule.reads) else f"no {rule.reads.value} here"
