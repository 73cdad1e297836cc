"""What hovering over a finding tells: its rule's story and the trail behind it."""

from __future__ import annotations

from collections.abc import Iterator

from tensortrail.analyzer.choosing.own_findings import OWN
from tensortrail.analyzer.choosing.rule_index import listed
from tensortrail.findings import Finding, RuleInfo

_STORY = ("What it does", "Why is this bad?", "Fix safety")


def told(finding: Finding) -> str:
    """Markdown."""
    parts = [f"**{finding.code} {finding.name}**: {finding.message}", *_trail(finding)]
    info = _info(finding.code)
    if info is not None:
        parts += _story(info)
    return "\n\n".join(parts)


def _trail(finding: Finding) -> Iterator[str]:
    steps = [
        f"{number}. {step.site.short_place}: {step.message}"
        for number, step in enumerate(finding.trail, 1)
    ]
    if steps:
        yield "\n".join(steps)


def _story(info: RuleInfo) -> Iterator[str]:
    for section in info.page.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        if title.strip() in _STORY:
            yield f"*{title.strip()}* {text.strip()}"


def _info(code: str) -> RuleInfo | None:
    if code in OWN:
        return OWN[code]
    rule = listed().get(code)
    return rule.load().info() if rule is not None else None
