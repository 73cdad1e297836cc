"""Rules judge a recorded run; the run also tells what it saw of findings in its source."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tensortrail.findings import Confidence, Finding, Site
from tensortrail.rules import Rule, all_rules
from tensortrail.rules.explained import without_explained, without_yielding
from tensortrail.tracer.reading import source_lines
from tensortrail.tracer.reading.ranks.findings import RankFindings, devices
from tensortrail.tracer.reading.roots import with_their_roots
from tensortrail.tracer.reading.timeline import RunTimeline
from tensortrail.tracer.reading.verified_saves import found_in_saves


@dataclass(frozen=True)
class Judged:
    findings: tuple[Finding, ...]
    problems: tuple[str, ...] = ()
    """Rules that failed, one line each: the others went on."""


def findings(timeline: RunTimeline, rules: Iterable[Rule] | None = None) -> Judged:
    """What the runtime halves of these rules, or of the default ones, find in a run."""
    chosen = list(_default() if rules is None else rules)
    ranks = timeline.by_rank()
    if len(ranks) == 1:
        return findings_of_rank(timeline, chosen)
    together = RankFindings()
    of_one = [each for each in chosen if not each.compares_ranks]
    across = findings_of_rank(timeline, [each for each in chosen if each.compares_ranks])
    problems = dict.fromkeys(across.problems)
    for rank in ranks:
        judged = findings_of_rank(rank, of_one)
        together.add(rank.label, rank.rank is not None, judged.findings, devices(rank))
        problems |= dict.fromkeys(judged.problems)
    found = without_yielding([*across.findings, *together.merged()], chosen)
    return Judged(tuple(sorted(found, key=lambda each: each.sort_key)), tuple(problems))


def findings_of_rank(timeline: RunTimeline, rules: Sequence[Rule]) -> Judged:
    found: list[Finding] = []
    problems: list[str] = []
    for rule in rules:
        try:
            found += list(rule.watch(timeline))
        except Exception as error:
            problems.append(f"{rule.code} failed on this run: {type(error).__name__}: {error}")
    found += found_in_saves(timeline, rules)
    left = without_yielding(without_explained(found, rules), rules)
    alone = [_dressed(each, timeline) for each in left]
    unique = {(each.code, each.site, each.message): each for each in alone}
    ordered = sorted(unique.values(), key=lambda each: each.sort_key)
    return Judged(tuple(with_their_roots(ordered, timeline, rules)), tuple(problems))


def _dressed(finding: Finding, timeline: RunTimeline) -> Finding:
    settings = tuple(
        dataclasses.replace(each, at=timeline.dressed(each.at)) if each.at else each
        for each in finding.settings
    )
    site = timeline.dressed(finding.site)
    return dataclasses.replace(finding, site=site, settings=settings)


def merge(
    static: Sequence[Finding], timeline: RunTimeline, rules: Iterable[Rule] | None = None
) -> list[Finding]:
    """Findings in source beside a run of it: raised where the run confirmed them, lowered where
    it passed through without harm, and joined by those that only the run shows."""
    chosen = list(_default() if rules is None else rules)
    watching = {rule.code for rule in chosen if rule.watches_runs() and rule.passes_clear}
    alone = list(findings(timeline, chosen).findings)
    passes = Passes(timeline)
    merged: list[Finding] = []
    for finding in static:
        lines = Lines.of(finding.site, timeline.ran)
        partners = [each for each in alone if each.code == finding.code and _speaks_of(each, lines)]
        if partners:
            merged.append(_raised(finding, partners))
            alone = [each for each in alone if each not in partners]
        elif finding.code in watching and (count := passes.through(lines)):
            merged.append(_lowered(finding, count))
        else:
            merged.append(finding)
    return sorted([*merged, *alone], key=lambda each: each.sort_key)


def _default() -> Iterator[Rule]:
    return (rule() for rule in all_rules().values() if rule.default)


@dataclass(frozen=True)
class Lines:
    """Lines of a file as they were when the run began; none if they are other ones now."""

    file: str
    first: int
    last: int

    @classmethod
    def of(cls, site: Site, ran: source_lines.Ran) -> Lines:
        first, last = source_lines.statement(site, ran) or (0, -1)
        return cls(os.path.realpath(site.file), first, last)

    def hold(self, site: Site) -> bool:
        inside = site.line <= self.last and self.first <= site.end_line
        return inside and os.path.realpath(site.file) == self.file


class Passes:
    """How many events each line has, be it the user's or a library's."""

    def __init__(self, timeline: RunTimeline) -> None:
        self._by_file: dict[str, dict[int, int]] = {}
        for site, count in timeline.visits():
            lines = self._by_file.setdefault(os.path.realpath(site.file), {})
            lines[site.line] = lines.get(site.line, 0) + count

    def through(self, lines: Lines) -> int:
        counts = self._by_file.get(lines.file, {})
        return sum(n for line, n in counts.items() if lines.first <= line <= lines.last)


def _speaks_of(seen: Finding, lines: Lines) -> bool:
    sites = (seen.site, *seen.siblings, *(step.site for step in seen.trail))
    return any(lines.hold(site) for site in sites)


def _raised(finding: Finding, partners: Sequence[Finding]) -> Finding:
    first = partners[0]
    counts = ", ".join(f"{name} {value}" for name, value in first.evidence.items())
    return dataclasses.replace(
        finding,
        confidence=Confidence.HIGH,
        trail=(*finding.trail, *(step for each in partners for step in each.trail)),
        fixes=finding.fixes or first.fixes,
        settings=tuple(dict.fromkeys((*finding.settings, *first.settings))),
        evidence={**finding.evidence, "the run": f"confirmed this: {first.message} ({counts})"},
    )


def _lowered(finding: Finding, events: int) -> Finding:
    told = f"passed here without harm ({events} {'event' if events == 1 else 'events'})"
    return dataclasses.replace(
        finding, confidence=Confidence.LOW, evidence={**finding.evidence, "the run": told}
    )
