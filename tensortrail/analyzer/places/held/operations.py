"""What comes of tensors that one operation takes together, and where they meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tensortrail.rules.places import (
    MAYBE_SCALAR,
    NUMBER,
    ON_CPU_UNLESS_ASKED,
    UNKNOWN_HELD,
    Held,
    Place,
    What,
    Where,
)


def is_put_somewhere(held: Held) -> bool:
    """Nothing is known of it but that it was moved to a device that the code names."""
    return held.what is What.UNKNOWN and held.moved is not None and follows_a_device(held)


def as_operand(held: Held) -> Held:
    """What was moved and is then computed with is a tensor."""
    return replace(held, what=What.TENSOR) if is_put_somewhere(held) else held


def written(held: Held) -> Held:
    """What an operation writes to has to be where the others are, with a dimension or without."""
    return replace(held, rank=None)


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
