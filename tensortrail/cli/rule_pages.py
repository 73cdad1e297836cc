"""Writes docs/rules/ from the rules: `python -m tensortrail.cli.rule_pages`."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from string import digits

from tensortrail.rules import Rule, all_rules
from tensortrail.rules.page import seen

DOCS = Path("docs") / "rules"
_LEVELS = (
    "The level is the usual one in code; less certain findings of a rule have a lower level. "
    "A rule is proven when its findings in projects that it was not written for were read and "
    "were worth acting on; until then it reports notes, which do not fail a check. "
    "*off*: the rule is not in the default selection; `--extend-select CODE` adds it."
)


def pages() -> dict[str, str]:
    """File name -> Markdown."""
    rules = all_rules()
    messages = ["| what you may see | rules |", "| --- | --- |", *_by_message()]
    index = "\n".join(["# Rules", "", *_by_family(), "## By message", "", *messages, ""])
    return {f"{rule.name}.md": rule.page() for rule in rules.values()} | {"README.md": index}


def _by_family() -> list[str]:
    """A table for each family, which is a folder of rules."""
    lines = [_LEVELS, ""]
    for prefix, family in groupby(all_rules().values(), lambda rule: rule.code.rstrip(digits)):
        rules = list(family)
        name = rules[0].__module__.split(".")[2]
        folder = sys.modules[f"tensortrail.rules.{name}"]
        lines += [f"## {prefix}: {name}", "", folder.__doc__ or "", ""]
        lines += ["| code | name | level | what it finds |", "| --- | --- | --- | --- |"]
        lines += [_row(rule) for rule in rules] + [""]
    return lines


def _row(rule: type[Rule]) -> str:
    level = rule.usual_severity().value + ("" if rule.default else ", off")
    return f"| [{rule.code}]({rule.name}.md) | {rule.name} | {level} | {rule.info().summary} |"


def _by_message() -> list[str]:
    """A row for each message that pages of rules begin with."""
    leading: dict[str, list[str]] = {}
    for code, rule in all_rules().items():
        for message in seen(rule.__doc__ or ""):
            leading.setdefault(message, []).append(f"[{code}]({rule.name}.md)")
    return [f"| `{message}` | {', '.join(links)} |" for message, links in sorted(leading.items())]


def main() -> None:
    DOCS.mkdir(parents=True, exist_ok=True)
    written = pages()
    for stale in set(DOCS.glob("*.md")) - {DOCS / name for name in written}:
        stale.unlink()
    for name, text in written.items():
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
