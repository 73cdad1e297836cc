"""Writes the file, the test and the page of a new rule.

    python -m tensortrail.cli.new_rule DEV516 name-of-the-risk

Without arguments it says which codes are free."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from tensortrail.rules import all_rules

FAMILIES = {
    "OFF": "offload", "STO": "storage", "NEW": "fresh", "SHD": "shards",
    "DEV": "devices", "XFR": "copies", "TOL": "tolerance", "CKP": "checkpoints",
    "RUN": "runs",
}  # fmt: skip
_RULE = '''\
from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Did, Good, Module, Rule, Timeline


class {cls}(Rule):
    """TODO: one sentence that names the risk.

    ## What it does
    TODO

    ## Why is this bad?
    TODO

    ## Fix safety
    TODO

    ## References
    - TODO
    """

    code = "{code}"
    name = "{name}"
    severity = Severity.WARNING
    default = False
    proven = False
    triggers = ("TODO",)

    bad = (Bad("TODO()\\n", lines=(1,), instead="done()\\n"),)
    good = (Good("pass\\n"),)

    def check(self, module: Module) -> Iterator[Finding]:
        """The static half: findings in one file."""
        for call in module.calls("TODO"):
            if isinstance(call.func, ast.Name):
                yield self.finding(module, call, "TODO: what goes wrong")

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        """The runtime half: findings in one recorded run. Delete it if a run shows nothing."""
        for event in timeline.events(Did.MOVE):
            if event.facts.get("TODO"):
                yield self.finding_in_run(timeline, event, "TODO: what went wrong")
'''
_TEST = '''\
"""{code} {name}, watching real programs."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.rules.recorded import watched


def test_a_program_without_the_risk(tmp_path: Path) -> None:
    seen = watched(tmp_path, "import torch\\ntorch.ones(3)\\n", "{code}")
    assert not seen.found
'''


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 2:
        say(__doc__ or "")
        for prefix, folder in FAMILIES.items():
            say(f"{folder}: next free code {free_code(prefix)}")
        return 0 if not arguments else 2
    code, name = arguments
    problem = refusal(code, name)
    if problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    for path in write(Path(), code, name):
        say(str(path))
    return 0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def free_code(prefix: str) -> str:
    """The first number of the family after those that are taken."""
    taken = [int(code[len(prefix) :]) for code in all_rules() if code.startswith(prefix)]
    return f"{prefix}{max(taken, default=0) + 1}"


def refusal(code: str, name: str) -> str:
    """Why there can be no such rule; "" if there can."""
    if code[:3] not in FAMILIES or not re.fullmatch(r"[A-Z]{3}\d{3}", code):
        return f"{code} is no code of a family: {', '.join(FAMILIES)} and three digits"
    if not re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", name):
        return f"{name} is not a name for a rule: small letters, with hyphens between the words"
    rules = all_rules()
    if code in rules:
        return f"{code} is {rules[code].name}; {free_code(code[:3])} is free"
    if any(rule.name == name for rule in rules.values()):
        return f"there is a rule of the name {name}"
    return ""


def write(root: Path, code: str, name: str) -> list[Path]:
    """The rule, its test and its page; none of them is overwritten."""
    folder, stem = FAMILIES[code[:3]], name.replace("-", "_")
    cls = "".join(word.capitalize() for word in name.split("-"))
    rule = _RULE.format(code=code, name=name, cls=cls)
    page = rule.partition('"""')[2].partition('"""')[0]
    texts = {
        root / "tensortrail" / "rules" / folder / f"{stem}.py": rule,
        root / "tests" / "rules" / folder / f"test_{stem}.py": _TEST.format(code=code, name=name),
        root / "docs" / "rules" / f"{name}.md": f"# {name} ({code})\n\n{_dedented(page)}",
    }
    taken = [path for path in texts if path.exists()]
    if taken:
        raise SystemExit(f"{taken[0]} is there already")
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(texts)


def _dedented(page: str) -> str:
    return "\n".join(line.removeprefix("    ") for line in page.rstrip().splitlines()) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
