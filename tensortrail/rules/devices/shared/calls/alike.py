"""Whether two calls of a function are twins: done together, alike and on the same conditions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.patterns import pattern
from tensortrail.rules.devices.shared.calls.customs import named
from tensortrail.rules.shared.objects import called
from tensortrail.rules.text_of import text_of
from tensortrail.rules.view import FunctionNode, Module

_FILLED = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "full", "rand", "randn"))
"""These take a shape: two of them are as alike as two calls of one, and one beside the other is
its twin whatever the shapes."""
_OF_ANYTHING = frozenset({"as_tensor", "asarray"})
"""These leave a tensor where it is: only two that are written for one use are twins."""
_CHOSEN = pattern(
    r"device|cuda|cpu|gpu|meta|mps|isinstance|is_tensor|numpy|\bnp\b|initiali|offload"
)
"""Words of conditions that may be the reason for the difference."""
_ABOUT_DEVICES = pattern(r"device|cuda|cpu|gpu|meta|mps|numpy|\bnp\b|offload")
_NEAR = 2
"""Statements between two calls that are written together."""
Block = tuple[ast.AST, str]


def device_of(call: ast.Call) -> ast.expr | None:
    """The value that it is given, not a literal and not the CPU."""
    for each in call.keywords:
        if each.arg == "device" and not isinstance(each.value, ast.Constant):
            return None if "cpu" in text_of(each.value) else each.value
    return None


def callee_of(module: Module, call: ast.Call) -> str:
    return "" if module.qualified(call.func) in _FILLED else module.text(call.func)


def may_be_twins(module: Module, one: ast.Call, other: ast.Call) -> bool:
    """Nothing about devices decides which of the two is done."""
    if are_parts_of_one(module, one, other) or _says_the_device(module, one, other):
        return False
    spread = {key: module.text(each.value) for call, key in ((one, 1), (other, 2))
              for each in call.keywords if each.arg is None}  # fmt: skip
    asked = conditions_of_one(module, one, other)
    return spread.get(1) == spread.get(2) and not any(map(_ABOUT_DEVICES.search, asked))


def are_twins(module: Module, function: FunctionNode, one: ast.Call, other: ast.Call) -> bool:
    count, equal = compared(module, one, other)
    if are_parts_of_one(module, one, other) or _says_the_device(module, one, other):
        return False
    same = module.text(one.func) == module.text(other.func)
    apart = are_apart(module, one, other)
    if apart is not None and apart <= 1 and not callee_of(module, one) and None not in named(one):
        return True
    if equal < 0 or (called(one) in _OF_ANYTHING and not _are_for_one_use(module, one, other)):
        return False
    if apart is not None:
        return (apart <= _NEAR and (same or equal > 0)) or (equal > 0 and count > 1)
    if any(map(_CHOSEN.search, conditions_of_one(module, one, other))):
        return False
    mine, others = _blocks(module, function, one), _blocks(module, function, other)
    within = next(iter(mine)) in others or next(iter(others)) in mine
    return (within and equal > 0 and count > 1) or (same and equal >= max(1, count - 1))


def conditions_of_one(module: Module, one: ast.Call, other: ast.Call) -> Iterator[str]:
    """What is asked on the way to one of the two, and not on the way to the other."""
    asked = [{each.text for each in module.guards_of(call)} for call in (one, other)]
    yield from asked[0] ^ asked[1]


def _are_for_one_use(module: Module, one: ast.Call, other: ast.Call) -> bool:
    """Both are given the same type and more, and stand in one literal or call, or in neighbours."""
    apart = abs(module.statement_of(one).lineno - module.statement_of(other).lineno)
    return bool(named(one)) and apart <= _NEAR


def compared(
    module: Module, one: ast.Call, other: ast.Call, name: str = "device"
) -> tuple[int, int]:
    """How many arguments they take but the one of that name, and how many of these are equal; less
    than none if they take none or others."""
    mine = {each.arg: each.value for each in one.keywords}
    others = {each.arg: each.value for each in other.keywords if each.arg != name}
    if mine.keys() != others.keys() or len(one.args) != len(other.args):
        return 0, -1
    pairs = [(mine[name], others[name]) for name in mine]
    pairs += zip(one.args, other.args, strict=True)
    if not pairs or (None in mine and module.text(mine[None]) != module.text(others[None])):
        return 0, -1
    return len(pairs), sum(module.text(left) == module.text(right) for left, right in pairs)


def are_parts_of_one(module: Module, one: ast.Call, other: ast.Call) -> bool:
    """One is an argument of the other, or they are the two answers of a condition."""
    around = [one, *module.ancestors(one)]
    shared = next((each for each in (other, *module.ancestors(other)) if each in around), None)
    return shared in (one, other) or isinstance(shared, (ast.IfExp, ast.BoolOp))


def _says_the_device(module: Module, one: ast.Call, other: ast.Call) -> bool:
    """`a = made(x)`, `b = made(y, device=a.device)`: the first is free to choose."""
    device = device_of(other)
    bound = module.statement_of(one)
    targets = {each.id for each in module.nodes(ast.Name, bound) if isinstance(each.ctx, ast.Store)}
    return device is not None and any(
        isinstance(each, ast.Name) and each.id in targets for each in ast.walk(device)
    )


def are_apart(module: Module, one: ast.Call, other: ast.Call) -> int | None:
    """How many statements, in one block; None in different ones."""
    function = module.function_of(one)
    if function is None:
        return None
    here, there = (next(iter(_blocks(module, function, each).items())) for each in (one, other))
    return abs(here[1] - there[1]) if here[0] == there[0] else None


def _blocks(module: Module, function: FunctionNode, call: ast.Call) -> dict[Block, int]:
    """The blocks that the call stands in, innermost first, with the position in each."""
    found: dict[Block, int] = {}
    below: ast.AST = module.statement_of(call)
    for above in module.ancestors(below):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(above, name, None)
            if isinstance(block, list) and below in block:
                found[above, name] = block.index(below)
        if above is function:
            return found
        below = above
    return found
