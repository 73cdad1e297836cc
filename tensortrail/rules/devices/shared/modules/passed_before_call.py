"""Modules that another function is given before they are called, and that it may move."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.rules.devices.shared.modules.moves_of_models import bare
from tensortrail.rules.places import Meeting
from tensortrail.rules.shared.moves import MODULE_MOVES
from tensortrail.rules.shared.objects import called, is_self, position, receiver
from tensortrail.rules.view import Module

_PLACE = ("accelerate.", "torch.distributed.")
"""Libraries whose functions, given a module, put its parameters where they are computed with."""
_PARAMETERS = frozenset({"parameters", "named_parameters", "buffers", "named_buffers"})

_SPREADS = frozenset({"parallelize", "deparallelize"})
"""Methods of transformers that place the layers themselves."""


def is_moved_by_another(module: Module, made: ast.AST, meeting: Meeting) -> bool:
    """`quantize(model, device=device)`, `prepare(model)`: a function that is not known, or is known
    to move it, takes the module before it is called; or its parameters are replaced one by one."""
    stored = module.statement_of(made)
    kept = isinstance(stored, ast.Assign) and bare(stored.value) is made
    targets = stored.targets if isinstance(stored, ast.Assign) and kept else []
    names = {each.id for each in targets if isinstance(each, ast.Name)}
    here = [
        each for each in module.later(made, ast.Call) if position(each) < position(meeting.node)
    ]
    return any(
        _is_for_its_parameters(module, each, names)
        or _moves_itself(module, each, names)
        or (_takes(each, names) and (_may_move(module, each) or _works_with_it(module, each, here)))
        for each in here
    )


def _is_for_its_parameters(module: Module, call: ast.Call, names: set[str]) -> bool:
    """`net.weight = nn.Parameter(...)`, `net.weight.data = ...cuda()`, and the same for each of
    `net.parameters()`."""
    owner: ast.AST | None = None
    parent = module.parent(call)
    if isinstance(parent, (ast.For, ast.AsyncFor)) and called(call) in _PARAMETERS:
        owner = receiver(call) if any(_sets(each) for each in parent.body) else None
    elif isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Attribute):
        owner = parent.targets[0]
        while isinstance(owner, ast.Attribute):
            owner = owner.value
    return isinstance(owner, ast.Name) and owner.id in names


def _moves_itself(module: Module, call: ast.Call, names: set[str]) -> bool:
    """`model.load_checkpoint(...)`, a method of this file that moves its own module, and
    `model.parallelize()` of transformers."""
    owner = receiver(call)
    if not isinstance(owner, ast.Name) or owner.id not in names:
        return False
    return called(call) in _SPREADS or any(
        is_self(receiver(move) or move)
        for method in module.nodes(ast.FunctionDef)
        if method.name == called(call)
        for move in module.calls(*MODULE_MOVES, inside=method)
    )


def _sets(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute)


def _takes(call: ast.Call, names: set[str]) -> bool:
    given = (*call.args, *(each.value for each in call.keywords))
    return any(isinstance(each, ast.Name) and each.id in names for each in given)


def _works_with_it(module: Module, call: ast.Call, here: Sequence[ast.Call]) -> bool:
    """`trainer = Trainer(model)`, and then `trainer.train()`, of a library."""
    bound = module.parent(call)
    name = bound.targets[0] if isinstance(bound, ast.Assign) else None
    library = module.qualified(call.func)
    if not isinstance(name, ast.Name) or "." not in library or library.startswith("torch."):
        return False
    if module.function_facts(call) is not None or module.is_of_project(call):
        return False
    workers = (receiver(each) for each in here if each.lineno > call.lineno)
    return any(isinstance(each, ast.Name) and each.id == name.id for each in workers)


def _may_move(module: Module, call: ast.Call) -> bool:
    facts = module.function_facts(call)
    name = module.qualified(call.func)
    if name.startswith(_PLACE):
        return True
    if facts is not None:
        return bool(facts.moves)
    if any("device" in (each.arg or "") for each in call.keywords):
        return True
    is_dropped = isinstance(module.parent(call), ast.Expr)
    return is_dropped and "." in name and not name.startswith("torch.")
