"""What comes of tensors that one operation takes together, and where they meet."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.rules.places import (
    INDEX,
    KERNEL,
    MAYBE_SCALAR,
    NUMBER,
    ON_CPU_UNLESS_ASKED,
    UNKNOWN_HELD,
    Held,
    Meeting,
    Place,
    What,
    Where,
)

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


def is_put_somewhere(held: Held) -> bool:
    """Nothing is known of it but that it was moved to a device that the code names."""
    return held.what is What.UNKNOWN and held.moved is not None and follows_a_device(held)


def as_operand(held: Held) -> Held:
    """What was moved and is then computed with is a tensor."""
    return replace(held, what=What.TENSOR) if is_put_somewhere(held) else held


def written(held: Held) -> Held:
    """What an operation writes to has to be where the others are, with a dimension or without."""
    return replace(held, rank=None)


def _takes_part(held: Held) -> bool:
    """A tensor, or an argument that may be one: its callers know."""
    return bool(held.places) and held.what in (What.TENSOR, What.UNKNOWN)


def combined(operands: Sequence[Held]) -> Held:
    """The tensor an operation makes of these; where one of them is known to lie by itself."""
    operands = [as_operand(each) for each in operands]
    tensors = [each for each in operands if each.what is What.TENSOR]
    if not tensors:
        unknown = [each for each in operands if each.what is What.UNKNOWN]
        if not unknown:
            is_object = any(each.what is What.OBJECT for each in operands)
            return UNKNOWN_HELD if is_object else NUMBER
        placed = [each for each in unknown if each.places]
        alone = len({each.places for each in placed}) == 1
        settings = all(each.places or each.path for each in unknown)  # `x / self.rate`
        one = placed[0] if alone and settings else UNKNOWN_HELD
        return replace(one, path="") if one.places else UNKNOWN_HELD
    own = [each for each in tensors if not _is_local(each)]
    placed = [each for each in own if each.places]
    with_dimension = [each for each in placed if not each.may_be_scalar]
    leading = [each for each in with_dimension or placed if follows_a_device(each)]
    if not leading:  # whatever else is taken lies beside it, or the operation fails
        leading = with_dimension
    if not leading and len(placed) == len(tensors) and not _any_unknown(operands):
        leading = placed
    if not leading:
        return Held(What.TENSOR, _of_a_variable(tensors), rank=_widest(tensors))
    return Held(What.TENSOR, leading[0].places, rank=_widest(tensors))


def _is_local(held: Held) -> bool:
    return any(each.where is Where.LOCAL for each in held.places)


def _of_a_variable(tensors: Sequence[Held]) -> frozenset[Place]:
    """Where the first of them lies, if nothing more is known than the variable it is in."""
    return next((each.places for each in tensors if _is_local(each)), frozenset())


def _any_unknown(operands: Sequence[Held]) -> bool:
    return any(each.what is What.UNKNOWN for each in operands)


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
