"""Two calls of a function that are the same but for a device that only one of them is given."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from tensortrail.rules.devices._customs import grouped, may_be_given_anything
from tensortrail.rules.view import FunctionNode, Module

_FILLED = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "full", "rand", "randn"))
"""These take a shape: two of them are as alike as two calls of one, and one beside the other is
its twin whatever the shapes."""
_OF_VALUES = frozenset(
    {
        "tensor",
        "as_tensor",
        "asarray",
        "Tensor",
        "to",
        "dict",
        "partial",
        "nested_tensor",
        "as_nested_tensor",
    }
)
"""What these are given may be meant for the CPU; the values say it, not the call."""
_FOLLOWS = re.compile(r".*_like|new_\w+|.*open")
_CHOSEN = re.compile(
    r"device|cuda|cpu|gpu|meta|mps|isinstance|is_tensor|numpy|\bnp\b|initiali|offload"
)
"""Words of conditions that may be the reason for the difference."""
_NEAR = 2
"""Statements between two calls that are written together."""
Block = tuple[ast.AST, str]


def unlike_their_twins(module: Module) -> Iterator[tuple[ast.Call, ast.Call]]:
    """Calls without a device, with the call of the same function that is given one."""
    given = [each for each in module.nodes(ast.Call) if device_of(each) is not None]
    for function in dict.fromkeys(map(module.function_of, given)):
        if function is None:
            continue
        calls = (each for each in module.nodes(ast.Call, function) if _may_differ(module, each))
        own = [each for each in calls if module.function_of(each) is function]
        for alike in grouped(own, lambda each: _callee(module, each)).values():
            yield from _pairs(module, function, alike)


def device_of(call: ast.Call) -> ast.expr | None:
    """The value that it is given, not a literal and not the CPU."""
    for each in call.keywords:
        if each.arg == "device" and not isinstance(each.value, ast.Constant):
            return None if "cpu" in ast.unparse(each.value) else each.value
    return None


def _may_differ(module: Module, call: ast.Call) -> bool:
    func = call.func
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    if not name or name in _OF_VALUES or _FOLLOWS.fullmatch(name) or may_be_given_anything(call):
        return False
    if any(each.arg == "pin_memory" for each in call.keywords):
        return False
    first = call.args[0] if call.args else None
    one_at_most = isinstance(first, ast.Constant) and first.value in (0, 1)
    return not one_at_most and not any(
        isinstance(each, ast.ExceptHandler) for each in module.ancestors(call)
    )


def _callee(module: Module, call: ast.Call) -> str:
    return "" if module.qualified(call.func) in _FILLED else module.text(call.func)


def _pairs(
    module: Module, function: FunctionNode, alike: Sequence[ast.Call]
) -> Iterator[tuple[ast.Call, ast.Call]]:
    given = [each for each in alike if device_of(each) is not None]
    without = [each for each in alike if all(key.arg != "device" for key in each.keywords)]
    if not 0 < len(without) <= len(given):
        return
    for call in without:
        near = sorted(given, key=lambda each: abs(each.lineno - call.lineno))
        twin = next((each for each in near if _are_twins(module, function, call, each)), None)
        if twin is not None:
            yield call, twin


def _are_twins(module: Module, function: FunctionNode, one: ast.Call, other: ast.Call) -> bool:
    count, equal = _compared(module, one, other)
    if _are_parts_of_one(module, one, other) or _says_the_device(module, one, other):
        return False
    same = module.text(one.func) == module.text(other.func)
    mine, others = _blocks(module, function, one), _blocks(module, function, other)
    here, there = next(iter(mine.items())), next(iter(others.items()))
    apart = abs(here[1] - there[1]) if here[0] == there[0] else None
    if apart is not None and apart <= 1 and not _callee(module, one):
        return True
    if equal < 0:
        return False
    if apart is not None:
        return (apart <= _NEAR and (same or equal > 0)) or (equal > 0 and count > 1)
    if any(_CHOSEN.search(each.text) for call in (one, other) for each in module.guards_of(call)):
        return False
    within = here[0] in others or there[0] in mine
    return (within and equal > 0 and count > 1) or (same and equal >= max(1, count - 1))


def _compared(module: Module, one: ast.Call, other: ast.Call) -> tuple[int, int]:
    """How many arguments they take but the device, and how many of these are equal; less than
    none if they take none or others."""
    mine = {each.arg: each.value for each in one.keywords}
    others = {each.arg: each.value for each in other.keywords if each.arg != "device"}
    if mine.keys() != others.keys() or len(one.args) != len(other.args):
        return 0, -1
    pairs = [(mine[name], others[name]) for name in mine]
    pairs += zip(one.args, other.args, strict=True)
    if not pairs:
        return 0, -1
    return len(pairs), sum(module.text(left) == module.text(right) for left, right in pairs)


def _are_parts_of_one(module: Module, one: ast.Call, other: ast.Call) -> bool:
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


def is_moved_there_later(module: Module, call: ast.Call, device: str) -> bool:
    """Later in the function something is moved there: it may be what this call has become."""
    function = module.function_of(call)
    return function is not None and any(
        (call.end_lineno or call.lineno) < each.lineno
        and any(module.text(said) == device for said in each.args[:1])
        for each in module.calls("to", inside=function)
    )
