"""Real bugs, before and after their fix: what the lint reports on each.

    python benchmarks/bug_cases.py [--mirrors DIR] [--class NAME] [--project NAME] [--id ID] [--all]
        [--whole]

A case counts as flagged if a finding stands on the wrong lines before the fix and is gone after it.
A finding that is still there after the fix was about something else, and is listed as such.
With `--mirrors` nothing is cloned: cases of repositories that are missing are left out and counted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from sources import Sources

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.judging.engine import check
from tensortrail.analyzer.places.asked import AsksForPlaces
from tensortrail.findings import Finding, Severity
from tensortrail.rules import all_rules
from tensortrail.rules.places import FunctionPlaces

HERE = Path(__file__).parent
NEAR = 3
"""Lines by which a finding may stand beside the lines named."""
Case = dict[str, Any]


def main() -> None:
    options = arguments()
    if options.without_places:
        AsksForPlaces.places = lambda self, function: FunctionPlaces()  # type: ignore[method-assign]
    sources = Sources(options.work, options.mirrors, options.whole)
    cases = [each for each in read(options.cases) if wanted(each, options)]
    judge = partial(judge_case, sources, every_rule=options.all)
    results = judged(judge, cases, options.jobs)
    benign = []
    if not (options.id or options.only_bugs):
        looks = [each for each in read(HERE / "benign.jsonl") if wanted(each, options)]
        benign = judged(partial(judge_benign, sources), looks, options.jobs)
    print_cases(results)
    print_benign(benign)
    if options.json:
        options.json.write_text(json.dumps({"cases": results, "benign": benign}, indent=1))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--cases", type=Path, default=HERE / "cases.jsonl")
    add("--mirrors", type=Path, help="folder of bare repositories, instead of cloning them")
    add("--work", type=Path, default=Path(".tensortrail") / "cases")
    add("--class", dest="kind", help="cases of this class only")
    add("--project", help="cases of this repository only")
    add("--id", help="one case only")
    add("--part", choices=("tuning", "aside"), help="cases of this part only, of a file that tells")
    add("--all", action="store_true", help="with rules that are off by default")
    add("--whole", action="store_true", help="beside all of the repository, as users have it")
    add("--without-places", action="store_true", help="nothing is inferred of places")
    add("--only-bugs", action="store_true", help="without the look-alikes")
    add("--jobs", type=int, default=1)
    add("--json", type=Path, help="write every result there")
    return parser.parse_args()


def wanted(case: Case, options: argparse.Namespace) -> bool:
    asked = (
        (options.kind, "class"),
        (options.project, "repository"),
        (options.id, "id"),
        (options.part, "part"),
    )
    return all(value is None or value in case.get(key, "") for value, key in asked)


def read(file: Path) -> list[Case]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def judged(judge: Callable[[Case], Case], cases: list[Case], jobs: int) -> list[Case]:
    if jobs == 1:
        return [judge(each) for each in cases]
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(judge, cases, chunksize=4))


def judge_case(sources: Sources, case: Case, every_rule: bool = False) -> Case:
    """The case with its verdict: flagged, another (still there after the fix), missed."""
    before = findings_in(sources, case, "before", every_rule)
    if isinstance(before, str):
        return {**case, "verdict": "unavailable", "reason": before}
    near = [each for each in before if stands_on(each, case)]
    if not near:
        return {**case, "verdict": "missed"}
    after = findings_in(sources, case, "after", every_rule)
    gone = near if isinstance(after, str) else [each for each in near if fewer(each, before, after)]
    return {
        **case,
        "verdict": "flagged" if gone else "another",
        "compared": not isinstance(after, str),
        "findings": [said(each) for each in gone or near],
    }


def fewer(finding: Finding, before: Iterable[Finding], after: Iterable[Finding]) -> bool:
    """The finding, or one of its kind on the same source, is gone after the fix."""
    counts = [sum(shape(each) == shape(finding) for each in found) for found in (before, after)]
    return counts[1] < counts[0]


def judge_benign(sources: Sources, case: Case) -> Case:
    found = findings_in(sources, {**case, "before": case.get("revision")}, "before")
    if isinstance(found, str):
        return {**case, "verdict": "unavailable", "reason": found}
    loud = [
        said(each)
        for each in found
        if each.severity is not Severity.NOTE and stands_on(each, case, near=0, trails=False)
    ]
    return {**case, "verdict": "flagged" if loud else "silent", "findings": loud}


def findings_in(
    sources: Sources, case: Case, side: str, every_rule: bool = False
) -> list[Finding] | str:
    try:
        wheel = case.get(f"wheel_{side}") or (case.get("wheel") if side == "before" else None)
        if wheel:
            root = sources.wheel(wheel)
        elif case.get(side):
            root = sources.package_at(case["repository"], case[side], case["path"])
        else:
            return "no such revision"
    except (subprocess.CalledProcessError, OSError, StopIteration) as error:
        return f"cannot be fetched: {error}"
    file = root / case["path"]
    if not file.exists():
        return f"no file {case['path']}"
    codes = frozenset(all_rules()) if every_rule else None
    request = CheckRequest(paths=(str(file),), codes=codes, cache_dir=None, siblings=False, jobs=1)
    return list(check(request).findings)


def stands_on(finding: Finding, case: Case, near: int = NEAR, trails: bool = True) -> bool:
    sites = [finding.site, *(step.site for step in finding.trail if trails)]
    return any(
        first - near <= site.end_line and site.line <= last + near
        for site in sites
        if os.path.basename(site.file) == os.path.basename(case["path"])
        for first, last in ranges(case)
    )


def ranges(case: Case) -> list[tuple[int, int]]:
    found = []
    for match in re.finditer(r"(\d+)(?:-(\d+))?", case["lines"]):
        first = int(match[1])
        found.append((first, int(match[2] or first)))
    return found


def shape(finding: Finding) -> tuple[str, str]:
    return finding.code, " ".join(finding.site.source.split())


def said(finding: Finding) -> str:
    return f"{finding.code} {finding.severity.value} {finding.site.line}"


def print_cases(results: list[Case]) -> None:
    by_class: dict[str, list[Case]] = defaultdict(list)
    for result in results:
        by_class[result["class"]].append(result)
    for kind, cases in sorted(by_class.items(), key=lambda each: -len(each[1])):
        flagged = sum(each["verdict"] == "flagged" for each in cases)
        visible = [each for each in cases if each["detectable"] == "yes"]
        of_these = sum(each["verdict"] == "flagged" for each in visible)
        print(f"\n{kind}: {flagged} of {len(cases)}; of yes {of_these} of {len(visible)}")
        for each in cases:
            print(f"  {each['verdict']:<11} {each['id']} ({each['detectable']}) {note(each)}")
    print(f"\n{len(results)} cases: {dict(Counter(each['verdict'] for each in results))}")
    tried = [each for each in results if each["verdict"] != "unavailable"]
    print_unavailable(results)
    for detectable in ("yes", "partly", "no"):
        group = [each for each in tried if each["detectable"] == detectable]
        count = sum(each["verdict"] == "flagged" for each in group)
        share = count / len(group) if group else 0.0
        print(
            f"{detectable:>7}: {count} of {len(group)} flagged before, silent after ({share:.0%})"
        )
    codes = Counter(
        each["findings"][0].split()[0] for each in results if each["verdict"] == "flagged"
    )
    print("by rule: " + ", ".join(f"{code} {count}" for code, count in codes.most_common()))


def print_unavailable(results: list[Case]) -> None:
    """How many cases are in none of the figures that follow, by repository."""
    missing = Counter(each["repository"] for each in results if each["verdict"] == "unavailable")
    if missing:
        listed = ", ".join(f"{name} {count}" for name, count in missing.most_common())
        print(f"not available, and left out: {listed}")


def note(case: Case) -> str:
    found = ", ".join(case.get("findings", ()))
    if case["verdict"] == "flagged" and not case["compared"]:
        return f"{found}, no fix to compare"
    return found or str(case.get("reason") or case.get("why", ""))


def print_benign(results: list[Case]) -> None:
    counts = Counter(each["verdict"] for each in results)
    print(f"\nlook-alikes: {dict(counts)}")
    print_unavailable(results)
    for each in results:
        if each["verdict"] == "flagged":
            print(f"  {each['id']} {each['path']}:{each['lines']} {each['findings']}")


if __name__ == "__main__":
    main()
