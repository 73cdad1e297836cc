"""What the page of a run shows, as data that its scripts read."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tensortrail.collector import without_collector
from tensortrail.findings import Finding, Fix
from tensortrail.rules.shared.refused_memory import filled_of
from tensortrail.rules.timeline import Event
from tensortrail.tracer.explaining import memory_table
from tensortrail.tracer.exports.how_it_went import conditions, failures
from tensortrail.tracer.exports.model_placements import Placed, placed
from tensortrail.tracer.exports.page_findings import finding_at, preview, told_once
from tensortrail.tracer.exports.page_numbers import LONGEST_TEXT, PageNumbers
from tensortrail.tracer.exports.page_storages import FIRST, Chosen, choose
from tensortrail.tracer.exports.parts_that_ended import parts_that_ended
from tensortrail.tracer.exports.rows import plain
from tensortrail.tracer.reading import sentences
from tensortrail.tracer.reading.phases import Phase
from tensortrail.tracer.reading.ranks.comparison import differences, shared_devices
from tensortrail.tracer.reading.ranks.ends import ends, unended
from tensortrail.tracer.reading.ranks.names import named
from tensortrail.tracer.reading.summary import Summary
from tensortrail.tracer.reading.timeline import RunTimeline
from tensortrail.tracer.trail.layout import EVENT, KINDS, Row

MOST_LINES = 300
MOST_TROUBLES = 200
MOST_PHASES = 1500
MOST_PLACEMENTS = 20

Json = dict[str, Any]


@without_collector()
def page_data(timeline: RunTimeline, findings: Sequence[Finding]) -> Json:
    return PageData(timeline).everything(findings)


class PageData(PageNumbers):
    def __init__(self, timeline: RunTimeline) -> None:
        super().__init__(timeline)
        self.summary = Summary(timeline)

    def everything(self, given: Sequence[Finding]) -> Json:
        findings = sorted(given, key=lambda each: each.worst_first)
        summary = self.summary
        chosen = choose(summary)
        self.number(chosen)
        data = {
            "run": self._run(),
            "firstEvents": FIRST,
            "kinds": [did.value for did in KINDS],
            "processes": [process.label for process in self.timeline.processes],
            "devices": self._devices(),
            "phases": [self._phase(each) for each in _longest(summary.phases)],
            "findings": [self._finding(each) for each in findings],
            "moves": self._moves(),
            "moveLines": len(summary.moves_by_line),
            "troubles": self._troubles(findings),
            "placements": [
                self._placement(*each) for each in list(placed(self.timeline))[:MOST_PLACEMENTS]
            ],
            "differences": self._differences(),
            "ofRanks": None,
            "sharedDevices": list(shared_devices(self.timeline)),
            "meetings": len(summary.meetings),
            "errors": len(summary.errors),
            "storages": [row for each in chosen for row in self._storages(each)],
            "storagesInAll": sum(len(each.born) for each in summary.lives),
        }
        # Last: everything above adds to these.
        return data | {"sites": self.told_sites(), "texts": self.told_texts()}

    def _run(self) -> Json:
        summary, header = self.summary, self.timeline.parts[0].header
        argv = header.get("argv")
        dropped: dict[str, int] = defaultdict(int)
        for part in self.timeline.parts:
            for kind, count in part.dropped.items():
                dropped[str(kind)] += int(count)
        return {
            "argv": [str(each) for each in argv] if isinstance(argv, (list, tuple)) else [],
            "started": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.timeline.started)),
            "seconds": summary.seconds,
            "events": sum(summary.counts.values()),
            "counts": {did.value: count for did, count in summary.counts.items()},
            "facts": {
                key: str(header[key]) for key in ("cwd", "python", "torch") if header.get(key)
            },
            "conditions": conditions(self.timeline),
            "failures": failures(self.timeline),
            "trouble": list(self.timeline.trouble),
            "ends": [*unended(ends(self.timeline)), *parts_that_ended(self.timeline)],
            "dropped": dropped,
        }

    def _devices(self) -> list[Json]:
        curves = {curve.device: curve.peaks for curve in self.summary.bytes_over_time()}
        return [
            {
                "name": use.device,
                "peak": use.peak,
                "peakTime": use.peak_time,
                "alive": use.count,
                "bytes": use.nbytes,
                "curve": curves.get(use.device, ()),
                "largest": [place for each in use.largest if (place := self.place(each)) >= 0],
            }
            for use in self.summary.alive_by_device
        ]

    def _moves(self) -> list[list[Any]]:
        return [
            [self.site(m.site), self.site(m.by), self.text(m.op), self.text(m.source),
             self.text(m.target), m.count, m.nbytes]
            for m in self.summary.moves_by_line[:MOST_LINES]
        ]  # fmt: skip

    def _differences(self) -> list[list[Any]]:
        return [
            [self.site(each.site), each.what, named(each.ranks), named(each.others), each.count]
            for each in differences(self.timeline)[:MOST_LINES]
        ]

    def _troubles(self, findings: Sequence[Finding]) -> list[Json]:
        summary = self.summary
        told = told_once((*summary.errors, *summary.meetings))[:MOST_TROUBLES]
        return [self._trouble(event, findings) for event in told]

    def _phase(self, phase: Phase) -> list[Any]:
        thread = self.text(f"{phase.process}, {phase.thread}")
        return [self.text(phase.name), thread, phase.start, phase.end, phase.depth, phase.ended]

    def _placement(self, event: Event, rows: Sequence[Placed], differing: Sequence[str]) -> Json:
        return {
            "model": str(event.facts.get("model")),
            "site": self.site(event.site or event.by),
            "rows": [
                [each.modules, each.declared, each.lies, each.nbytes, each.hooks]
                for each in rows[:MOST_LINES]
            ],
            "differing": list(differing),
        }

    def _trouble(self, event: Event, findings: Sequence[Finding]) -> Json:
        facts = event.facts
        operands = facts.get("operands")
        return {
            "did": event.did.value,
            "finding": finding_at(event, findings),
            "filled": [list(each.cells) for each in memory_table.table(filled_of(event))],
            "op": event.op,
            "time": event.time,
            "where": f"{event.process}, {event.thread}",
            "phase": event.phase,
            "site": self.site(event.site),
            "by": self.site(event.by),
            "type": str(facts.get("type", "")),
            "message": str(facts.get("message", ""))[:LONGEST_TEXT],
            "operands": [
                self._operand(each, event.process)
                for each in (operands if isinstance(operands, (list, tuple)) else ())
                if isinstance(each, Mapping)
            ][:12],
        }

    def _operand(self, operand: Mapping[str, Any], process: str) -> Json:
        number = operand.get("storage", 0)
        name = self.names[process].get(number, "") if isinstance(number, int) else ""
        place = self.place_of(process, number) if isinstance(number, int) else -1
        return {
            **plain(dict(operand)),
            "name": name or str(operand.get("name", "")),
            "place": place,
        }

    def _storages(self, chosen: Chosen) -> Iterable[list[Any]]:
        process, lives = chosen.lives.process, chosen.lives
        known = self.names[process.label]
        for number, count in chosen.counts.items():
            storage = process.storage(number)
            if storage is None:
                continue
            freed = lives.freed.get(number)
            before = process.storage(chosen.before.get(number, 0))
            yield [
                self.timeline.processes.index(process),
                number,
                self.text(known.get(number, "")),
                self.text(lives.place(lives.device(number))),
                storage.nbytes,
                self.text(storage.dtype),
                self.text("x".join(map(str, storage.shape))),
                self.text(storage.type_name),
                max(process.offset + lives.born.get(number, 0) / 1e6, 0.0),
                -1 if freed is None else process.offset + freed / 1e6,
                self.place(before),
                count,
                [self._event(process.event(row), row, number) for row in chosen.rows[number]],
            ]

    def _event(self, event: Event, row: Row, number: int) -> list[Any]:
        subject, other = event.storage, event.other
        is_subject = subject is not None and subject.number == number
        what = sentences.sentence(
            event, lambda each: "" if each is subject and is_subject else self.name(each)
        )
        return [
            round(event.time * 1e6),
            row[0] - EVENT,
            self.text(what.strip()),
            self.site(event.site),
            self.site(event.by),
            self.text(event.thread),
            self.text(event.phase),
            self.place(other if is_subject else subject),
        ]

    def _finding(self, finding: Finding) -> Json:
        return {
            "code": finding.code,
            "name": finding.name,
            "message": finding.message,
            "severity": finding.severity.value,
            "confidence": finding.confidence.value,
            "site": self.site(finding.site),
            "trail": [[self.site(step.site), step.message] for step in finding.trail],
            "fixes": [_fix(each) for each in finding.fixes],
            "settings": [
                [each.library, each.name, each.value, each.why, each.place]
                for each in finding.settings
            ],
            "siblings": [self.site(each) for each in finding.siblings],
            "evidence": {str(key): str(value) for key, value in finding.evidence.items()},
        }


def _fix(fix: Fix) -> Json:
    return {"what": fix.description, "safety": fix.safety.value, "preview": preview(fix)}


def _longest(phases: list[Phase]) -> list[Phase]:
    if len(phases) <= MOST_PHASES:
        return phases
    shortest = sorted((p.end - p.start for p in phases), reverse=True)[MOST_PHASES]
    return [p for p in phases if p.end - p.start > shortest]
