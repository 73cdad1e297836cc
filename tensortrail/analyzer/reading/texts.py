"""The bytes of the files of one check, which several of its steps ask for."""

from __future__ import annotations

from tensortrail.files import read

_KEPT = 16_000_000
"""Bytes that are kept; of larger trees the rest is read again."""


class Texts:
    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}
        self._room = _KEPT

    def known(self, path: str) -> bytes | None:
        """The text, if it is kept here."""
        return self._known.get(path)

    def of(self, path: str) -> bytes:
        """Raises OSError where there is not a regular file that can be read."""
        known = self._known.get(path)
        if known is not None:
            return known
        data = read(path)
        if len(data) <= self._room:
            self._room -= len(data)
            self._known[path] = data
        return data
