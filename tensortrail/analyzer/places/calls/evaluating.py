"""What evaluates an expression, as calls and methods see it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Protocol

from tensortrail.analyzer.places.functions.world import World
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.meetings import Meetings
from tensortrail.rules.places import Held


class Evaluating(Protocol):
    world: World
    cls: ast.ClassDef | None
    seen: dict[ast.expr, Held]
    meetings: Meetings

    def value(self, node: ast.expr, env: Environment) -> Held: ...
    def values(self, nodes: Sequence[ast.expr], env: Environment) -> list[Held]: ...
