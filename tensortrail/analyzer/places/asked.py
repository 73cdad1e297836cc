"""What rules ask a file about places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from tensortrail.rules.places import FunctionPlaces, Held
from tensortrail.rules.view import FunctionNode

if TYPE_CHECKING:
    from tensortrail.analyzer.module import PythonModule
    from tensortrail.analyzer.places.index import PlacesOfFile


class AsksForPlaces:
    """The part of a `Module` that answers about places; nothing is inferred before it is asked."""

    _places: PlacesOfFile | None = None

    @property
    def places_of_file(self) -> PlacesOfFile:
        if self._places is None:
            from tensortrail.analyzer.places.index import PlacesOfFile

            self._places = PlacesOfFile(cast("PythonModule", self))
        return self._places

    def places(self, function: FunctionNode) -> FunctionPlaces:
        return self.places_of_file.places(function)

    def passed(self, function: FunctionNode, parameter: str) -> Sequence[tuple[FunctionNode, Held]]:
        return self.places_of_file.passed(function, parameter)
