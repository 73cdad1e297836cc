"""A function of the project that a call runs, and how it is called."""

from __future__ import annotations

import ast
from collections.abc import Callable

from tensortrail.rules.places import FunctionPlaces
from tensortrail.rules.unchanging import unchanging


@unchanging(frozen=True, slots=True)
class CalledAs:
    """How a function is called, and whether it answers."""

    parameters: ast.arguments
    is_method: bool
    gives_back: bool
    """What it returns is what the caller gets: no generator, no unknown decorator, and some
    `return` has a value."""
    chooses_a_device: bool
    """`if device is None: device = ...`"""


@unchanging(frozen=True, slots=True)
class Callee:
    """A function of the project that a call runs."""

    how: CalledAs
    inferred: Callable[[], FunctionPlaces]
    """Asked only where it matters: the most work of all is running what is called."""
    foreign: bool
    """It stands in another file: its nodes are replaced by the call."""
