"""Collectives that a call comes to in the functions of the project."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tensortrail.patterns import pattern
from tensortrail.rules import Guard, Module
from tensortrail.rules.shards._of_all_ranks import WAITS_ALWAYS, is_of_accelerator, made_by_all
from tensortrail.rules.shared.callees import asked_of_callee
from tensortrail.rules.shared.functions import called_here, outermost_function
from tensortrail.rules.shared.objects import called, calls_in
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.shared.ranks import asks_for_rank, may_be_about_ranks, mentions_rank
from tensortrail.rules.words import Branch

_OF_ANY_RUN = pattern(r"is_initialized|is_available|world_size|num_processes|is_distributed")
"""What is asked only to tell a run of several processes from one of a single process."""


def come_to_collectives(module: Module) -> Iterator[tuple[ast.Call, frozenset[str]]]:
    """Calls under a condition on the rank whose function makes collectives, unless the other
    processes make one of these too."""
    seen: set[ast.Call] = set()
    for branch in _branches(module):
        if _is_about_ranks(module, branch):
            for call in (each for part in branch.body for each in calls_in(module, part)):
                inside = frozenset[str]() if call in seen else collectives_inside(module, call)
                seen.add(call)
                if inside and not _others_join(module, call, inside):
                    yield call, inside


def _branches(module: Module) -> Iterator[Branch]:
    """Of the functions in which a condition may be about ranks: only these are followed."""
    asked: list[tuple[ast.stmt, ast.expr]] = [(each, each.test) for each in module.nodes(ast.If)]
    asked += [(each, each.subject) for each in module.nodes(ast.Match)]
    functions = dict.fromkeys(
        outermost_function(module, statement)
        for statement, test in asked
        if may_be_about_ranks(module, test)
    )
    for function in (None,) if None in functions else functions:
        yield from module.branches(function)


def _is_about_ranks(module: Module, branch: Branch) -> bool:
    return any(module.once(asks_for_rank, each.test) for each in branch.guards)


def _others_join(module: Module, call: ast.Call, inside: frozenset[str]) -> bool:
    """A call under another condition on the rank, or the other answer to the same, comes to one of
    these collectives."""
    own = _asked(module, call)
    around = module.class_of(call) or outermost_function(module, call)
    for other in module.nodes(ast.Call, around):  # `__exit__` may answer `__enter__`
        asked = _asked(module, other)
        if asked - own and inside & (collectives_inside(module, other) | {called(other)}):
            return True
    return False


def _asked(module: Module, call: ast.Call) -> frozenset[tuple[str, bool]]:
    """The conditions on the rank before it."""
    return frozenset(
        (module.text(each.test), each.holds)
        for each in module.guards_of(call)
        if module.once(asks_for_rank, each.test) or mentions_rank(module, each.test)
    )


def collectives_inside(module: Module, call: ast.Call) -> frozenset[str]:
    """Those that the called function makes whenever it runs in one of several processes."""
    return asked_of_callee(module, call, _made) or frozenset()


def _made(module: Module, function: ast.AST) -> frozenset[str]:
    """By itself, or by a function that it calls."""
    found = _made_itself(module, function)
    if not found:
        for call in _always(module, module.nodes(ast.Call, function), function):
            found |= asked_of_callee(module, call, _made_itself) or frozenset()
    return found


def _made_itself(module: Module, function: ast.AST) -> frozenset[str]:
    joint = (each for each in made_by_all(module) if _waits_always(module, each))
    return frozenset(map(called, _always(module, joint, function)))


def _waits_always(module: Module, call: ast.Call) -> bool:
    """Whatever the run is made of: some methods of an Accelerator do with sharded models only."""
    return called(call) in WAITS_ALWAYS or not is_of_accelerator(module, call)


def _always(module: Module, calls: Iterable[ast.Call], function: ast.AST) -> Iterator[ast.Call]:
    for call in calls:
        if module.function_of(call) is function and all(
            _holds_in_any_run(module, each) for each in module.guards_of(call)
        ):
            yield call


def _holds_in_any_run(module: Module, guard: Guard) -> bool:
    test = behind(module, guard.test)
    asked = (called_here(module, each) for each in calls_in(module, test))
    texts = [module.text(each) for each in (test, *asked) if each is not None]
    return any(_OF_ANY_RUN.search(each) for each in texts)
