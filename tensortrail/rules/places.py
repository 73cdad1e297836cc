"""The words in which rules ask where tensors lie: places, what is held, meetings."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from tensortrail.rules.unchanging import unchanging


class Where(str, Enum):
    """The sorts of places a tensor can be believed to have."""

    OF = "of"
    """Where an argument is: `subject` is its path."""
    SELF = "self"
    """Where the parameters and buffers of the object are."""
    STAYS = "stays"
    """Kept where a move of the object does not reach: a plain attribute, a global, a cache."""
    DEFAULT = "default"
    """On the default device: a factory was given none."""
    HOST = "host"
    """On the CPU because a library function always answers there."""
    LITERAL = "literal"
    """On a device written out in the code: `subject` is "cpu", "cuda"."""
    KEPT = "kept"
    """With a plain object of another file, where its class made it: `subject` is its name there."""
    META = "meta"
    DEVICE = "device"
    """On a device that is a value: `subject` is its expression."""
    LOCAL = "local"
    """With the local variable `subject`: computed, and nothing is known of what it was made of."""
    UNKNOWN = "unknown"
    """Not known on one of the paths that led here."""


ON_CPU_UNLESS_ASKED = frozenset({Where.DEFAULT, Where.HOST, Where.STAYS, Where.KEPT})
"""Places that do not follow the caller's device."""


@unchanging(frozen=True, slots=True)
class Place:
    where: Where
    subject: str = ""
    by: ast.AST | None = field(default=None, compare=False)
    """The node of this file that put it there."""
    given: str = ""
    """The condition under which it is there; empty if it is on every path."""

    @property
    def text(self) -> str:
        said = f"{self.where.value}({self.subject})" if self.subject else self.where.value
        return f"{said} if {self.given}" if self.given else said


class What(str, Enum):
    """What is held at a point of a function, as far as places need to know."""

    TENSOR = "tensor"
    NUMBER = "number"
    """A number, text, shape, dtype: nothing that lies on a device."""
    NONE = "none"
    DEVICE = "device"
    """A device or its name; `places` is where a tensor put on it would be."""
    MODULE = "module"
    OBJECT = "object"
    """An object of a class of the project that is no module."""
    BOX = "box"
    """A tuple, list or mapping."""
    SELF = "self"
    UNKNOWN = "unknown"


INDEX = "index"
"""The operation of a meeting of a tensor with what it is indexed by."""
KERNEL = "kernel"
"""The operation of a meeting in `kernel[grid](...)`: every tensor of it lies on one GPU."""
MODEL = "model"
"""The operation of a meeting with the parameters of a module whose code is not known."""
MAYBE_SCALAR = -1
"""The rank of a tensor that may have no dimension."""


@unchanging(frozen=True, slots=True)
class Held:
    """What is believed of one expression: what it is, and on which places it may lie."""

    what: What = What.UNKNOWN
    places: frozenset[Place] = frozenset()
    """Every place it may have on some path; empty when not known."""
    rank: int | None = None
    """Dimensions, MAYBE_SCALAR, or None when it has some and their number is not known."""
    path: str = ""
    """Access path of the object it was read from, through moves and casts: "layer.weight"."""
    parts: tuple[Held, ...] | None = None
    """The members of a tuple, or of a mapping with `keys`, in order."""
    keys: tuple[str, ...] = ()
    """How the members of a mapping are called, where all keys are written out."""
    each: Held | None = None
    """What any member of a list or mapping is."""
    cls: str = ""
    """For a module: its class, or "leaf", "box", "bare", or "weighted" of a loss with weights; for
    an object: its class."""
    made: ast.AST | None = None
    """For an object: the call that made it, unless something may have moved what it keeps."""
    moved: ast.AST | None = None
    """The call that put it where it is, if it was somewhere else before."""
    was: frozenset[Place] = frozenset()
    """Where it was before that call."""

    def at(self, *places: Place) -> Held:
        return replace(self, places=frozenset(places))

    @property
    def only(self) -> Place | None:
        """Its place, if there is one for all paths."""
        return next(iter(self.places)) if len(self.places) == 1 else None

    @property
    def in_order(self) -> Sequence[Place]:
        """Its places, in an order that is the same in every run."""
        return sorted(self.places, key=lambda each: (each.text, getattr(each.by, "lineno", 0)))

    @property
    def may_be_scalar(self) -> bool:
        return self.rank in (0, MAYBE_SCALAR)


UNKNOWN_HELD = Held()
NUMBER = Held(What.NUMBER)


@unchanging(frozen=True, slots=True)
class Meeting:
    """Two tensors that one operation takes together."""

    node: ast.expr
    operation: str
    left: Held
    right: Held
    """Of an index: the index, with `left` what is indexed."""
    by_element: bool
    """The operation takes numbers and tensors without dimension from anywhere."""
    conditions: Sequence[str] = ()
    """What was tested on the way here, in the form of `Place.given`."""

    @property
    def pairs(self) -> Sequence[tuple[Held, Held]]:
        return (self.left, self.right), (self.right, self.left)


@dataclass(slots=True)
class FunctionPlaces:
    """What was inferred of one function."""

    seen: Mapping[ast.expr, Held] = field(default_factory=dict)
    meetings: Sequence[Meeting] = ()
    passed: Sequence[Meeting] = ()
    """Pairs that are passed together to a call whose code is not known, of which one was moved."""
    returns: Held | None = None
    """What it gives back, over all its `return` statements."""


def opposite(condition: str) -> str:
    """The condition that holds where this one does not."""
    return condition[4:] if condition.startswith("not ") else f"not {condition}"
