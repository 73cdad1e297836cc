"""Which rules must look at a file, from its bytes alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tensortrail.rules.base import Rule


class Triggers:
    """One scan for each distinct word, shared by all rules."""

    def __init__(self, rules: Iterable[type[Rule]]) -> None:
        self._rules = [(rule, _alternatives(rule)) for rule in rules]

    def rules_for(self, data: bytes) -> list[type[Rule]]:
        found: dict[bytes, bool] = {}

        def has(word: bytes) -> bool:
            if word not in found:
                found[word] = word in data
            return found[word]

        return [
            rule
            for rule, alternatives in self._rules
            if any(all(has(word) for word in words) for words in alternatives)
            and (rule.shape is None or rule.shape.search(data))
        ]


def _alternatives(rule: type[Rule]) -> Sequence[tuple[bytes, ...]]:
    """The rule's triggers as alternatives of words that must all be there.

    A rule without triggers looks at every file: the empty alternative always holds."""
    alternatives = [
        (trigger,) if isinstance(trigger, str) else trigger for trigger in rule.triggers
    ]
    return [tuple(word.encode() for word in words) for words in alternatives] or [()]
