"""What the page of a rule shows is what the lint does with it, pasted into a file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tensortrail.analyzer.judging.suppress import silenced, suppressions_in
from tensortrail.cli.rule_pages import pages
from tensortrail.rules import Rule, all_rules
from tensortrail.rules.page import seen, shown
from tensortrail.testing import run
from tensortrail.tracer.explaining.causes import match

BLOCK = re.compile(r"```python\n(.*?)\n```", re.DOTALL)
PAGES = Path(__file__).parents[2] / "docs" / "rules"
OF_CODE = [rule for rule in all_rules().values() if rule.reads_code()]


@pytest.mark.parametrize("rule", OF_CODE, ids=lambda rule: rule.code)
def test_the_example_is_flagged_where_it_says_and_the_others_are_not(rule: type[Rule]) -> None:
    text = (PAGES / f"{rule.name}.md").read_text(encoding="utf-8")
    example, *fine = [f"{each}\n" for each in BLOCK.findall(text.partition("## When to ignore")[0])]
    files = _files(rule)
    marked = [n for n, line in enumerate(example.splitlines(), 1) if f"# {rule.code}" in line]
    assert marked
    assert sorted({each.site.line for each in run(rule, example, files)}) == marked
    assert fine
    for source in fine:
        assert not run(rule, source, files)


@pytest.mark.parametrize("rule", OF_CODE, ids=lambda rule: rule.code)
def test_the_comment_that_the_page_offers_silences_the_example(rule: type[Rule]) -> None:
    text = (PAGES / f"{rule.name}.md").read_text(encoding="utf-8")
    example = BLOCK.findall(text)[0]
    comment = re.search(r"^\.\.\.  (# tensortrail: .*)$", text, re.MULTILINE)
    assert comment
    marked = example.replace(f"# {rule.code}", comment.group(1)) + "\n"
    comments = suppressions_in(marked.encode())
    for finding in run(rule, marked, _files(rule)):
        assert silenced(finding, comments)


def _files(rule: type[Rule]) -> dict[str, str]:
    example = shown(rule.bad)
    assert example is not None
    return dict(example.files)


def test_the_messages_of_the_pages_are_known_and_listed() -> None:
    """A message that a rule quotes is explained: by the table of known messages, or by the rule
    when it watches the run that raises it."""
    index = pages()["README.md"]
    quoted = [(rule, each) for rule in all_rules().values() for each in seen(rule.__doc__ or "")]
    assert len(quoted) >= 15
    for rule, message in quoted:
        assert match("", message) is not None or rule.watches_runs(), f"{rule.code}: {message}"
        assert f"| `{message}` | " in index
