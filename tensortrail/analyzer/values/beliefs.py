"""A map from access paths to what is believed of them, cheap to copy and to join.

Copies share what they have in common, as layers: a copy costs nothing, and joining two copies
costs as much as was changed since they parted, however much they hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
_LINK = re.compile(r"[.\[]")
_FEW = 16
"""Entries that are looked through for those below a path; more are put away as a layer."""


class _Layer(Generic[T]):
    """Changes that several maps share. A belief of None: nothing is at this path any more.
    Below the paths in `cuts` nothing of the layers underneath is left."""

    __slots__ = ("cuts", "own", "under")

    def __init__(
        self, own: dict[str, T | None], cuts: frozenset[str], under: _Layer[T] | None
    ) -> None:
        self.own = own
        self.cuts = cuts
        self.under = under


class Beliefs(Generic[T]):
    __slots__ = ("_cuts", "_own", "_under")

    def __init__(self, under: _Layer[T] | None = None) -> None:
        self._own: dict[str, T | None] = {}
        self._cuts: set[str] = set()
        self._under = under

    @property
    def is_empty(self) -> bool:
        """Nothing was ever believed."""
        return not self._own and self._under is None

    def get(self, path: str) -> T | None:
        own: dict[str, T | None] = self._own
        if path in own:
            return own[path]
        layer = self._under
        if layer is None:
            return None
        if "." not in path and "[" not in path:
            while layer is not None:
                own = layer.own
                if path in own:
                    return own[path]
                layer = layer.under
            return None
        cuts: set[str] | frozenset[str] = self._cuts
        above = list(_above(path))
        while layer is not None:
            if cuts and not cuts.isdisjoint(above):
                return None
            if path in layer.own:
                return layer.own[path]
            cuts, layer = layer.cuts, layer.under
        return None

    def __contains__(self, path: str) -> bool:
        return self.get(path) is not None

    def __setitem__(self, path: str, belief: T) -> None:
        self._own[path] = belief

    def forget(self, path: str) -> None:
        """Drop what is believed of the path and of all that hangs below it."""
        own = self._own
        if not own and self._under is None:
            return
        if len(own) > _FEW:
            self._put_away()
            own = self._own
        own.pop(path, None)
        for key in [key for key in own if key.startswith(path) and key[len(path)] in ".["]:
            del own[key]
        if self._under is not None:
            own[path] = None
            self._cuts.add(path)

    def copy(self) -> Beliefs[T]:
        self._put_away()
        return Beliefs(self._under)

    def joined(
        self, other: Beliefs[T], rule: Callable[[str, T | None, T | None], T | None]
    ) -> Beliefs[T]:
        """What the rule makes of each path at which they may differ, and all they have in common.

        What is cut off in one of them is cut off in the result: of a path below another one, the
        rule may only keep what both have."""
        if not self._own and not other._own and self._under is other._under:
            return Beliefs(self._under)
        common, layers = self._parting(other)
        result = Beliefs(common)
        changed = dict.fromkeys(path for layer in layers for path in layer.own)
        for layer in layers:
            result._cuts |= layer.cuts
        for path in changed:
            belief = rule(path, self.get(path), other.get(path))
            if belief is not None or common is not None:
                result._own[path] = belief
        if common is None:
            result._cuts.clear()
        return result

    def differing(self, other: Beliefs[T]) -> Iterable[str]:
        """The paths at which they may differ."""
        _, layers = self._parting(other)
        return dict.fromkeys(path for layer in layers for path in layer.own)

    def _parting(self, other: Beliefs[T]) -> tuple[_Layer[T] | None, list[_Layer[T]]]:
        """The topmost layer that both have, and all layers above it."""
        if self._under is other._under:
            return self._under, [self._newest(), other._newest()]
        return _parting(self._layers(), other._layers())

    def _newest(self) -> _Layer[T]:
        return _Layer(self._own, frozenset(self._cuts), self._under)

    def _layers(self) -> Iterator[_Layer[T]]:
        yield self._newest()
        layer = self._under
        while layer is not None:
            yield layer
            layer = layer.under

    def _put_away(self) -> None:
        """Make a layer of what is new; small layers are merged, so that there are always few."""
        if not self._own:
            return
        own, cuts, under = self._own, frozenset(self._cuts), self._under
        while under is not None and len(under.own) <= 2 * len(own):
            own, cuts, under = _merged(under, own, cuts), cuts | under.cuts, under.under
        if under is None:
            own = {path: belief for path, belief in own.items() if belief is not None}
            cuts = frozenset()
        self._own, self._cuts = {}, set()
        self._under = _Layer(own, cuts, under) if own or under is not None else None


def _merged(
    under: _Layer[T], own: dict[str, T | None], cuts: frozenset[str]
) -> dict[str, T | None]:
    kept = under.own
    if cuts:
        kept = {path: each for path, each in kept.items() if cuts.isdisjoint(_above(path))}
    return {**kept, **own}


def _parting(
    one: Iterator[_Layer[T]], other: Iterator[_Layer[T]]
) -> tuple[_Layer[T] | None, list[_Layer[T]]]:
    """The topmost layer that both have, and all layers above it."""
    mine = list(one)
    place = {id(layer): number for number, layer in enumerate(mine)}
    theirs: list[_Layer[T]] = []
    for layer in other:
        if id(layer) in place:
            return layer, mine[: place[id(layer)]] + theirs
        theirs.append(layer)
    return None, mine + theirs


def _above(path: str) -> Iterator[str]:
    """The paths that this one hangs below: "a" and "a.b" of "a.b[0]"."""
    return (path[: link.start()] for link in _LINK.finditer(path))
