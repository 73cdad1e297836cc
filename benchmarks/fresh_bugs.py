"""Bugs that nobody read: fixes mined from histories, and what the lint reports before and after.

    python benchmarks/fresh_bugs.py --mirrors DIR [--half tuning|fresh] [--each N] [--all]

A fix counts as flagged as in bug_cases.py: a finding stands within a few lines of what the fix
changes, and is gone after it. Only a part of these fixes are of bugs a linter could see, so that
the figure is to be compared with itself. The projects are parted in two halves by the hash of
their names: rules are tuned on one of them, and what the other gives is measured only.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import asdict
from functools import partial
from pathlib import Path

from bug_cases import HERE, Case, judge_case, judged, read
from mined_fixes import HALVES, Change, MinedFix, half_of, mined, sample
from sources import Sources

RANKS = ("unavailable", "missed", "another", "flagged")


def main() -> None:
    options = arguments()
    fixes = sample(candidates(options.candidates, options.mirrors), options.each)
    sources = Sources(options.work, options.mirrors)
    for half in [options.half] if options.half else HALVES:
        cases = [case for fix in fixes if half_of(fix.project) == half for case in cases_of(fix)]
        chosen = [each for each in cases if options.project in each["repository"]]
        judge = partial(judge_case, sources, every_rule=options.all)
        results = by_fix(judged(judge, chosen, options.jobs))
        print_half(half, results, names=half != "fresh")
        if options.json:
            target = options.json.with_name(f"{options.json.stem}-{half}.json")
            target.write_text(json.dumps(results, indent=1), encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--mirrors", type=Path, required=True, help="folder of bare repositories")
    add("--work", type=Path, default=Path(".tensortrail") / "cases")
    add("--candidates", type=Path, default=Path(".tensortrail") / "mined_fixes.jsonl")
    add("--half", choices=HALVES, help="this half only")
    add("--project", default="", help="fixes of these repositories only")
    add("--each", type=int, default=12, help="the most fixes of one repository")
    add("--all", action="store_true", help="with rules that are off by default")
    add("--jobs", type=int, default=1)
    add("--json", type=Path, help="write every result there, a file for each half")
    return parser.parse_args()


def candidates(file: Path, mirrors: Path) -> list[MinedFix]:
    """From the file if it is there; mined once otherwise."""
    if not file.exists():
        set_aside = read(HERE / "cases_set_aside.jsonl")
        known = [each["after"] for each in read(HERE / "cases.jsonl") if each.get("after")]
        without = sorted({each["repository"] for each in set_aside})
        rows = [json.dumps(asdict(each)) for each in mined(mirrors, without, known)]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(rows), encoding="utf-8")
    return [
        MinedFix(**{**row, "changes": tuple(Change(**each) for each in row["changes"])})
        for row in read(file)
    ]


def cases_of(fix: MinedFix) -> list[Case]:
    """One case for each file."""
    return [
        {
            "id": f"{fix.project}@{fix.commit[:10]}",
            "repository": fix.project,
            "before": fix.parent,
            "after": fix.commit,
            "path": each.path,
            "lines": each.lines,
            "subject": fix.subject,
        }
        for each in fix.changes
    ]


def by_fix(results: list[Case]) -> list[Case]:
    """Of the files of a fix, the one on which most is reported."""
    best: dict[str, Case] = {}
    for each in results:
        old = best.get(each["id"])
        if old is None or RANKS.index(each["verdict"]) > RANKS.index(old["verdict"]):
            best[each["id"]] = each
    return list(best.values())


def print_half(half: str, results: list[Case], names: bool) -> None:
    counts = Counter(each["verdict"] for each in results)
    tried = len(results) - counts["unavailable"]
    flagged = [each for each in results if each["verdict"] == "flagged"]
    if names:
        for each in flagged:
            print(f"  {each['id']} {each['path']} {each['findings']} {each['subject']}")
    share = len(flagged) / tried if tried else 0.0
    print(f"{half}: {len(flagged)} of {tried} flagged before, silent after ({share:.1%})")
    print(f"  {dict(counts)}")
    codes = Counter(each["findings"][0].split()[0] for each in flagged)
    print("  by rule: " + ", ".join(f"{code} {count}" for code, count in codes.most_common()))


if __name__ == "__main__":
    main()
