"""Two calls of a function that are the same but for a device that only one of them is given."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.patterns import pattern
from tensortrail.rules.devices.calls.customs import grouped, named
from tensortrail.rules.shared.objects import called, last_name
from tensortrail.rules.text_of import text_of
from tensortrail.rules.view import FunctionNode, Module

_FILLED = frozenset(f"torch.{name}" for name in ("zeros", "ones", "empty", "full", "rand", "randn"))
"""These take a shape: two of them are as alike as two calls of one, and one beside the other is
its twin whatever the shapes."""
_OF_ANYTHING = frozenset({"as_tensor", "asarray"})
"""These leave a tensor where it is: only two that are written for one use are twins."""
_OF_VALUES = frozenset(
    {
        "tensor",
        "Tensor",
        "to",
        "dict",
        "partial",
        "nested_tensor",
        "as_nested_tensor",
    }
)
"""What these are given may be meant for the CPU; the values say it, not the call."""
_FOLLOWS = pattern(r".*_like|new_\w+|.*open")
_CHOSEN = pattern(
    r"device|cuda|cpu|gpu|meta|mps|isinstance|is_tensor|numpy|\bnp\b|initiali|offload"
)
"""Words of conditions that may be the reason for the difference."""
_ABOUT_DEVICES = pattern(r"device|cuda|cpu|gpu|meta|mps|numpy|\bnp\b|offload")
_ENOUGH = 2
"""Calls of one callee that make a custom."""
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
            return None if "cpu" in text_of(each.value) else each.value
    return None


def _may_differ(module: Module, call: ast.Call) -> bool:
    func = call.func
    name = last_name(func)
    if not name or name in _OF_VALUES or _FOLLOWS.fullmatch(name) or _is_spread(call):
        return False
    if any(each.arg == "pin_memory" for each in call.keywords):
        return False
    first = call.args[0] if call.args else None
    one_at_most = isinstance(first, ast.Constant) and first.value in (0, 1)
    return not one_at_most and not any(
        isinstance(each, ast.ExceptHandler) for each in module.ancestors(call)
    )


def _is_spread(call: ast.Call) -> bool:
    """`*args`; what `**options` hold is seen by the twin, which is given them and a device."""
    return any(isinstance(each, ast.Starred) for each in call.args)


def _callee(module: Module, call: ast.Call) -> str:
    return "" if module.qualified(call.func) in _FILLED else module.text(call.func)


def _pairs(
    module: Module, function: FunctionNode, alike: Sequence[ast.Call]
) -> Iterator[tuple[ast.Call, ast.Call]]:
    given = [each for each in alike if device_of(each) is not None]
    without = [each for each in alike if all(key.arg != "device" for key in each.keywords)]
    if not 0 < len(without) <= len(given):
        return
    alone = len(without) == 1 and _is_custom(module, without[0], given)
    for call in without:
        near = sorted(given, key=lambda each: abs(each.lineno - call.lineno))
        if alone:
            near = [each for each in near if may_be_twins(module, call, each)]
        else:
            near = [each for each in near if _are_twins(module, function, call, each)]
        twin = next(iter(near), None)
        if twin is not None:
            yield call, twin


def _is_custom(module: Module, call: ast.Call, given: Sequence[ast.Call]) -> bool:
    """All others of one callee, two or more, are given the same device: `schedule.start(...)`."""
    devices = [device_of(each) for each in given]
    said = {module.text(each) for each in devices if each is not None}
    if called(call)[:1].isupper() and not _differ_in_places_only(call, given):
        return False
    if module.qualified(call.func).startswith("torch."):
        return False
    if isinstance(call.func, ast.Name) and module.value_of(call.func).origins:
        return False  # it stands for one function here, and for another one there
    return len(given) >= _ENOUGH and len(said) == 1


def _differ_in_places_only(call: ast.Call, others: Sequence[ast.Call]) -> bool:
    """`Blank()`, where the others are `Blank(device=device, dtype=dtype)`."""
    plain = not (call.args or call.keywords)
    said = {each.arg for other in others for each in other.keywords}
    return plain and said <= {"device", "dtype"} and not any(other.args for other in others)


def may_be_twins(module: Module, one: ast.Call, other: ast.Call) -> bool:
    """Nothing about devices decides which of the two is done."""
    if are_parts_of_one(module, one, other) or _says_the_device(module, one, other):
        return False
    spread = {key: module.text(each.value) for call, key in ((one, 1), (other, 2))
              for each in call.keywords if each.arg is None}  # fmt: skip
    asked = conditions_of_one(module, one, other)
    return spread.get(1) == spread.get(2) and not any(map(_ABOUT_DEVICES.search, asked))


def _are_twins(module: Module, function: FunctionNode, one: ast.Call, other: ast.Call) -> bool:
    count, equal = compared(module, one, other)
    if are_parts_of_one(module, one, other) or _says_the_device(module, one, other):
        return False
    same = module.text(one.func) == module.text(other.func)
    apart = are_apart(module, one, other)
    if apart is not None and apart <= 1 and not _callee(module, one) and None not in named(one):
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


def is_moved_there_later(module: Module, call: ast.Call, device: str) -> bool:
    """Later in the function something is moved there: it may be what this call has become."""
    function = module.function_of(call)
    return function is not None and any(
        (call.end_lineno or call.lineno) < each.lineno
        and any(module.text(said) == device for said in each.args[:1])
        for each in module.calls("to", inside=function)
    )
