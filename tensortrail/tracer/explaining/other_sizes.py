"""An operation refused the sizes of its operands: which of them do not fit, and where each came
from."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tensortrail.rules.devices.meetings.number_types_meet import TYPES
from tensortrail.rules.shared.sizes import dimensions
from tensortrail.tracer.explaining.causes import Cause
from tensortrail.tracer.explaining.operand import Operand, Origins
from tensortrail.tracer.identity.lines_behind import has_type, is_tensor

ABOUT_SIZES = re.compile(
    r"must match|shapes? cannot be multiplied|[Ss]izes? of tensor|size mismatch|not broadcastable"
    r"|expected input\W.{0,80} channels|[Ii]nput\.size\(-1\) must be equal|[Ss]hape mismatch"
    r"|[Ee]xpected (?:hidden|input|batch|size|tensor|target).{0,80}\bsizes?\b|same (?:size|shape)"
    r"|doesn't match the (?:broadcast )?shape|equal size|batch.size.{0,80}(?:match|equal)"
    r"|dimension.{0,40}(?:match|equal)|cannot be (?:broadcast|expanded)|expanded size",
    re.DOTALL,
)
OTHER_ORDER = re.compile(r"view size is not compatible with input tensor's size and stride")
_EXPECTED = re.compile(
    r"[Ee]xpected .{0,60}?size [(\[]([\d, ]{1,80})[)\]],? (?:but )?got [(\[]([\d, ]{1,80})[)\]]"
)
_NUMBER = re.compile(r"\d+")
_JOINED_IN = re.compile(r"except in dimension (\d{1,2})")
_PRODUCTS = ("matmul", "mm", "bmm", "__matmul__", "addmm", "mv")


_SPREADS = frozenset(
    "add sub mul div where lerp addcmul addcdiv copy_ add_ sub_ mul_ div_ __add__ __sub__ __mul__"
    " __truediv__ __radd__ __rsub__ __rmul__ __iadd__ __imul__ eq ne lt gt maximum minimum pow"
    " masked_fill mse_loss l1_loss".split()
)
"""Operations that spread a dimension of one over many."""
MOST_COMPARED = 4


def refuses_sizes(message: str) -> bool:
    return bool(ABOUT_SIZES.search(message) or OTHER_ORDER.search(message))


def origins_by(message: str) -> Origins | None:
    """What the operands may have come from, if their sizes or types are what was refused."""
    if refuses_sizes(message):
        return lambda _: is_tensor
    return (lambda told: has_type(str(told["dtype"]))) if TYPES.search(message) else None


def cause_of_sizes(op: str, message: str, operands: Sequence[Operand]) -> Cause:
    """In words; the operands themselves are listed with it."""
    if OTHER_ORDER.search(message):
        return _cause(
            f"`view` does not copy, but the elements of {_called(operands[0])} are in a different "
            "order in memory: it was transposed, permuted or sliced.",
            "Undo the transposition first, or use `.reshape(...)` (`.contiguous().view(...)`), "
            "which copies.",
        )
    if said := _unexpected(message, operands):
        return _cause(said, _advice(operands))
    joined = _JOINED_IN.search(message)
    unequal = _unequal(op.rpartition(".")[2], operands, int(joined[1]) if joined else None)
    said = f"{unequal}." if unequal else "The sizes of these operands do not fit together."
    return _cause(said, _advice(operands))


def _unexpected(message: str, operands: Sequence[Operand]) -> str:
    """The operand that the message has the size of, and the size that it names instead."""
    found = _EXPECTED.search(message)
    if found is None:
        return ""
    wanted, got = (tuple(map(int, _NUMBER.findall(each))) for each in found.groups())
    which = next((each for each in operands if each.shape == got), None)
    if which is None:
        return ""
    return f"{_called(which)} is {dimensions(got)} where {dimensions(wanted)} is expected."


class _Side(NamedTuple):
    operand: Operand
    what: str
    size: int

    def __str__(self) -> str:
        return f"{_called(self.operand)} has {self.size} {self.what}"


def _unequal(function: str, operands: Sequence[Operand], joined: int | None) -> str:
    """The two sizes that should be one."""
    for one, other in itertools.combinations(operands[:MOST_COMPARED], 2):
        for a, b in _sides(function, one, other, joined):
            if a.size != b.size:
                return f"{a}, and {b}"
    return ""


def _sides(
    function: str, one: Operand, other: Operand, joined: int | None
) -> Iterator[tuple[_Side, _Side]]:
    a, b = one.shape, other.shape
    if function == "linear" and a and len(b) == 2:
        yield _Side(one, "columns", a[-1]), _Side(other, "columns", b[1])
    elif function in _PRODUCTS and a and b:
        rows = "rows" if len(b) > 1 else "elements"
        yield _Side(one, "columns", a[-1]), _Side(other, rows, b[-2] if len(b) > 1 else b[0])
    elif joined is not None or function in _SPREADS:
        for back, (x, y) in enumerate(zip(reversed(a), reversed(b), strict=False), 1):
            if len(a) - back != joined and (joined is not None or 1 not in (x, y)):
                first, second = f"in dimension {len(a) - back}", f"in dimension {len(b) - back}"
                yield _Side(one, first, x), _Side(other, second, y)


def _advice(operands: Sequence[Operand]) -> str:
    weight = next((each for each in operands[1:] if "." in each.name), None)
    if weight is None:
        return "Follow the lines of each operand to the first size that is not what you meant."
    return (
        f"Make {_called(weight)} with the size of its input, or give the input that size where it "
        "is computed: the lines are listed with each operand."
    )


def _called(operand: Operand) -> str:
    """As it is called there, or in the operation's own words."""
    name = operand.name.partition(" (")[0]
    return f"`{name or operand.argument}`"


def _cause(cause: str, advice: str) -> Cause:
    return Cause("other-sizes", "sizes", (), cause, advice)
