"""The attributes of a simulated tensor that a GPU's would have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

OURS = ("inner", "index")


class Shown(MutableMapping[str, Any]):
    def __init__(self, attributes: dict[str, Any]) -> None:
        self._attributes = attributes

    def __getitem__(self, name: str) -> Any:
        if name in OURS:
            raise KeyError(name)
        return self._attributes[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._attributes[name] = value

    def __delitem__(self, name: str) -> None:
        del self._attributes[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._attributes if name not in OURS)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self.copy() == dict(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.copy())

    def copy(self) -> dict[str, Any]:
        return dict(self)
