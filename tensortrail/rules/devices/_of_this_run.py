"""Files that are loaded where they were saved: after training in the same function, or by code for
a GPU that is written out."""

from __future__ import annotations

import ast

from tensortrail.rules.devices._at_hand import is_cuda_literal
from tensortrail.rules.shared.moves import TO_DEVICE, named_device
from tensortrail.rules.shared.objects import called, names_in, receiver
from tensortrail.rules.view import FunctionNode, Module

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


def goes_to_a_written_gpu(module: Module, call: ast.Call) -> bool:
    """`model.load_state_dict(torch.load(path))` of a model that the function puts on a GPU which
    is written out, whatever the machine has; or the model itself comes from the file."""
    function, owner = module.function_of(call), taker(module, call) or _bound(module, call)
    if function is not None and (
        _is_moved_at_once(module, function, call) or _launches_on_gpus(module, function)
    ):
        return True
    if function is None or owner is None:
        return False
    shown = module.text(owner)
    moves = [each for each in module.calls(*TO_DEVICE, inside=function) if receiver(each)]
    return any(
        _is_of(module, each, shown) and _is_to_a_gpu(module, function, each) for each in moves
    )


def _is_moved_at_once(module: Module, function: FunctionNode, call: ast.Call) -> bool:
    """`torch.load(path)["model"].cuda()`"""
    member = module.parent(with_its_key(module, call))
    move = module.parent(member) if isinstance(member, ast.Attribute) else None
    moves = isinstance(move, ast.Call) and move.func is member and called(move) in TO_DEVICE
    return moves and isinstance(move, ast.Call) and _is_to_a_gpu(module, function, move)


def _launches_on_gpus(module: Module, function: FunctionNode) -> bool:
    """`Fabric(accelerator="cuda", devices=2)`"""
    return any(
        keyword.arg == "accelerator"
        and isinstance(keyword.value, ast.Constant)
        and keyword.value.value in ("cuda", "gpu")
        for keyword in module.nodes(ast.keyword, function)
    )


def is_of_a_program_for_a_gpu(module: Module, call: ast.Call) -> bool:
    """The file says at its top which GPU it is for, by its number, and nothing of the CPU."""
    return module.once(_is_for_a_gpu, module.top)


def _is_for_a_gpu(module: Module, top: FunctionNode) -> bool:
    named = [
        each
        for each in module.nodes(ast.Assign)
        if module.function_of(each) is None
        and module.class_of(each) is None
        and is_cuda_literal(module, each.value)
        and ":" in module.text(each.value)
    ]
    texts = (each.value for each in module.nodes(ast.Constant)) if named else ()
    asked = named and next(module.calls("torch.cuda.is_available"), None) is not None
    return bool(named) and not asked and "cpu" not in texts


def is_where_a_gpu_is(module: Module, call: ast.Call) -> bool:
    """`if torch.cuda.is_available(): model.load_state_dict(torch.load(path))`."""
    return any(
        guard.holds
        and guard.exact
        and isinstance(guard.test, ast.Call)
        and module.qualified(guard.test.func) == "torch.cuda.is_available"
        for guard in module.guards_of(call)
    )


def taker(module: Module, call: ast.Call) -> ast.expr | None:
    """`model` of `model.load_state_dict(state)`, with `state` loaded by the call, or a part of it,
    or what is made of it entry by entry."""
    above = module.parent(with_its_key(module, call))
    if isinstance(above, ast.Call) and called(above) == "load_state_dict":
        return receiver(above)
    above = module.statement_of(call)
    if isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
        names = _made_of(module, above, above.targets[0].id)
        for taker in module.calls("load_state_dict", inside=module.function_of(call)):
            if not names.isdisjoint(names_in(taker)) and taker.lineno >= call.lineno:
                return receiver(taker)
    return None


def with_its_key(module: Module, call: ast.Call) -> ast.expr:
    """`torch.load(path)["model"]`"""
    loaded: ast.expr = call
    while isinstance(above := module.parent(loaded), ast.Subscript) and above.value is loaded:
        loaded = above
    return loaded


def _bound(module: Module, call: ast.Call) -> ast.expr | None:
    """`model` of `model = torch.load(path)["model"]`"""
    above = module.parent(with_its_key(module, call))
    target = above.targets[0] if isinstance(above, ast.Assign) else None
    return target if isinstance(target, ast.Name) else None


def _made_of(module: Module, loaded: ast.stmt, name: str) -> set[str]:
    """The name, those of loops over it, and those of dicts that are filled in these."""
    found = {name}
    for loop in module.later(loaded, ast.For):
        if not found.isdisjoint(names_in(loop.iter)):
            found |= names_in(loop.target)
    for assign in module.later(loaded, ast.Assign):
        if not found.isdisjoint(names_in(assign.value)):
            for target in assign.targets:
                root = target.value if isinstance(target, ast.Subscript) else target
                found |= {root.id} if isinstance(root, ast.Name) else set()
    return found


def _is_of(module: Module, move: ast.Call, shown: str) -> bool:
    """The model itself is moved, or what was made of it: `model = model.module`, `model.eval()`."""
    owner = receiver(move)
    while isinstance(owner, ast.Call) and receiver(owner) is not None:
        owner = receiver(owner)
    if owner is None:
        return False
    bound = module.parent(move)
    kept = isinstance(bound, ast.Assign) and module.text(bound.targets[0]) == shown
    return kept or module.text(owner) == shown


def _is_to_a_gpu(module: Module, function: FunctionNode, move: ast.Call) -> bool:
    said = [*move.args, *(each.value for each in move.keywords if each.arg == "device")]
    if called(move) == "cuda":
        return not _is_decided(module, move)
    return bool(said) and _names_a_gpu(module, said[0])


def _names_a_gpu(module: Module, said: ast.expr) -> bool:
    if isinstance(said, ast.Call) and module.qualified(said.func) == _CURRENT:
        return next(module.calls("torch.cuda.set_device"), None) is None  # of one process alone
    value = module.value_of(named_device(module, said))
    if isinstance(value.constant, str):
        return value.constant.startswith("cuda")
    return bool(value.origins) and all(is_cuda_literal(module, each) for each in value.origins)


def _is_decided(module: Module, move: ast.Call) -> bool:
    """`if torch.cuda.is_available(): model.cuda()`."""
    return any(each.mentions("cuda", "gpu", "device") for each in module.guards_of(move))
