"""Which operands may be on another device than those that they meet."""

from __future__ import annotations

import ast

from tensortrail.rules.places import (
    INDEX,
    Held,
    Meeting,
)


def is_index_of_what_follows(meeting: Meeting, odd: Held) -> bool:
    """An index on the CPU into a tensor anywhere is legal; the other way round it is not."""
    return meeting.operation == INDEX and odd is meeting.right


def is_legal(meeting: Meeting, odd: Held) -> bool:
    """A tensor without dimension may be anywhere, where numbers may stand too."""
    return (meeting.by_element and odd.may_be_scalar) or is_index_of_what_follows(meeting, odd)


def is_stored_by_numbers(meeting: Meeting) -> bool:
    """`x[rows, columns] = value`: torch brings such indices to where `x` is. Of one index alone
    it may make a mask, which has to be there."""
    node = meeting.node
    if not isinstance(node, ast.Subscript) or not isinstance(node.ctx, ast.Store):
        return False
    by = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
    return sum(not isinstance(each, (ast.Slice, ast.Constant)) for each in by) > 1
