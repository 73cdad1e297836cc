"""A call with its arguments evaluated, and the device that it is given."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace

from tensortrail.analyzer.places.calls.evaluating import Evaluating
from tensortrail.analyzer.places.held.devices import places_on
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.held.joins import member
from tensortrail.rules.places import Held, Place, What, Where


@dataclass(slots=True)
class Called:
    """A call with its arguments evaluated."""

    node: ast.Call
    dotted: str
    args: list[Held]
    named: dict[str, Held]
    nodes: dict[str, ast.expr]
    unpacks: bool
    """`*` or `**` may give any argument."""
    unpacked: list[Held]
    """What `**` unpacks."""

    @property
    def first(self) -> Held | None:
        return self.args[0] if self.args else None

    @property
    def last_name(self) -> str:
        func = self.node.func
        return func.attr if isinstance(func, ast.Attribute) else self.dotted.rpartition(".")[2]

    @property
    def draws_around_tensors(self) -> bool:
        """`torch.normal(mean, std)` lies where these do; with a size it is made anew."""
        return self.dotted == "torch.normal" and "size" not in self.nodes and len(self.args) < 3

    @property
    def operands(self) -> list[Held]:
        given = [*self.args, *(held for key, held in self.named.items() if key not in _NO_OPERAND)]
        return [each for held in given for each in _opened(held)]


_NO_OPERAND = frozenset("dim axis out generator device dtype output_size alpha beta".split())
"""Arguments that need not lie beside the others; of `alpha` and `beta` torch reads the numbers."""


def _opened(held: Held) -> list[Held]:
    if held.what is not What.BOX:
        return [held]
    if held.parts is not None:
        return list(held.parts)
    each = member(held)
    unsure = any(place.given or place.where is Where.UNKNOWN for place in each.places)
    if len(each.places) > 1 and not unsure:
        return [each.at(place) for place in each.in_order]  # members that lie apart
    return [each]


def evaluated(world_of: Evaluating, node: ast.Call, env: Environment) -> Called:
    args = world_of.values(node.args, env)
    named = {each.arg: world_of.value(each.value, env) for each in node.keywords if each.arg}
    unpacked = [world_of.value(each.value, env) for each in node.keywords if each.arg is None]
    starred = any(isinstance(each, ast.Starred) for each in node.args)
    made_first = isinstance(node.func, ast.Call)  # `nn.MSELoss()(x, y)` makes no loss of these
    return Called(
        node,
        "" if made_first else world_of.world.qualified(node.func),
        args,
        named,
        {each.arg: each.value for each in node.keywords if each.arg},
        starred or bool(unpacked),
        unpacked,
    )


def device_given(world_of: Evaluating, called: Called, env: Environment) -> frozenset[Place] | None:
    """Where the `device` argument puts the result; None if there is no such argument."""
    node = called.nodes.get("device")
    return device_places(world_of, node, called.node, env) if node is not None else None


def device_places(
    world_of: Evaluating, node: ast.expr, by: ast.AST, env: Environment
) -> frozenset[Place]:
    dotted = world_of.world.qualified(node) if isinstance(node, ast.Call) else ""
    found = places_on(node, by, evaluator(world_of, env), dotted)
    return frozenset(replace(each, by=by) for each in found)


def evaluator(world_of: Evaluating, env: Environment) -> Callable[[ast.expr], Held]:
    return lambda node: world_of.seen.get(node) or world_of.value(node, env)
