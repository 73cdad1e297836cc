"""What each rule costs in a check: time, files and findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

from tensortrail.findings import Finding
from tensortrail.rules import Rule
from tensortrail.rules.view import Module


@dataclass
class Cost:
    files: int = 0
    findings: int = 0
    seconds: float = 0.0


class Profile:
    """The costs of the rules, by code, over all files of a check."""

    def __init__(self) -> None:
        self.costs: dict[str, Cost] = {}

    def findings(self, rule: Rule, module: Module) -> Iterator[Finding]:
        """What the rule finds in the file; the time counts even where the rule raises."""
        cost = self.costs.setdefault(rule.code, Cost())
        cost.files += 1
        began = perf_counter()
        try:
            for finding in rule.check(module):
                cost.findings += 1
                yield finding
        finally:
            cost.seconds += perf_counter() - began

    def table(self) -> str:
        """One line for each rule, the slowest first."""
        slowest = sorted(self.costs.items(), key=lambda each: -each[1].seconds)
        lines = [f"{'rule':<8}{'seconds':>9}{'files':>8}{'findings':>10}"]
        lines += [
            f"{code:<8}{cost.seconds:>9.2f}{cost.files:>8}{cost.findings:>10}"
            for code, cost in slowest
        ]
        return "\n".join(lines)
