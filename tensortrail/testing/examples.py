"""A rule over its own examples."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence

from tensortrail.analyzer.choosing.triggers import may_flag
from tensortrail.analyzer.fixing.fixer import fix_file
from tensortrail.analyzer.judging.judge import judge
from tensortrail.analyzer.judging.module import open_project
from tensortrail.doctor.settings.examine import review
from tensortrail.doctor.settings.reading import read_settings
from tensortrail.findings import Finding
from tensortrail.rules.base import Rule
from tensortrail.rules.examples import Bad
from tensortrail.rules.page import AFTER_EXAMPLES, BEFORE_EXAMPLES, shown
from tensortrail.testing.little_project import little_project


def check_examples(rule: type[Rule]) -> None:
    """Every bad example is flagged on its lines and mended as it says, no good one is flagged.

    A rule that only watches runs has no examples of code: its page is checked."""
    check_page(rule)
    if rule.reviews_settings():
        check_settings(rule)
        return
    if not rule.reads_code():
        assert rule.watches_runs() or rule.examines_checkpoints(), f"{rule.code} has no half"
        assert not [*rule.bad, *rule.good], f"{rule.code} has examples of code it never reads"
        return
    assert rule.bad, f"{rule.code} has no bad example"
    assert rule.good, f"{rule.code} has no good example"
    for bad in rule.bad:
        check_bad(rule, bad)
    for good in rule.good:
        found = run(rule, good.source, good.files, good.path)
        assert not found, f"{rule.code} flags a good example: {_told(found)}\n{good.source}"
    assert shown(rule.bad), f"{rule.code}: no bad example has `fixed` or `instead` for the page"


def check_page(rule: type[Rule]) -> None:
    assert re.fullmatch(r"[A-Z]{3,}\d{3,}", rule.code), f"odd code {rule.code!r}"
    assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", rule.name), f"odd name {rule.name!r}"
    page = inspect.cleandoc(rule.__doc__ or "")
    # Examples of code are shown from `bad` and `good`.
    example = () if rule.reads_code() or rule.reviews_settings() else ("Example",)
    sections = (*BEFORE_EXAMPLES, *example, *AFTER_EXAMPLES)
    at = [page.find(f"## {section}") for section in sections]
    assert -1 not in at, f"{rule.code}: its page lacks one of {sections}"
    assert at == sorted(at), f"{rule.code}: its page has the sections in another order"
    for section in sections:
        said = f"{page.partition(f'## {section}')[2]}\n".partition("\n## ")[0]
        assert said.strip(), f"{rule.code}: the section {section!r} of its page is empty"


def check_settings(rule: type[Rule]) -> None:
    """The same for a rule about settings files, which offers no fixes."""
    assert rule.bad, f"{rule.code} has no bad example"
    assert rule.good, f"{rule.code} has no good example"
    assert rule.read_in, f"{rule.code} cites no code"
    assert shown(rule.bad), f"{rule.code}: no bad example has `instead` for the page"
    for bad in rule.bad:
        found = of_settings(rule, bad.source, bad.path)
        lines = tuple(sorted({each.site.line for each in found}))
        assert lines == bad.lines, f"{rule.code} flags {lines}: {_told(found)}\n{bad.source}"
        assert bad.instead is None or not of_settings(rule, bad.instead, bad.path), bad.instead
    for good in rule.good:
        found = of_settings(rule, good.source, good.path)
        assert not found, f"{rule.code} flags a good example: {_told(found)}\n{good.source}"


def of_settings(rule: type[Rule], source: str, path: str) -> Sequence[Finding]:
    """What the rule finds in one settings file."""
    with little_project(source, {}, path) as target:
        return review(read_settings(str(target)), (rule.code,))


def check_bad(rule: type[Rule], bad: Bad) -> None:
    found = run(rule, bad.source, bad.files, bad.path)
    lines = tuple(sorted({finding.site.line for finding in found}))
    assert lines == bad.lines, (
        f"{rule.code} flags lines {lines}, not {bad.lines}: {_told(found)}\n{bad.source}"
    )
    data = bad.source.encode()
    assert may_flag(rule, data), f"{rule.code}: its triggers miss\n{bad.source}"
    if bad.instead is not None:
        found = run(rule, bad.instead, bad.files, bad.path)
        assert not found, f"{rule.code} flags what it asks for: {_told(found)}\n{bad.instead}"
    mended = fixed(rule, bad.source, bad.files, bad.path)
    if bad.fixed is None:
        assert mended == bad.source, (
            f"{rule.code} offers a fix the example does not show:\n{mended}"
        )
        return
    assert mended == bad.fixed, f"{rule.code} gives\n{mended}\nnot\n{bad.fixed}"
    assert fixed(rule, mended, bad.files, bad.path) == mended, f"{rule.code}: fix is not idempotent"


def run(
    rule: type[Rule], source: str, files: Mapping[str, str] | None = None, path: str = "example.py"
) -> Sequence[Finding]:
    """What the rule finds in one file of a little project."""
    with little_project(source, files or {}, path) as target:
        return judge(str(target), source.encode(), [rule()], open_project()).findings


def fixed(
    rule: type[Rule], source: str, files: Mapping[str, str] | None = None, path: str = "example.py"
) -> str:
    """The source with all of the rule's fixes applied, unsafe ones too."""
    with little_project(source, files or {}, path) as file:
        target = str(file)

        def find_again(name: str, data: bytes) -> Sequence[Finding]:
            return judge(name, data, [rule()], open_project()).findings

        data = source.encode()
        outcome = fix_file(target, data, find_again(target, data), True, find_again)
        return outcome.after.decode()


def _told(found: Sequence[Finding]) -> str:
    return "; ".join(f"line {each.site.line}: {each.message}" for each in found)
