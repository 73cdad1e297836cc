"""What is held under which name at one point of a function."""

from __future__ import annotations

from tensortrail.analyzer.values.beliefs import Beliefs
from tensortrail.rules.places import Held, Place


class Environment:
    __slots__ = ("ambient", "conditions", "values")

    def __init__(self) -> None:
        self.values: Beliefs[Held] = Beliefs()
        """By access path: "x", "self.table"."""
        self.conditions: tuple[str, ...] = ()
        """What is known to hold here."""
        self.ambient: frozenset[Place] | None = None
        """Where factories without a device put things inside of `with torch.device(...)`; None
        outside of any."""

    def copy(self) -> Environment:
        made = Environment()
        made.values = self.values.copy()
        made.conditions = self.conditions
        made.ambient = self.ambient
        return made
