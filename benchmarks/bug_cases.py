"""Real bugs, before and after their fix: what the lint says of each.

python benchmarks/bug_cases.py [--mirrors DIR] [--work DIR] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from sources import Sources

from tensortrail.analyzer.engine import check
from tensortrail.analyzer.request import CheckRequest
from tensortrail.findings import Finding, Severity
from tensortrail.rules import all_rules

HERE = Path(__file__).parent
NEAR = 3
"""Lines by which a finding may stand beside the lines named."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mirrors", type=Path, help="folder of bare repositories")
    parser.add_argument("--work", type=Path, default=Path(".tensortrail") / "cases")
    parser.add_argument("--json", type=Path, help="write every result there")
    options = parser.parse_args()
    sources = Sources(options.work, options.mirrors)
    results = [judge_case(sources, case) for case in read("cases.jsonl")]
    benign = [judge_benign(sources, case) for case in read("benign.jsonl")]
    print_cases(results)
    print_benign(benign)
    if options.json:
        options.json.write_text(json.dumps({"cases": results, "benign": benign}, indent=1))


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text().splitlines()]


def judge_case(sources: Sources, case: dict[str, Any]) -> dict[str, Any]:
    """`before`: our rule speaks on the named lines. `after`: how often it speaks in the file."""
    result = {**case, "verdict": "not covered"}
    if "rule" not in case:
        return result
    before = findings_in(sources, case, "before")
    if isinstance(before, str):
        return {**result, "verdict": "unavailable", "reason": before}
    named = [each for each in before if each.code == case["rule"] and stands_on(each, case)]
    result["verdict"] = "flagged" if named else "missed"
    after = findings_in(sources, case, "after")
    if not isinstance(after, str):
        shapes = {shape(each) for each in named}
        left = [each for each in after if each.code == case["rule"] and shape(each) in shapes]
        count = sum(1 for each in before if shape(each) in shapes)
        result["silent_after"] = len(left) < count if named else None
    return result


def judge_benign(sources: Sources, case: dict[str, Any]) -> dict[str, Any]:
    found = findings_in(sources, {**case, "before": case.get("revision")}, "before")
    if isinstance(found, str):
        return {**case, "verdict": "unavailable", "reason": found}
    loud = [
        f"{each.code} {each.severity.value}"
        for each in found
        if each.severity is not Severity.NOTE and stands_on(each, case, near=0)
    ]
    return {**case, "verdict": "flagged" if loud else "silent", "findings": loud}


def findings_in(sources: Sources, case: dict[str, Any], side: str) -> list[Finding] | str:
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
    request = CheckRequest(
        paths=(str(file),), codes=frozenset(all_rules()), cache_dir=None, siblings=False, jobs=1
    )
    return list(check(request).findings)


def stands_on(finding: Finding, case: dict[str, Any], near: int = NEAR) -> bool:
    lines = ranges(case)
    sites = [finding.site, *(step.site for step in finding.trail)]
    return any(
        first - near <= site.end_line and site.line <= last + near
        for site in sites
        for first, last in lines
    )


def ranges(case: dict[str, Any]) -> list[tuple[int, int]]:
    found = []
    for match in re.finditer(r"(\d+)(?:-(\d+))?", case["lines"]):
        first = int(match[1])
        found.append((first, int(match[2] or first)))
    return found


def shape(finding: Finding) -> tuple[str, str]:
    return finding.code, " ".join(finding.site.source.split())


def print_cases(results: list[dict[str, Any]]) -> None:
    by_rule: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for result in results:
        by_rule[result.get("rule", "-")].append(result)
    for rule, cases in sorted(by_rule.items()):
        if rule == "-":
            continue
        flagged = sum(each["verdict"] == "flagged" for each in cases)
        print(f"\n{rule}: {flagged} of {len(cases)} flagged before the fix")
        for each in cases:
            after = {True: "silent after", False: "STILL FLAGGED AFTER"}.get(
                each.get("silent_after"), "no fix to compare"
            )
            note = (
                after
                if each["verdict"] == "flagged"
                else each.get("reason") or each.get("missed_because", "")
            )
            print(f"  {each['verdict']:<11} {each['id']} ({each['detectable']}) {note}")
    covered = [each for each in results if "rule" in each and each["verdict"] != "unavailable"]
    yes = [each for each in covered if each["detectable"] == "yes"]
    for name, group in (("detectable `yes`", yes), ("all", covered)):
        count = sum(each["verdict"] == "flagged" for each in group)
        share = count / len(group) if group else 0.0
        print(f"\ncovered by these rules, {name}: {count} of {len(group)} flagged ({share:.0%})")
    reasons = Counter(each.get("reason", "") for each in results if "rule" not in each)
    print(f"\nnot covered: {sum(reasons.values())}")
    for reason, count in reasons.most_common():
        print(f"  {count:>3}  {reason}")


def print_benign(results: list[dict[str, Any]]) -> None:
    counts = Counter(each["verdict"] for each in results)
    print(f"\nbenign look-alikes: {dict(counts)}")
    for each in results:
        if each["verdict"] == "flagged":
            print(f"  {each['id']} {each['path']}:{each['lines']} {each['findings']}")


if __name__ == "__main__":
    main()
