"""The files around the one being judged, read only when a rule's question needs them."""

from __future__ import annotations


class Project:
    """Finds and reads other files of the same project by dotted module name.

    One Project lives as long as a check (or the editor's server); it keeps what it has read."""

    def __init__(self) -> None:
        self._read: dict[str, object] = {}
