"""Whether a class makes known, or moves itself, the modules that it keeps in a plain container."""

from __future__ import annotations

import ast

from tensortrail.patterns import pattern
from tensortrail.rules import Module
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import receiver

_ADDS = ("append", "extend", "insert")
_REGISTERS = pattern(r"ModuleList|ModuleDict|Sequential|add_module|register_|setattr")


def knows_where_they_lie(module: Module, holder: ast.expr, name: str) -> bool:
    """`self.blocks[0].to(x.device)` in the class, or `self.blocks[0](x.to(self.device))`: it knows
    that they are left behind."""
    shown = f"self.{name}"
    for move in module.calls(*MOVES, inside=module.class_of(holder)):
        around = module.parent(move)
        given_to = around.func if isinstance(around, ast.Call) and move in around.args else None
        if _is_member(module, receiver(move), shown) or _is_member(module, given_to, shown):
            return True
    return False


def _is_member(module: Module, node: ast.expr | None, container: str) -> bool:
    return isinstance(node, ast.Subscript) and module.text(node.value) == container


def follows_its_input(module: Module, made: ast.Call) -> bool:
    """The class of the modules is of this file, and moves what it holds to where its input is."""
    name = module.text(made.func).rpartition(".")[2]
    return any(
        cls.name == name and module.function_of(call) is not None and _is_own_move(module, call)
        for cls in module.nodes(ast.ClassDef)
        for call in module.calls("to", inside=cls)
    )


def _is_own_move(module: Module, call: ast.Call) -> bool:
    """`self.kernel.to(x.device)`"""
    owner = receiver(call)
    said = call.args[0] if call.args else None
    own = owner is not None and module.text(owner).startswith("self.")
    return (
        own
        and isinstance(said, ast.Attribute)
        and said.attr == "device"
        and (module.text(said) != "self.device")
    )


def is_registered(module: Module, cls: ast.ClassDef, name: str, holder: ast.expr) -> bool:
    """The class makes them known in another way, or moves them itself."""
    added = {module.text(each) for each in (holder.args if isinstance(holder, ast.Call) else [])}
    for call in module.nodes(ast.Call, cls):
        if _REGISTERS.search(module.text(call.func)):
            around = [call, *module.ancestors(call)]
            loops = [each.iter for each in around if isinstance(each, ast.For)]
            if any(f"self.{name}" in module.text(each) for each in (call, *loops)):
                return True
            if not added.isdisjoint(map(module.text, call.args)):
                return True
    if any(
        _is_kept_twice(module, call, holder, added) for call in module.calls(*_ADDS, inside=cls)
    ):
        return True
    own = {each.name for each in cls.body if isinstance(each, ast.FunctionDef)}
    return not own.isdisjoint({"to", "_apply", "parameters", "cuda"})


def _is_kept_twice(module: Module, call: ast.Call, holder: ast.expr, added: set[str]) -> bool:
    """The same module goes into another list, which may become one of modules."""
    here, there = receiver(holder) if isinstance(holder, ast.Call) else None, receiver(call)
    if here is None or there is None or module.text(here) == module.text(there):
        return False
    same = module.function_of(call) is module.function_of(holder)
    return same and not added.isdisjoint(map(module.text, call.args))
