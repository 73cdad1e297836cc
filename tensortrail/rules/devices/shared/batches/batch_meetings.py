"""Where a part of a batch that was not moved meets what was computed from a moved one."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.findings import Fix, Safety
from tensortrail.rules.devices.shared.batches.batches import Batch
from tensortrail.rules.devices.shared.batches.on_device import OnDevice, keeps_device
from tensortrail.rules.shared.called_modules import is_a_module
from tensortrail.rules.shared.functions import names_of_parameters
from tensortrail.rules.shared.objects import called, given, keyword, receiver, root_of
from tensortrail.rules.view import Module

_OF_TENSORS = frozenset(
    "view reshape size dim long float bool half int squeeze unsqueeze flatten view_as type_as "
    "numel argmax sum mean max detach clone contiguous t expand permute transpose item "
    "eq ne index_select gather".split()
)
_PAIRS = frozenset(
    "eq ne sub add mul div gather index_add_ scatter_ scatter_add_ copy_ masked_fill where".split()
)
_PARALLEL = ("DataParallel", "DistributedDataParallel")
_COUNTS = frozenset("sum mean float double int long type".split())
"""Methods of a comparison of tensors: of two numbers it is a bool and has none of them."""


def meetings(
    module: Module, uses: Sequence[ast.expr], there: OnDevice, is_tensor: bool
) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The use, and the expression that takes it together with what is on the device."""
    for use in uses:
        whole = _whole(module, use)
        around = module.parent(whole)
        if isinstance(around, ast.keyword):
            around = module.parent(around)
        if isinstance(around, ast.expr) and _meets(module, around, whole, there, is_tensor):
            yield use, around


def first_meeting(module: Module, batch: Batch, there: OnDevice, name: str) -> ast.expr | None:
    uses = _uses(module, batch, name)
    is_tensor = any(_is_used_as_tensor(module, each) for each in uses) or (
        not _is_one_sample(module, batch) and any(_is_counted(module, each) for each in uses)
    )
    found = next(meetings(module, uses, there, is_tensor), None)
    return found[1] if found is not None else None


def passed_beside(module: Module, batch: Batch, there: OnDevice, name: str) -> ast.expr | None:
    """`model(x, moved)`, where nothing says that `x` is a tensor."""
    for use in _uses(module, batch, name):
        call = module.parent(use)
        first = isinstance(call, ast.Call) and call.args[:1] == [use]
        if not isinstance(call, ast.Call) or not first or not is_a_module(module, call.func):
            continue
        if _moves_what_it_is_given(module, call.func):
            continue
        if any(there.holds(each) for each in given(call)):
            return call
    return None


def _uses(module: Module, batch: Batch, name: str) -> list[ast.Name]:
    return [each for each in module.nodes(ast.Name, batch.scope) if each.id == name]


def _is_used_as_tensor(module: Module, use: ast.Name) -> bool:
    """`y.view(-1)`, `y.shape`, or `labels.append(y)` of what `torch.cat` takes."""
    up = module.parent(use)
    if isinstance(up, ast.Call) and called(up) == "append":
        kept = receiver(up)
        return any(
            call.args and kept is not None and module.text(call.args[0]) == module.text(kept)
            for call in module.calls("torch.cat", "torch.stack", inside=module.function_of(use))
        )
    if not isinstance(up, ast.Attribute):
        return False
    is_call = isinstance(module.parent(up), ast.Call)
    return up.attr == "shape" or (is_call and up.attr in _OF_TENSORS)


def _is_counted(module: Module, use: ast.Name) -> bool:
    """`(best == y).sum()`: compared element by element."""
    compared = module.parent(use)
    counted = module.parent(compared) if isinstance(compared, ast.Compare) else None
    return isinstance(counted, ast.Attribute) and counted.attr in _COUNTS


