"""Writes the file, the test and the page of a new rule.

    python -m tensortrail.cli.new_rule STO516 name-of-the-risk
    python -m tensortrail.cli.new_rule DEV516 name-of-the-risk batches

The third word is the folder of the rule inside its family, where the family has folders. Without
arguments it says which codes are free, and which folders there are."""

from __future__ import annotations

import pkgutil
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from tensortrail import rules as house
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
    if len(arguments) not in (2, 3):
        say(__doc__ or "")
        for prefix, family in FAMILIES.items():
            inside = f" (in {', '.join(folders_in(family))})" if folders_in(family) else ""
            say(f"{family}: next free code {free_code(prefix)}{inside}")
        return 0 if not arguments else 2
    code, name, folder = (*arguments, "")[:3]
    problem = refusal(code, name, folder)
    if problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    for path in write(Path(), code, name, folder):
        say(str(path))
    return 0


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def free_code(prefix: str) -> str:
    """The first number of the family after those that are taken."""
    taken = [int(code[len(prefix) :]) for code in all_rules() if code.startswith(prefix)]
    return f"{prefix}{max(taken, default=0) + 1}"


def folders_in(family: str) -> list[str]:
    """The folders that the rules of a family stand in; none if they stand in that of the family."""
    found = pkgutil.iter_modules([f"{each}/{family}" for each in house.__path__])
    return sorted(each.name for each in found if each.ispkg and each.name != "shared")


def refusal(code: str, name: str, folder: str = "") -> str:
    """Why there can be no such rule; "" if there can."""
    if code[:3] not in FAMILIES or not re.fullmatch(r"[A-Z]{3}\d{3}", code):
        return f"{code} is not a code of a family: {', '.join(FAMILIES)} and three digits"
    if not re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", name):
        return f"{name} is not a name for a rule: small letters, with hyphens between the words"
    rules = all_rules()
    if code in rules:
        return f"{code} is {rules[code].name}; {free_code(code[:3])} is free"
    if any(rule.name == name for rule in rules.values()):
        return f"there is a rule of the name {name}"
    family = FAMILIES[code[:3]]
    there = folders_in(family)
    if folder not in (there or [""]):
        given = folder or "no folder"
        return f"{given} is given, and {family} has {', '.join(there) or 'no folders'}"
    return ""


def write(root: Path, code: str, name: str, folder: str = "") -> list[Path]:
    """The rule, its test and its page; none of them is overwritten."""
    family, stem = FAMILIES[code[:3]], name.replace("-", "_")
    cls = "".join(word.capitalize() for word in name.split("-"))
    rule = _RULE.format(code=code, name=name, cls=cls)
    page = rule.partition('"""')[2].partition('"""')[0]
    texts = {
        root / "tensortrail" / "rules" / family / folder / f"{stem}.py": rule,
        root / "tests" / "rules" / family / f"test_{stem}.py": _TEST.format(code=code, name=name),
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
