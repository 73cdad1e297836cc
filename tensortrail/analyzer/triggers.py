"""Which rules must look at a file, from its bytes alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tensortrail.rules.base import Near, Rule, Trigger

_WINDOW = 2000
"""Bytes from the start of a line that a `Near` pattern may look at."""

Test = Callable[[bytes], bool]


class Triggers:
    """One scan for each distinct word, shared by all rules."""

    def __init__(self, rules: Iterable[type[Rule]]) -> None:
        self._rules = [
            (rule, [_words(trigger) for trigger in rule.triggers], _places(rule))
            for rule in rules
            if rule.reads_code()
        ]
        self._stems = _stems(self.words)

    @property
    def words(self) -> frozenset[bytes]:
        """All the words that any rule waits for; the empty one if a rule waits for none."""
        found: set[bytes] = set()
        for _, triggers, _ in self._rules:
            found.update(*triggers or [frozenset({b""})])
        return frozenset(found)

    def rules_for(self, data: bytes) -> list[type[Rule]]:
        present = self._present(data)
        return [
            rule
            for rule, triggers, places in self._rules
            if (
                not triggers
                or any(
                    words <= present and (place is None or place(data))
                    for words, place in zip(triggers, places, strict=True)
                )
            )
            and (not rule.shape or any(shape.search(data) for shape in rule.shape))
        ]

    def _present(self, data: bytes) -> set[bytes]:
        """Of the words those that occur: where a part of one is missing, it is not looked for."""
        found = {b""}
        for word, stem in self._stems:
            if stem in found and word in data:
                found.add(word)
        return found


def _stems(words: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    """Each word with the longest other one that is a part of it, short words first."""
    found: list[tuple[bytes, bytes]] = []
    for word in sorted(words, key=lambda each: (len(each), each)):
        parts = [known for known, _ in found if known in word]
        found.append((word, parts[-1] if parts else b""))
    return found


def _words(trigger: Trigger) -> frozenset[bytes]:
    """All of them have to occur."""
    if isinstance(trigger, Near):
        return frozenset(each.encode() for each in (trigger.word, *trigger.also))
    return frozenset(
        each.encode() for each in ((trigger,) if isinstance(trigger, str) else trigger)
    )


def _places(rule: type[Rule]) -> list[Test | None]:
    return [_near(each) if isinstance(each, Near) else None for each in rule.triggers]


def _near(trigger: Near) -> Test:
    """Whether the pattern is found on a line with the word."""
    word = trigger.word.encode()
    match = trigger.pattern.match

    def test(data: bytes) -> bool:
        at = data.find(word)
        while at >= 0:
            start = data.rfind(b"\n", 0, at) + 1
            if match(data[start : start + _WINDOW]):
                return True
            at = data.find(word, at + len(word))
        return False

    return test