def _is_one_sample(module: Module, batch: Batch) -> bool:
    """`x[None]`, `x.unsqueeze(0)`: what the loop gets is no batch, and `y` may be a number."""
    unsqueezed = any(
        isinstance(each, ast.Constant) and each.value == 0
        for call in module.calls("unsqueeze", inside=batch.scope)
        for each in given(call)
    )
    return unsqueezed or any(
        isinstance(each, ast.Constant) and each.value is None
        for part in module.nodes(ast.Subscript, batch.scope)
        for each in ast.walk(part.slice)
    )


def _whole(module: Module, use: ast.expr) -> ast.expr:
    """`y.view(-1)[:n]` of `y`."""
    node: ast.expr = use
    while True:
        up = module.parent(node)
        called_on = isinstance(up, ast.Attribute) and up.attr in _OF_TENSORS - {"item", "size"}
        taken = isinstance(up, ast.Call) and up.func is node
        part = isinstance(up, ast.Subscript) and up.value is node
        if not (called_on or taken or part) or not isinstance(up, ast.expr):
            return node
        node = up


def _meets(
    module: Module, around: ast.expr, odd: ast.expr, there: OnDevice, is_tensor: bool
) -> bool:
    if isinstance(around, ast.BinOp):
        return is_tensor and there.holds(around.right if around.left is odd else around.left)
    if isinstance(around, ast.Compare):
        sides = [around.left, *around.comparators]
        by_value = not isinstance(around.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn))
        return is_tensor and by_value and any(there.holds(each) for each in sides if each != odd)
    if not isinstance(around, ast.Call) or odd not in given(around):
        return False
    if _moves_what_it_is_given(module, around.func):
        return False
    others = any(
        there.holds(each) and not _comes_to(module, each, odd)
        for each in given(around)
        if each is not odd
    )
    owner = receiver(around)
    if owner is not None and there.holds(owner):
        return is_tensor and called(around) in _PAIRS
    return others and (_is_loss(module, around) or (is_tensor and keeps_device(module, around)))


def _moves_what_it_is_given(module: Module, func: ast.expr) -> bool:
    """`DataParallel(net)` and `DistributedDataParallel(net, device_ids=[rank])` move each argument
    to the GPU of the replica that takes it."""
    if not isinstance(func, (ast.Name, ast.Attribute)):
        return False
    made = [each for each in module.value_of(func).origins if isinstance(each, ast.Call)]
    around = module.function_of(func)
    if isinstance(func, ast.Name) and around and func.id in names_of_parameters(around):
        made += module.calls(*_PARALLEL)  # of the file, which may pass it here
    return any(
        last == "DataParallel"
        or (last == "DistributedDataParallel" and (each.args[1:] or keyword(each, "device_ids")))
        for each in made
        if (last := module.qualified(each.func).rpartition(".")[2])
    )


def _comes_to(module: Module, node: ast.expr, odd: ast.expr) -> bool:
    """`x.to(y.device)` beside `y`."""
    return any(
        each.attr == "device" and module.text(each.value) == module.text(odd)
        for each in module.nodes(ast.Attribute, node)
    )


def _is_loss(module: Module, call: ast.Call) -> bool:
    """It takes nothing but tensors."""
    names = [module.qualified(call.func)]
    if isinstance(call.func, (ast.Name, ast.Attribute)):
        names += [module.qualified(each) for each in module.value_of(call.func).origins]
    last = [each.rpartition(".")[2] for each in names if each.startswith("torch.nn.")]
    return any(each.endswith(("Loss", "_loss", "cross_entropy", "_div")) for each in last)


def moved_too(module: Module, name: str, moved: str, call: ast.Call) -> Fix | None:
    """The same move, in the line after the one that binds the moved part again."""
    statement = module.statement_of(call)
    if not isinstance(statement, ast.Assign) or statement.value is not call:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or root_of(call) is not call.func.value:  # type: ignore[attr-defined]
        return None
    how = module.text(call)[len(moved) :]
    line = f"\n{' ' * statement.col_offset}{name} = {name}{how}"
    return module.fix("move it too", Safety.UNSAFE, module.insert_after(statement, line))
