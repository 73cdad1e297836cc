"""The rules that a check asks for, and those of them that must look at a file."""

from __future__ import annotations

from collections.abc import Sequence

from tensortrail.analyzer.choosing.request import CheckRequest
from tensortrail.analyzer.choosing.rule_index import Listed, listed
from tensortrail.analyzer.choosing.triggers import Triggers

LARGEST = 20_000_000
"""Bytes of a file that is judged; parsing takes a hundred times as much memory."""


class Chosen:
    def __init__(self, request: CheckRequest) -> None:
        self._rules = [
            rule
            for code, rule in listed().items()
            if (rule.default if request.codes is None else code in request.codes)
        ]
        self._filtered = request.use_triggers
        self._triggers = Triggers((rule, rule.filter) for rule in self._rules if rule.reads_code)

    @property
    def words(self) -> frozenset[bytes]:
        return self._triggers.words

    def coded(self, codes: Sequence[str]) -> Sequence[Listed]:
        rules = listed()
        return [rules[each] for each in codes]

    def rules_for(self, data: bytes) -> Sequence[Listed]:
        """Those whose trigger words the file has; all for one that is too large to look at."""
        filtered = self._filtered and len(data) <= LARGEST
        return self._triggers.rules_for(data) if filtered else self._rules
