"""Methods of what the file moves to a device in place: a model, a pipeline, and their parts."""

from __future__ import annotations

import ast

from tensortrail.rules.shared.moves import TO_DEVICE, moves_to_cpu
from tensortrail.rules.shared.objects import is_self_or_cls
from tensortrail.rules.text_of import text_of
from tensortrail.rules.view import Module


def is_of_moved(module: Module, call: ast.Call) -> bool:
    """`model.generate(...)`, `pipe.vae.decode(...)`, after `model.to(device)`, `pipe.cuda()`. Not
    methods that the project defines: these may bring their result back."""
    moved = module.once(_moved_in_place, module.top)
    owners = (text_of(each) for each in _owners(call))
    return any(each in moved for each in owners) and not module.namesakes_of(call)


def _owners(call: ast.Call) -> list[ast.expr]:
    """`pipe.vae` and `pipe` of `pipe.vae.decode(x)`."""
    found: list[ast.expr] = []
    node = call.func
    while isinstance(node, ast.Attribute):
        node = node.value
        found.append(node)
    return found if found and isinstance(node, ast.Name) and not is_self_or_cls(found[0]) else []


def _moved_in_place(module: Module, _: ast.AST) -> frozenset[str]:
    """Of `model.to(device)`, `model = model.cuda()` and `self.model = model.to(device)`."""
    found: set[str] = set()
    for call in module.calls(*TO_DEVICE):
        func, above = call.func, module.parent(call)
        if not isinstance(func, ast.Attribute) or moves_to_cpu(module, call):
            continue
        if isinstance(above, ast.Expr):
            found.add(text_of(func.value))
        elif isinstance(above, ast.Assign):
            target = text_of(above.targets[0])
            if target.rpartition(".")[2] == text_of(func.value).rpartition(".")[2]:
                found.add(target)
    return frozenset(found) - {"self", "cls"}
