"""One file's source in, its findings out: the door between the engine and the semantic core."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tensortrail.analyzer.module import PythonModule, Unreadable
from tensortrail.analyzer.project import Project
from tensortrail.findings import Finding
from tensortrail.rules import Rule

__all__ = ["Judgement", "Unreadable", "judge"]


@dataclass(frozen=True, slots=True)
class Judgement:
    findings: tuple[Finding, ...]
    depends_on: tuple[str, ...]
    """Other files whose facts were consulted: the findings hold while these are unchanged."""


def judge(
    path: str,
    data: bytes,
    rules: Sequence[Rule],
    project: Project,
    crashed: Callable[[Rule, Exception], Finding] | None = None,
) -> Judgement:
    """Run the static halves of `rules` over one file's bytes.

    Raises Unreadable for bytes that are no Python source. A rule that raises ends only its
    own work: `crashed` says what to report of it; without it the exception goes on."""
    module = PythonModule(path, data, project)
    found: list[Finding] = []
    for rule in rules:
        try:
            found += rule.check(module)
        except RecursionError as error:
            raise Unreadable("nested too deeply to be judged") from error
        except Exception as error:
            if crashed is None:
                raise
            found.append(crashed(rule, error))
    module.release()
    unique = {(each.code, each.site.start, each.site.end, each.message): each for each in found}
    ordered = sorted(unique.values(), key=lambda each: each.sort_key)
    return Judgement(tuple(ordered), tuple(sorted(module.needs - {path})))
