"""Which rules must look at a file, from its bytes alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tensortrail.rules.base import Near, Rule, Trigger

_WINDOW = 2000
"""Bytes from the start of a line that a `Near` pattern may look at."""

Has = Callable[[bytes], bool]
Test = Callable[[bytes, Has], bool]


class Triggers:
    """One scan for each distinct word, shared by all rules."""

    def __init__(self, rules: Iterable[type[Rule]]) -> None:
        self._rules = [
            (rule, [_test(trigger) for trigger in rule.triggers])
            for rule in rules
            if rule.reads_code()
        ]

    @property
    def words(self) -> frozenset[bytes]:
        """All the words that any rule waits for; the empty one if a rule waits for none."""
        found: set[str] = set()
        for rule, _ in self._rules:
            for trigger in rule.triggers or ("",):
                if isinstance(trigger, Near):
                    found |= {trigger.word, *trigger.also}
                else:
                    found |= {trigger} if isinstance(trigger, str) else set(trigger)
        return frozenset(word.encode() for word in found)

    def rules_for(self, data: bytes) -> list[type[Rule]]:
        found: dict[bytes, bool] = {}

        def has(word: bytes) -> bool:
            if word not in found:
                found[word] = word in data
            return found[word]

        return [
            rule
            for rule, tests in self._rules
            if (not tests or any(test(data, has) for test in tests))
            and (not rule.shape or any(shape.search(data) for shape in rule.shape))
        ]


def _test(trigger: Trigger) -> Test:
    if isinstance(trigger, Near):
        return _near(trigger)
    words = [word.encode() for word in ((trigger,) if isinstance(trigger, str) else trigger)]
    return lambda data, has: all(has(word) for word in words)


def _near(trigger: Near) -> Test:
    word = trigger.word.encode()
    also = [each.encode() for each in trigger.also]
    match = trigger.pattern.match

    def test(data: bytes, has: Has) -> bool:
        if not all(has(each) for each in also) or not has(word):
            return False
        at = data.find(word)
        while at >= 0:
            start = data.rfind(b"\n", 0, at) + 1
            if match(data[start : start + _WINDOW]):
                return True
            at = data.find(word, at + len(word))
        return False

    return test
