"""Whether a model was moved before a line, and is used after it as it is."""

from __future__ import annotations

import ast
from typing import TypeGuard

from tensortrail.rules.shared.functions import called_here, matched
from tensortrail.rules.shared.moves import MAY_PLACE, TO_DEVICE
from tensortrail.rules.shared.objects import called, given, is_one_of, receiver, root_of
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.shared.parts_moved import is_to_a_device
from tensortrail.rules.view import Module
from tensortrail.rules.words import Kind

_HARMLESS = frozenset(
    "train eval parameters named_parameters requires_grad_ print len isinstance modules children "
    "named_modules named_children zero_grad state_dict load_state_dict summary getattr hasattr "
    "setattr numel list str repr type id apply register_forward_hook add_module "
    "register_module".split()
)
"""What does not move a model that it is given, or is asked of."""


def _rewraps(module: Module, call: ast.Call) -> bool:
    """`net = Wrapper(net)` again: the new module holds what the old one did."""
    statement = module.statement_of(call)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
        return False
    again = statement.value is call and wraps(call, statement.targets[0].id)
    return again and module.kind_of(call) is Kind.MODULE


def wraps(made: ast.expr, name: str) -> TypeGuard[ast.Call]:
    return isinstance(made, ast.Call) and any(is_one_of(each, [name]) for each in given(made))


def is_written_gpu(module: Module, moved: ast.Call) -> bool:
    """`.cuda()`, `.to("cuda")`: the file decides that it is a GPU."""
    if called(moved) == "cuda":
        return True
    said = behind(module, moved.args[0]) if moved.args else None
    if isinstance(said, ast.Call) and called(said) == "device" and said.args:
        said = said.args[0]
    return isinstance(said, ast.Constant) and str(said.value).startswith("cuda")


def moved_before(module: Module, made: ast.Call, model: str) -> ast.Call | None:
    """The move of the whole model, or of what the model was made from in that statement."""
    for call in module.earlier(made, ast.Call):
        statement = module.statement_of(call)
        is_assign = isinstance(statement, ast.Assign) and statement.value is call
        bound = is_assign and module.text(statement.targets[0]) == model  # type: ignore[attr-defined]
        owner = receiver(call)
        if called(call) in TO_DEVICE and owner is not None and is_to_a_device(module, call):
            if bound or module.text(owner) == model:
                return call
        elif bound:
            return None
    return None


def used_after(module: Module, made: ast.Call, model: str) -> ast.Call | None:
    """The first call of the model, if nothing before it may have moved the model."""
    for call in module.later(made, ast.Call):
        if call is made:
            continue
        if isinstance(call.func, ast.Name) and call.func.id == model:
            return call
        if _calls_it(module, call, model):
            return call
        owner = receiver(call)
        on = module.text(root_of(owner)) if owner is not None else ""
        takes = any(module.text(each) == model for each in given(call))
        if (on == model or takes) and called(call) not in _HARMLESS and not _rewraps(module, call):
            return None
    return None


def _calls_it(module: Module, call: ast.Call, model: str) -> bool:
    """`train(model, loader)`, a function of the file that calls the model and does not move it."""
    callee = called_here(module, call) if isinstance(call.func, ast.Name) else None
    if callee is None:
        return False
    taken = [name for name, each in matched(callee, call) if module.text(each) == model]
    uses = [each for each in module.nodes(ast.Call, callee) if is_one_of(each.func, taken)]
    moved = [c for c in module.calls(*MAY_PLACE, inside=callee) if is_one_of(receiver(c), taken)]
    return bool(uses) and not moved
