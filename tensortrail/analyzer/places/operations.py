"""What comes of tensors that one operation takes together, and where they meet."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.analyzer.places.environment import Environment
from tensortrail.rules.places import (
    MAYBE_SCALAR,
    NUMBER,
    ON_CPU_UNLESS_ASKED,
    UNKNOWN_HELD,
    Held,
    Meeting,
    What,
)

INDEX = "index"


class Meetings:
    """The meetings of one function, each pair of one operation once."""

    def __init__(self) -> None:
        self.quiet = 0
        """Above 0 in branches that know more of devices than can be told."""
        self._found: dict[tuple[ast.expr, int], Meeting] = {}

    def all(self) -> list[Meeting]:
        return list(self._found.values())

    def meet(
        self,
        node: ast.expr,
        operation: str,
        operands: Sequence[Held],
        env: Environment,
        by_element: bool,
    ) -> None:
        if self.quiet:
            return
        taking = [each for each in operands if _takes_part(each, by_element)]
        for index, right in enumerate(taking):
            for other, left in enumerate(taking[:index]):
                self._add(node, operation, left, right, env, by_element, (index << 8) + other)

    def index(self, node: ast.expr, base: Held, by: Held, env: Environment) -> None:
        """What lies on the CPU cannot be indexed from elsewhere; the other way round it can."""
        if not self.quiet and base.places and by.places and by.rank != 0:
            self._add(node, INDEX, base, by, env, False, len(self._found))

    def _add(
        self,
        node: ast.expr,
        operation: str,
        left: Held,
        right: Held,
        env: Environment,
        by_element: bool,
        number: int,
    ) -> None:
        meeting = Meeting(node, operation, left, right, by_element, env.conditions)
        self._found[(node, number)] = meeting


def _takes_part(held: Held, by_element: bool) -> bool:
    if not held.places:
        return False
    return held.what is What.TENSOR or (held.what is What.UNKNOWN and not by_element)


def combined(operands: Sequence[Held]) -> Held:
    """The tensor an operation makes of these; where one of them is known to lie by itself."""
    tensors = [each for each in operands if each.what is What.TENSOR]
    if not tensors:
        unknown = [each for each in operands if each.what is What.UNKNOWN]
        if not unknown:
            return NUMBER
        return UNKNOWN_HELD
    with_dimension = [each for each in tensors if not each.may_be_scalar] or tensors
    leading = [each for each in with_dimension if follows_a_device(each)]
    if not leading:
        if any(not each.places or each.what is What.UNKNOWN for each in _weighty(operands)):
            return Held(What.TENSOR, rank=_widest(tensors))
        leading = with_dimension
    return Held(What.TENSOR, leading[0].places, rank=_widest(tensors))


def _weighty(operands: Sequence[Held]) -> list[Held]:
    return [each for each in operands if each.what in (What.TENSOR, What.UNKNOWN)]


def follows_a_device(held: Held) -> bool:
    """It lies where something else was put, on every path."""
    return bool(held.places) and all(each.where not in ON_CPU_UNLESS_ASKED for each in held.places)


def _widest(tensors: Sequence[Held]) -> int | None:
    ranks = [each.rank for each in tensors]
    if None in ranks:
        return None
    known = [rank for rank in ranks if rank is not None and rank > 0]
    if known:
        return max(known)
    return MAYBE_SCALAR if MAYBE_SCALAR in ranks else 0
