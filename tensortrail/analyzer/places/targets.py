"""What the targets of assignments and loops are bound to."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.analyzer.places.functions.world import World
from tensortrail.analyzer.places.held.elements import element_of
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.meetings import Meetings
from tensortrail.analyzer.places.subscripts import store_item
from tensortrail.rules.places import Held, Place, What, Where


class Targets:
    """Binds targets for what evaluates expressions."""

    world: World
    cls: ast.ClassDef | None
    seen: dict[ast.expr, Held]
    meetings: Meetings

    def value(self, node: ast.expr, env: Environment) -> Held:
        raise NotImplementedError

    def values(self, nodes: Sequence[ast.expr], env: Environment) -> list[Held]:
        return [self.value(each, env) for each in nodes]

    def bind_elements(self, target: ast.expr, source: ast.expr, env: Environment) -> None:
        """What a step of a loop over `source` binds."""
        self.bind(target, element_of(self.value(source, env)), env)

    def bind_members(self, target: ast.expr, value: ast.expr, env: Environment) -> bool:
        """`a, b, c = *x.shape, x.device`: what is written out after the star belongs to the last
        names, and what stands before it to the first. False for any other pair."""
        written = value.elts if isinstance(value, (ast.Tuple, ast.List)) else []
        wanted = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
        stars = [at for at, each in enumerate(written) if isinstance(each, ast.Starred)]
        if len(stars) != 1 or len(wanted) < len(written) - 1:
            return False
        if any(isinstance(each, ast.Starred) for each in wanted):
            return False
        before, after = stars[0], len(written) - stars[0] - 1
        inside = element_of(self.seen[written[before]])
        behind = len(wanted) - after
        for at, each in enumerate(wanted):
            if at < before:
                self.bind(each, self.seen[written[at]], env)
            else:
                held = self.seen[written[at - len(wanted)]] if at >= behind else inside
                self.bind(each, held, env)
        return True

    def bind(self, target: ast.expr, held: Held, env: Environment) -> None:
        if isinstance(target, ast.Name):
            env.values[target.id] = held
            self.seen[target] = held
        elif isinstance(target, (ast.Tuple, ast.List)):
            for index, each in enumerate(target.elts):
                inner = each.value if isinstance(each, ast.Starred) else each
                self.bind(inner, _part(held, index, len(target.elts)), env)
        elif isinstance(target, ast.Attribute):
            base = self.value(target.value, env)
            if base.what is What.SELF:
                env.values[f"self.{target.attr}"] = held
            self.seen[target] = held
        elif isinstance(target, ast.Subscript):
            store_item(self, target, held, env)


def _part(held: Held, index: int, count: int) -> Held:
    if held.parts is not None and not held.keys and len(held.parts) == count:
        return held.parts[index]
    if held.what is What.UNKNOWN and held.path.isidentifier() and held.places:  # `x, y = batch`
        path = f"{held.path}[{index}]"
        if all(each.where is Where.OF for each in held.places):
            return Held(What.UNKNOWN, frozenset({Place(Where.OF, path)}), path=path)
    return element_of(held)
