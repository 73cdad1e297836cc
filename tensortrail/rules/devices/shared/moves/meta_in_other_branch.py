"""Moves of what another branch of the same `if` tests for meta before it moves it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.devices.shared.in_runs.on_meta import is_off_meta
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import receiver
from tensortrail.rules.view import Module


def untested_moves(module: Module) -> Iterator[tuple[ast.Call, ast.expr]]:
    """A move in one branch, with the test of another branch that the subject is not on meta."""
    for first in module.nodes(ast.If):
        above = module.parent(first)
        if isinstance(above, ast.If) and above.orelse == [first]:
            continue
        branches = list(_branches(first))
        for tested in branches:
            for test, subject in _off_meta(module, tested):
                if not _moves_it(module, tested, subject):
                    continue
                for other in branches:
                    if other is not tested:
                        yield from ((each, test) for each in _untested(module, other, subject))


def _branches(node: ast.If) -> Iterator[ast.If]:
    """The `if` and each `elif` after it."""
    yield node
    match node.orelse:
        case [ast.If() as other]:
            yield from _branches(other)


def _off_meta(module: Module, branch: ast.If) -> Iterator[tuple[ast.expr, str]]:
    """What the condition of the branch says not to be on meta, and where it says so."""
    test = branch.test
    atoms = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    for atom in atoms:
        subject = is_off_meta(module, atom)
        if subject:
            yield atom, subject


def _moves_it(module: Module, branch: ast.If, subject: str) -> bool:
    """It, or what it belongs to, is moved in the branch."""
    moved = [each for line in branch.body for each in _moved(module, line)]
    return any(f"{subject}.".startswith(f"{module.text(each)}.") for _, each in moved)


def _untested(module: Module, branch: ast.If, subject: str) -> Iterator[ast.Call]:
    for line in branch.body:
        for call, moved in _moved(module, line):
            if module.text(moved) == subject and not _is_placed(module, call, subject):
                yield call


def _is_placed(module: Module, call: ast.Call, subject: str) -> bool:
    """A condition of the move asks where the subject is: then it is not on meta, or is meant so."""
    asked = [each for each in module.guards_of(call) if each.exact]
    return any(each.mentions(f"{subject}.device", f"{subject}.is_") for each in asked)


def _moved(module: Module, line: ast.stmt) -> Iterator[tuple[ast.Call, ast.expr]]:
    for call in module.calls(*MOVES, inside=line):
        subject = receiver(call)
        if subject is not None:
            yield call, subject
