"""Files that are loaded where they were saved: after training in the same function, or where a GPU
is; and which devices are GPUs that are written out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.rules.devices.shared.named.named_gpus import is_cuda_literal
from tensortrail.rules.shared.moves import named_device
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.view import Module

_CURRENT = "torch.cuda.current_device"
_TRAINERS = ("train", "fit", "train_model")
_TRAINS = frozenset({"backward", "step"})


def follows_training(module: Module, call: ast.Call) -> bool:
    """A loop above it in the function trains, or a call does on each path that leads here: what it
    loads is the best round of that training."""
    function = module.function_of(call)
    if function is None:
        return False
    known = {(each.text, each.holds) for each in module.guards_of(call)}
    for each in module.calls(*_TRAINERS, inside=function):
        before = each.lineno < call.lineno and len(each.args) + len(each.keywords) > 1
        if before and known.issuperset((one.text, one.holds) for one in module.guards_of(each)):
            return True
    return any(
        each.end_lineno is not None
        and each.end_lineno < call.lineno
        and module.function_of(each) is function
        and _trains(module, each)
        for kind in (ast.For, ast.While)
        for each in module.nodes(kind, function)
    )


def _trains(module: Module, loop: ast.AST) -> bool:
    found = {called(each) for each in module.calls(*_TRAINS, inside=loop) if receiver(each)}
    return found >= _TRAINS


def is_where_a_gpu_is(module: Module, call: ast.Call) -> bool:
    """`if torch.cuda.is_available(): model.load_state_dict(torch.load(path))`."""
    beside = _is_beside_one_for_the_cpu(module, call) or _is_chosen_by_device(module, call)
    return beside or any(
        guard.holds
        and guard.exact
        and isinstance(guard.test, ast.Call)
        and module.qualified(guard.test.func) == "torch.cuda.is_available"
        for guard in module.guards_of(call)
    )


def _is_beside_one_for_the_cpu(module: Module, call: ast.Call) -> bool:
    """`torch.load(path) if on_gpu else torch.load(path, map_location="cpu")`, also written as
    branches of an `if`."""
    child: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, ast.If) and child in (*up.body, *up.orelse):
            beside: list[ast.AST] = [*(up.orelse if child in up.body else up.body)]
        elif isinstance(up, ast.IfExp) and child is not up.test:
            beside = [up.orelse if child is up.body else up.body]
        else:
            beside = []
        loads = (each for one in beside for each in module.calls("torch.load", inside=one))
        if any(_takes_to_the_cpu(module, each, call) for each in loads):
            return True
        child = up
    return False


def _is_chosen_by_device(module: Module, call: ast.Call) -> bool:
    """`if device == "cpu": torch.jit.load(one)`, and another file in the other branch."""
    for up in module.ancestors(call):
        if isinstance(up, ast.If) and up.orelse and _names_a_kind(module, up.test):
            opened = [
                {module.text(each) for each in _files(module, part)}
                for part in (up.body, up.orelse)
            ]
            return all(opened) and opened[0].isdisjoint(opened[1])
    return False


def _names_a_kind(module: Module, test: ast.expr) -> bool:
    """It compares something with `"cpu"` or `"cuda"`."""
    if not isinstance(test, ast.Compare):
        return False
    said = [named_device(module, each) for each in (test.left, *test.comparators)]
    return any(module.value_of(each).constant in ("cpu", "cuda") for each in said)


def _files(module: Module, block: Sequence[ast.stmt]) -> Iterator[ast.expr]:
    """What the statements load."""
    for each in block:
        for load in module.calls("torch.load", "torch.jit.load", inside=each):
            yield from load.args[:1]


def _takes_to_the_cpu(module: Module, load: ast.Call, other: ast.Call) -> bool:
    """It opens the same file."""
    location = module.argument(load, 1, "map_location")
    same = [module.text(each) for each in load.args[:1] if each is not location]
    if location is None or same != [module.text(each) for each in other.args[:1]]:
        return False
    return module.value_of(named_device(module, location)).constant == "cpu"


def with_its_key(module: Module, call: ast.Call) -> ast.expr:
    """`torch.load(path)["model"]`"""
    loaded: ast.expr = call
    while isinstance(above := module.parent(loaded), ast.Subscript) and above.value is loaded:
        loaded = above
    return loaded


def names_a_gpu(module: Module, said: ast.expr) -> bool:
    if isinstance(said, ast.Call) and module.qualified(said.func) == _CURRENT:
        return next(module.calls("torch.cuda.set_device"), None) is None  # of one process alone
    value = module.value_of(named_device(module, said))
    if isinstance(value.constant, str):
        return value.constant.startswith("cuda")
    return bool(value.origins) and all(is_cuda_literal(module, each) for each in value.origins)
