"""What a training loop keeps of its best round, and whether it trains on afterwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.shards._snapshots import Snapshot, is_shallow, snapshot_of
from tensortrail.rules.shared.objects import called, given, name_of, receiver, within
from tensortrail.rules.shared.optimizers import is_optimizer, model_behind

Loop = ast.For | ast.While
_LOOPS = (ast.For, ast.While)


def kept_state(module: Module, value: ast.expr) -> Snapshot | None:
    """The state dict that is kept, by itself or among other things; or the model itself."""
    if isinstance(value, ast.Name):
        return Snapshot(value.id) if value.id in module.once(_trained, module.top) else None
    members = value.values if isinstance(value, ast.Dict) else [value]
    return next(filter(None, (snapshot_of(module, each) for each in members)), None)


def _trained(module: Module, file: ast.AST) -> frozenset[str]:
    """The models of the parameters of which the file makes an optimizer of torch."""
    made = (each for each in module.nodes(ast.Call) if is_optimizer(module, each))
    return frozenset(model_behind(module, each) for each in made)


def round_kept(
    module: Module, assign: ast.Assign, name: str, owner: str
) -> tuple[ast.Call, ast.Name] | None:
    """What trains the same model in the rounds that follow, and the use behind the loop; None
    unless the state is kept under a condition, as that of a round among others."""
    for loop in _loops_around(module, assign):
        if _is_made_in(module, loop, owner.partition(".")[0]):
            return None
        if not _is_conditional(module, assign, loop) or _leaves(module, assign):
            continue
        use = _use_behind(module, loop, name)
        if use is None:
            continue
        training = next(_trainings(module, loop, owner), None)
        if training is None and _is_restored(module, use, owner):
            training = next(_given_to(module, loop, owner), None)
        if training is not None:
            return training, use
    return None


def _is_optimizer(module: Module, node: ast.expr) -> bool:
    """By what it is made of, or because the file zeroes gradients with it."""
    origins = (node, *module.value_of(node).origins)
    made = (each for each in origins if isinstance(each, ast.Call))
    if any(module.qualified(each.func).startswith("torch.optim.") for each in made):
        return True
    text = module.text(node)
    owners = (receiver(each) for each in module.calls("zero_grad"))
    return any(owner is not None and module.text(owner) == text for owner in owners)


def _loops_around(module: Module, node: ast.AST) -> Iterator[Loop]:
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        if isinstance(up, _LOOPS):
            yield up


def _is_conditional(module: Module, assign: ast.Assign, loop: Loop) -> bool:
    tests = [each.test for each in module.guards_of(assign)]
    own = loop.test if isinstance(loop, ast.While) else loop.iter
    return any(within(each, loop, module) and not within(each, own, module) for each in tests)


def _leaves(module: Module, assign: ast.Assign) -> bool:
    """The loop ends where it is kept: nothing trains on."""
    around = module.parent(assign)
    for block in (getattr(around, "body", []), getattr(around, "orelse", [])):
        if assign in block:
            after = block[block.index(assign) :]
            return any(isinstance(each, (ast.Break, ast.Return, ast.Raise)) for each in after)
    return False


def is_filled(module: Module, assign: ast.Assign, name: str) -> bool:
    """Bound to something else after it, a copy most likely."""
    function, at = module.function_of(assign), (assign.lineno, assign.col_offset)
    return any(
        (each.lineno, each.col_offset) > at and module.text(each.targets[0]) == name
        for each in module.nodes(ast.Assign, function)
        if each is not assign and not is_shallow(module, each.value, name)
    )


def _trainings(module: Module, loop: Loop, owner: str) -> Iterator[ast.Call]:
    """A step after a backward pass, or a call that is given the model and an optimizer."""
    goes_back = any(True for _ in module.calls("backward", inside=loop))
    for call in module.nodes(ast.Call, loop):
        if goes_back and called(call) == "step":
            yield call
        passed = given(call)
        if any(name_of(module, each) == owner for each in passed) and any(
            isinstance(each, (ast.Name, ast.Attribute)) and _is_optimizer(module, each)
            for each in passed
        ):
            yield call


def _is_restored(module: Module, use: ast.Name, owner: str) -> bool:
    """`model.load_state_dict(best)`: the model has changed since, or this would do nothing."""
    call = module.parent(use)
    while isinstance(call, (ast.Subscript, ast.keyword)):  # `best["model"]`
        call = module.parent(call)
    if not isinstance(call, ast.Call) or called(call) != "load_state_dict":
        return False
    loaded = receiver(call)
    return loaded is not None and name_of(module, loaded) == owner


def _given_to(module: Module, loop: Loop, owner: str) -> Iterator[ast.Call]:
    """Calls that may change the model: they are given it, or the object that keeps it."""
    holder = owner.rpartition(".")[0]
    for call in module.nodes(ast.Call, loop):
        on = receiver(call)
        is_method = bool(holder) and on is not None and name_of(module, on) == holder
        if is_method or any(name_of(module, each) == owner for each in given(call)):
            yield call


def _is_made_in(module: Module, loop: Loop, name: str) -> bool:
    """Every round has a model of its own."""
    return any(
        each.id == name and isinstance(each.ctx, ast.Store) for each in module.nodes(ast.Name, loop)
    )


def _use_behind(module: Module, loop: Loop, name: str) -> ast.Name | None:
    """Where the name is read after the loop, not bound anew before."""
    for use in module.later(loop, ast.Name):
        if use.id == name and not within(use, loop, module):
            return use if isinstance(use.ctx, ast.Load) else None
    return None
