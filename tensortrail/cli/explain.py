"""`tensortrail explain`: a rule's page, or the list of rules; `explain DEV` lists a family."""

from __future__ import annotations

import sys
from argparse import Namespace

from tensortrail.analyzer.choosing.own_findings import OWN
from tensortrail.cli.console import wants_color, write_text
from tensortrail.cli.exit_codes import CLEAN
from tensortrail.cli.selection import UnknownRule
from tensortrail.rules import all_rules


def run(options: Namespace) -> int:
    rules = {code: rule.info() for code, rule in all_rules().items()} | OWN
    asked = options.rule or ""
    family = [info for code, info in rules.items() if code.startswith(asked.upper())]
    if family and asked.upper() not in rules:
        lines = [f"{info.code}  {info.name:<32} {info.summary}" for info in family]
        write_text("\n".join(lines), sys.stdout)
        return CLEAN
    found = rules.get(asked.upper()) or next(
        (info for info in rules.values() if info.name == asked), None
    )
    if found is None:
        raise UnknownRule(asked)
    if wants_color(options.color, sys.stdout):
        from rich.console import Console
        from rich.markdown import Markdown

        Console(force_terminal=True).print(Markdown(found.page))
    else:
        write_text(found.page, sys.stdout)
    return CLEAN
