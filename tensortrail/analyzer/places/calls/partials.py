"""Factories that are given some of their arguments beforehand."""

from __future__ import annotations

import ast
from dataclasses import replace

from tensortrail.analyzer.places.calls.called import Called
from tensortrail.analyzer.places.functions.world import World
from tensortrail.analyzer.places.held.environment import Environment
from tensortrail.analyzer.places.libraries.library import factories


def is_partial_factory(world: World, call: ast.Call) -> bool:
    """`partial(torch.tensor, dtype=torch.float32)`: what makes a tensor when it is called."""
    named = world.qualified(call.func) == "functools.partial" and len(call.args) == 1
    return named and world.qualified(call.args[0]) in factories()


def by_partial(world: World, called: Called, env: Environment) -> Called | None:
    """The call of the factory that a call of `to_torch = partial(torch.tensor, ...)` is."""
    func = called.node.func
    held = env.values.get(func.id) if isinstance(func, ast.Name) else None
    partial = held.made if held is not None else None
    if not isinstance(partial, ast.Call) or not is_partial_factory(world, partial):
        return None
    beforehand = {each.arg: each.value for each in partial.keywords if each.arg}
    dotted = world.qualified(partial.args[0])
    return replace(called, dotted=dotted, nodes=beforehand | called.nodes)
