"""What of a container that a method makes is read by the others."""

from __future__ import annotations

import ast

from tensortrail.rules.view import Module


def is_reached(
    module: Module, cls: ast.ClassDef, name: str, holder: ast.expr, made: ast.expr
) -> bool:
    """Another method uses the container, with the member that was made: it reads no other one of
    them by its number, and does not bind the attribute anew before."""
    made_in = module.function_of(holder)
    place = _place(holder, made)
    return any(
        each.attr == name
        and isinstance(each.ctx, ast.Load)
        and module.text(each.value) == "self"
        and module.function_of(each) is not made_in
        and not _is_of_another(module, each, place)
        and not bound_above(module, each)
        for each in module.nodes(ast.Attribute, cls)
    )


def _place(holder: ast.expr, made: ast.expr) -> int | None:
    """Of the member, in a list or tuple that is written out."""
    members = holder.elts if isinstance(holder, (ast.List, ast.Tuple)) else []
    spread = any(isinstance(each, ast.Starred) for each in members)
    return members.index(made) if made in members and not spread else None


def _is_of_another(module: Module, read: ast.Attribute, place: int | None) -> bool:
    """`self.parts[0]`, which is not the member with that number."""
    above = module.parent(read)
    number = above.slice if isinstance(above, ast.Subscript) and above.value is read else None
    if place is None or not isinstance(number, ast.Constant) or not isinstance(number.value, int):
        return False
    return number.value >= 0 and number.value != place


def bound_above(module: Module, read: ast.Attribute) -> list[ast.expr]:
    """What the method binds `self.parts` to in the open, further up."""
    function, shown = module.function_of(read), module.text(read)
    return [
        each.value
        for each in (function.body if function is not None else ())
        if isinstance(each, ast.Assign)
        and each.lineno < read.lineno
        and any(module.text(target) == shown for target in each.targets)
    ]
