"""What rules ask a file about places."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cached_property
from typing import cast

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.places.functions.callers import callers_elsewhere, given_elsewhere
from tensortrail.analyzer.places.index import PlacesOfFile
from tensortrail.rules.places import FunctionPlaces, Held
from tensortrail.rules.view import Caller, FunctionNode, Module


class AsksForPlaces:
    """The part of a `Module` that answers about places; nothing is inferred before it is asked."""

    _places: PlacesOfFile | None = None

    @property
    def places_of_file(self) -> PlacesOfFile:
        if self._places is None:
            self._places = PlacesOfFile(cast("ProjectFile", self))
        return self._places

    def places(self, function: FunctionNode) -> FunctionPlaces:
        return self.places_of_file.places(function)

    def passed(self, function: FunctionNode, parameter: str) -> Sequence[tuple[FunctionNode, Held]]:
        return self.places_of_file.passed(function, parameter)

    def passed_elsewhere(self, function: FunctionNode, parameter: str) -> Sequence[Caller]:
        key = function, parameter
        if key not in self._passed_elsewhere:
            self._passed_elsewhere[key] = []  # callers that call one another end here
            found = callers_elsewhere(cast("ProjectFile", self), function, parameter)
            self._passed_elsewhere[key] = found
        return self._passed_elsewhere[key]

    def given_elsewhere(
        self, function: FunctionNode, parameter: str
    ) -> Sequence[tuple[Module, ast.expr]]:
        key = function, parameter
        if key not in self._given_elsewhere:
            self._given_elsewhere[key] = []
            found = given_elsewhere(cast("ProjectFile", self), function, parameter)
            self._given_elsewhere[key] = found
        return self._given_elsewhere[key]

    @cached_property
    def _given_elsewhere(
        self,
    ) -> dict[tuple[FunctionNode, str], Sequence[tuple[Module, ast.expr]]]:
        return {}

    @cached_property
    def _passed_elsewhere(self) -> dict[tuple[FunctionNode, str], Sequence[Caller]]:
        return {}
