"""Which of many words occur in a text. The names of a project come again in file after file: each
is looked into once."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAME = re.compile(rb"""[."']?\w+[(=]?""")
"""A name with what stands at it: few texts that name `ones` have no `ones(`."""
_APART = bytes(byte if re.match(rb"""[\w."'(=]""", bytes([byte])) else 32 for byte in range(256))
_BEFORE, _BEHIND = (b".", b'"', b"'"), (b"(", b"=")
_MOST = 20_000
"""Names that are remembered: ten times as many take 22 MB more and find no sooner."""


class Words:
    """The words that are looked for. Each has a core, the longest name in it: where that is no
    part of a name of the text, the word does not occur."""

    def __init__(self, words: Iterable[bytes]) -> None:
        self._by_core: dict[bytes, list[bytes]] = {}
        for word in sorted({*words} - {b""}):
            core = max(_NAME.findall(word), key=len, default=b"")
            self._by_core.setdefault(core, []).append(word)
        self._names: set[bytes] = set()
        self._cores: dict[bytes, set[bytes]] = {}
        """Of the names that are known those with a core, and which."""

    def within(self, text: bytes) -> set[bytes]:
        """Those that occur, and the empty one."""
        names = _names(text)
        self._learn(names)
        known = self._cores
        cores = {b""}.union(*map(known.__getitem__, names & known.keys()))
        found = {b""}
        for core in cores & self._by_core.keys():
            found.update(word for word in self._by_core[core] if word == core or word in text)
        return found

    def _learn(self, names: set[bytes]) -> None:
        new = names - self._names
        if len(self._names) + len(new) > _MOST:
            self._names, self._cores, new = set(), {}, names
        self._names |= new
        text = b" %b " % b" ".join(new)
        for core in self._by_core.keys() - {b""}:
            at = text.find(core)
            while at >= 0:
                end = text.find(b" ", at)
                name = text[text.rfind(b" ", 0, at) + 1 : end]
                self._cores.setdefault(name, set()).add(core)
                at = text.find(core, end)


def _names(text: bytes) -> set[bytes]:
    text = text.translate(_APART)
    for sign in _BEFORE:
        text = text.replace(sign, b" " + sign)
    for sign in _BEHIND:
        text = text.replace(sign, sign + b" ")
    return set(text.split())
