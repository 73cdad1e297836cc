"""Calls under a condition on the rank that the other processes answer, or need not."""

from __future__ import annotations

import ast

from tensortrail.rules import Guard, Module
from tensortrail.rules.shards._collectives_inside import collectives_inside
from tensortrail.rules.shards._of_all_ranks import made_by_all
from tensortrail.rules.shared.callees import asked_of_callee
from tensortrail.rules.shared.functions import outermost_function
from tensortrail.rules.shared.objects import called, keyword, last_name
from tensortrail.rules.shared.ranks import asks_for_rank, is_rank, mentions_rank


def is_answered_elsewhere(module: Module, call: ast.Call, guard: Guard) -> bool:
    """Another function of the file makes the same call where the same test goes the other way, as
    the loop of the workers does, which may ask for the rank in other words."""
    test = _atom(module, guard.test, not guard.holds)
    asked = _asked(module, guard.test, not guard.holds)
    return any(
        _atom(module, around.test, around.holds) == test
        or (_asked(module, around.test, around.holds) == asked and _waits_for_more(module, each))
        for each in module.calls(called(call))
        if module.text(each.func) == module.text(call.func)
        for around in module.guards_of(each)
    )


def _waits_for_more(module: Module, call: ast.Call) -> bool:
    """The worker's loop, which goes on until it is told to end."""
    return any(isinstance(each, ast.While) for each in module.ancestors(call))


def is_answered_by_a_worker(module: Module, call: ast.Call) -> bool:
    """What other processes run makes the same call: the loop of another function, which goes on
    until it is told to end, or what a process is started with. It receives what this call sends,
    or calls the same function of the project."""
    function, sent = module.function_of(call), _sender(module, call)
    is_collective = any(each is call for each in made_by_all(module))
    return (sent is not None or not is_collective) and any(
        (_waits_for_more(module, each) or _is_in_a_process(module, each))
        and module.function_of(each) is not function
        and _sender(module, each) == sent
        and not any(asks_for_rank(module, guard.test) for guard in module.guards_of(each))
        for each in module.calls(called(call))
    )


def _is_in_a_process(module: Module, call: ast.Call) -> bool:
    """The function around is what a process is started with: `Process(target=self.work)`."""
    function = module.function_of(call)
    targets = (keyword(each, "target") for each in module.calls("Process"))
    return function is not None and function.name in map(last_name, targets)


def _sender(module: Module, call: ast.Call) -> object:
    """The process that a broadcast is sent from, as written."""
    sender = module.argument(call, 1, "src") if "broadcast" in called(call) else None
    return sender.value if isinstance(sender, ast.Constant) else None


def is_answered_by_callee(module: Module, call: ast.Call, guard: Guard) -> bool:
    """The other processes call a function or method of the project that makes the same call:
    `else: model.serve_others()`."""
    test = _atom(module, guard.test, not guard.holds)
    return any(
        _makes(module, each, called(call))
        for each in module.nodes(ast.Call, outermost_function(module, call))
        for around in module.guards_of(each)
        if _atom(module, around.test, around.holds) == test
    )


def _makes(module: Module, call: ast.Call, name: str) -> bool:
    made = asked_of_callee(module, call, _made_inside) or frozenset()
    return name in made | collectives_inside(module, call)


def _made_inside(module: Module, function: ast.AST) -> frozenset[str]:
    own = (each for each in made_by_all(module) if module.function_of(each) is function)
    return frozenset(map(called, own))


def only_receives(module: Module, call: ast.Call, guard: Guard) -> bool:
    """A broadcast from process 0, by the others: where it sends is written elsewhere."""
    sender = module.argument(call, 1, "src")
    others = {("==", False), ("!=", True)}
    asked = guard.test
    return (
        isinstance(sender, ast.Constant)
        and isinstance(asked, ast.Compare)
        and ast.unparse(asked.comparators[0]) == str(sender.value)
        and (_SIGNS.get(type(asked.ops[0]), ""), guard.holds) in others
    )


_SIGNS: dict[type[ast.cmpop], str] = {ast.Eq: "==", ast.NotEq: "!="}


def ends_in_an_error(module: Module, call: ast.Call, guard: Guard) -> bool:
    """Processes that do not come to the call raise: the whole job ends, and nobody waits long."""
    if any(isinstance(each, ast.Assert) for each in module.ancestors(guard.test)):
        return True
    test = guard.test
    parts = test.values if isinstance(test, ast.BoolOp) else [test]
    asked = {_atom(module, each, not guard.holds) for each in parts}
    return any(
        isinstance(branch.body[-1], ast.Raise)
        and asked <= {(module.text(each.test), each.holds) for each in branch.guards}
        for branch in module.branches(module.function_of(call))
    )


def _atom(module: Module, test: ast.expr, holds: bool) -> tuple[str, bool]:
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, holds = test.operand, not holds
    return module.text(test), holds


def _asked(module: Module, test: ast.expr, holds: bool) -> tuple[str, bool]:
    """A comparison with a rank as one that asks `rank == 0`, as `self.rank != 0` does too."""
    if isinstance(test, ast.Compare) and is_rank(module, test.left) and len(test.ops) == 1:
        sign = _SIGNS.get(type(test.ops[0]))
        if sign is not None:
            return f"rank == {module.text(test.comparators[0])}", holds == (sign == "==")
    return _atom(module, test, holds)


def is_in_another_case(module: Module, call: ast.Call, others: list[ast.Call]) -> bool:
    """The same call stands in another `case` of the same `match`."""
    own = [each for each in module.ancestors(call) if isinstance(each, ast.match_case)]
    matches = {module.parent(each) for each in own}
    return any(
        up not in own and module.parent(up) in matches
        for other in others
        for up in module.ancestors(other)
        if isinstance(up, ast.match_case)
    )


def answers_otherwise(module: Module, call: ast.Call, guard: Guard) -> bool:
    """The same call stands under another condition about the rank."""
    return any(
        (asks_for_rank(module, each.test) or mentions_rank(module, each.test))
        and (each.holds != guard.holds or module.text(each.test) != module.text(guard.test))
        for each in module.guards_of(call)
    )
