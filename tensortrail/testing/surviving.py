"""Whether the findings of a rule survive paraphrase, and its good examples stay silent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensortrail.analyzer.choosing.triggers import may_flag
from tensortrail.rules.base import Rule
from tensortrail.rules.examples import Bad, Good
from tensortrail.testing.examples import run
from tensortrail.testing.paraphrases import Paraphrase, paraphrases


@dataclass(frozen=True)
class Outcome:
    """One example after one rewrite."""

    code: str
    number: int
    """Of the example among the bad or the good ones of the rule, from 1."""
    rewrite: str
    is_bad: bool
    as_it_should: bool
    """A bad one keeps as many findings as it had, a good one has none."""
    source: str


def outcomes(rule: type[Rule]) -> Iterator[Outcome]:
    """Every example of the rule in all other words."""
    examples: list[tuple[int, Bad | Good]] = [*enumerate(rule.bad, 1), *enumerate(rule.good, 1)]
    for number, example in examples:
        for other in paraphrases(example):
            yield _outcome(rule, number, example, other)


def _outcome(rule: type[Rule], number: int, example: Bad | Good, other: Paraphrase) -> Outcome:
    read = may_flag(rule, other.source.encode())
    found = run(rule, other.source, other.files, other.path) if read else ()
    wanted = len(example.lines) if isinstance(example, Bad) else 0
    kept = len(found) >= wanted if wanted else not found
    is_bad = isinstance(example, Bad)
    return Outcome(rule.code, number, other.name, is_bad, kept, other.source)
