"""Where tensors meet: the operations of one function that take several of them."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import product

from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.operations import as_operand
from tensortrail.rules.places import INDEX, KERNEL, Held, Meeting, What

_MOST_OF_A_KERNEL = 100
"""Pairs of arguments of one kernel of which nothing is known but that the caller has them."""


class Meetings:
    """The meetings of one function, each pair of one operation once."""

    def __init__(self) -> None:
        self.quiet = 0
        """Above 0 in branches that know more of devices than can be told."""
        self._found: dict[tuple[ast.expr, int], Meeting] = {}
        self._passed: dict[tuple[ast.expr, int], Meeting] = {}

    def all(self) -> list[Meeting]:
        return list(self._found.values())

    def passed(self) -> list[Meeting]:
        return list(self._passed.values())

    def pass_on(self, node: ast.expr, operands: Sequence[Held], env: Environment) -> None:
        """A call whose code is not known takes these; pairs with one that was moved are kept."""
        moved = [each for each in operands if each.moved is not None]
        if self.quiet or not moved:  # nearly all calls
            return
        left = [each for each in operands if each.moved is None]
        for number, (one, other) in enumerate(product(moved, left)):
            if all(each.what is What.TENSOR and each.places for each in (one, other)):
                meeting = Meeting(node, "call", one, other, False, env.conditions)
                self._passed[(node, number)] = meeting

    def add(self, meeting: Meeting) -> None:
        """One that was found elsewhere: inside of a function that is called."""
        if not self.quiet:
            self._found[(meeting.node, -1 - len(self._found))] = meeting

    def meet(
        self,
        node: ast.expr,
        operation: str,
        operands: Sequence[Held],
        env: Environment,
        by_element: bool,
        argument: int = 0,
    ) -> None:
        """`argument` tells the meetings of one call apart."""
        if self.quiet:
            return
        taking = [as_operand(each) for each in operands if _takes_part(each)]
        for index, right in enumerate(taking):
            for other, left in enumerate(taking[:index]):
                self._add(
                    node,
                    operation,
                    left,
                    right,
                    env,
                    by_element,
                    (argument << 16) + (index << 8) + other,
                )

    def launch(self, node: ast.expr, operands: Sequence[Held], env: Environment) -> None:
        """A kernel takes these; what the caller passes and nothing is known of may be numbers."""
        tensors = [each for each in operands if each.what is What.TENSOR and each.places]
        unknown = [each for each in operands if each.what is What.UNKNOWN and each.places]
        self.meet(node, KERNEL, tensors, env, by_element=False)
        for number, pair in enumerate(product(tensors or unknown, unknown)):
            if pair[0] is not pair[1] and number < _MOST_OF_A_KERNEL:
                self.meet(node, KERNEL, pair, env, by_element=False, argument=number + 1)

    def index(self, node: ast.expr, base: Held, by: Held, env: Environment) -> None:
        """What lies on the CPU cannot be indexed from elsewhere; the other way round it can."""
        if not self.quiet and base.places and by.places and not by.may_be_scalar:
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


def _takes_part(held: Held) -> bool:
    """A tensor, or an argument that may be one: its callers know."""
    return bool(held.places) and held.what in (What.TENSOR, What.UNKNOWN)
