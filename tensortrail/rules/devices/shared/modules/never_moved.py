"""Models that nothing in their file moves, and that are called with what was moved."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.devices.shared.modules.moves_of_models import scope_of
from tensortrail.rules.devices.shared.modules.new_layers import makes_layers
from tensortrail.rules.devices.shared.written_for.told import told_device
from tensortrail.rules.shared.functions import called_here, matched, parameter_names
from tensortrail.rules.shared.given_devices import is_given_device, under_device
from tensortrail.rules.shared.moves import MAY_PLACE
from tensortrail.rules.shared.objects import called, file_around, given, receiver
from tensortrail.rules.view import FunctionNode, Module

_MOVES = MAY_PLACE | {"half", "share"}
_PLAIN_BASES = frozenset({"object", "abc.ABC", "typing.Generic", "typing.Protocol"})
_HARMLESS = frozenset(
    "print len id isinstance type str repr summary dict vars hasattr deepcopy named".split()
)


class NeverMoved(NamedTuple):
    made: ast.Assign
    name: str
    use: ast.Call
    device: ast.expr
    """Where an argument of the use lies."""


def never_moved(module: Module) -> Iterator[NeverMoved]:
    for made, name, scope in _made(module):
        uses = [e for e in _uses(module, made, name, scope) if _is_meant(module, e, made, name)]
        found = next(_called_with_moved(module, uses), None)
        if found is not None and not _may_be_moved(module, scope, name):
            yield NeverMoved(made, name, *found)


def _uses(module: Module, made: ast.Assign, name: str, scope: ast.AST) -> Iterator[ast.Call]:
    """Calls of the model, and of methods that its class has beside those of every module."""
    for call in module.calls(name.rpartition(".")[2], inside=scope):
        if module.text(call.func) == name:
            yield call
    facts = module.class_facts(module.qualified(made.value.func))  # type: ignore[attr-defined]
    base = module.class_facts("torch.nn.modules.module.Module")
    own = (facts.methods if facts else frozenset()) - (base.methods if base else frozenset())
    for call in module.calls(*own, inside=scope) if own else ():
        owner = receiver(call)
        if owner is not None and module.text(owner) == name:
            yield call


def _called_with_moved(module: Module, uses: list[ast.Call]) -> Iterator[tuple[ast.Call, ast.expr]]:
    for use in uses:
        for each in given(use):
            device = told_device(module, each) or _told_by_callers(module, use, each)
            if device is not None:
                yield use, device


def _told_by_callers(module: Module, use: ast.Call, node: ast.expr) -> ast.expr | None:
    """The device of a parameter that every call in the file gives something moved."""
    function = module.function_of(use)
    if function is None or not isinstance(node, ast.Name):
        return None
    if node.id not in parameter_names(function) or module.value_of(node).origins:
        return None
    calls = [each for each in module.calls(function.name) if called_here(module, each) is function]
    told = [
        told_device(module, each)
        for call in calls
        for name, each in matched(function, call)
        if name == node.id
    ]
    return told[0] if told and None not in told else None


def _made(module: Module) -> Iterator[tuple[ast.Assign, str, ast.AST]]:
    """`model = Net(8)` at the top of a file, `self.model = Net(8)` in a plain class: what is bound
    once, its name, and where it goes by it."""
    for assign in module.nodes(ast.Assign):
        value, target = assign.value, assign.targets[0]
        if len(assign.targets) > 1 or not isinstance(value, ast.Call):
            continue
        name, around = module.text(target), module.function_of(assign)
        top = around is None and isinstance(target, ast.Name)
        own = around is not None and name.startswith("self.")
        scope = _scope_of_own(module, assign, name) if own else None
        scope = file_around(module, assign) if top else scope
        if scope is None or not _is_plain_model(module, value):
            continue
        if _is_bound_once(module, scope, name):
            yield assign, name, scope


def _scope_of_own(module: Module, assign: ast.Assign, name: str) -> ast.AST | None:
    """The class that keeps it, which is no module, and whose bases are of the project and leave
    what has this name alone."""
    cls = module.class_of(assign)
    facts = module.class_facts(cls) if cls is not None and cls.bases else None
    if facts is None:
        return scope_of(module, assign, name)
    if name.count(".") != 1 or facts.is_module:
        return None
    may_move = {"", name.removeprefix("self.")}
    moved = [module.about(each, _moved_by) for each in facts.bases if each not in _PLAIN_BASES]
    return cls if all(each is not None and not each & may_move for each in moved) else None


def _moved_by(module: Module, cls: ast.AST) -> frozenset[str]:
    """The attributes that the class may move; an empty name if it may move all of them."""
    names = {each.attr for each in module.nodes(ast.Attribute, cls)} | {""}
    return frozenset(each for each in names if _may_be_moved(module, cls, f"self.{each}"))


def _is_plain_model(module: Module, made: ast.Call) -> bool:
    """A class of the project whose constructor makes layers and asks nothing about devices."""
    if is_given_device(module, made) or under_device(module, made):
        return False
    dotted = module.qualified(made.func)
    facts = module.class_facts(dotted) if dotted else None
    if facts is None or not facts.is_module or not module.is_of_project(made):
        return False
    return bool(module.about(dotted, _stays_where_it_is_made))


def _stays_where_it_is_made(module: Module, cls: ast.AST) -> bool:
    """No method of it moves it."""
    moves = module.calls("to", "cuda", "to_empty", inside=cls)
    own = (each for each in moves if (owner := receiver(each)) is not None
           and module.text(owner).partition(".")[0] == "self")  # fmt: skip
    return makes_layers(module, cls) and not any(True for _ in own)


def _is_bound_once(module: Module, scope: ast.AST, name: str) -> bool:
    return sum(isinstance(each.ctx, ast.Store) for each in _named(module, scope, name)) == 1


def _named(module: Module, scope: ast.AST, name: str) -> Iterator[ast.Name | ast.Attribute]:
    """Where it stands below the scope: by its last part first, as few have that."""
    last = name.rpartition(".")[2]
    own = name.startswith("self.")
    found = module.members(last, scope) if own else module.uses(name, scope)
    return (each for each in found if module.text(each) == name)


def _is_meant(module: Module, use: ast.Call, made: ast.Assign, name: str) -> bool:
    """In another function than the one that makes it, and no argument of that name."""
    around = module.function_of(use)
    inside: list[FunctionNode] = []
    while around is not None:
        inside.append(around)
        around = module.function_of(around)
    here = module.function_of(made)
    return (
        bool(inside)
        and inside[0] is not here
        and not any(name in parameter_names(each) for each in inside)
    )


def _may_be_moved(module: Module, scope: ast.AST, name: str) -> bool:
    """A move of it or of something with its name, or code that it is passed to and that may."""
    last = name.rpartition(".")[2]
    for call in module.calls(*_MOVES):
        owner = receiver(call)
        if owner is not None and last in _words(owner):
            return True
        if called(call) == "prepare" or (owner is not None and _may_be_the_object(module, owner)):
            return True
    reads = (each for each in _named(module, scope, name) if isinstance(each.ctx, ast.Load))
    return any(_is_given_away(module, each) for each in reads)


def _may_be_the_object(module: Module, owner: ast.expr) -> bool:
    """The object itself, or a part of it by whatever name; no tensor."""
    return bool(_words(owner) & {"m", "self"}) and not module.value_of(owner).is_tensor


def _words(node: ast.expr) -> set[str]:
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return names | {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}


def _is_given_away(module: Module, read: ast.AST) -> bool:
    """To what may move it: anything but its own call, its attributes, and functions of the file
    that do not."""
    above = module.parent(read)
    if isinstance(above, ast.Attribute):
        return above.attr in _MOVES
    keyword = above.arg if isinstance(above, ast.keyword) else None
    call = module.parent(above) if isinstance(above, ast.keyword) else above
    if not isinstance(call, ast.Call):
        return not isinstance(above, (ast.Compare, ast.Return, ast.FormattedValue))
    if call.func is read or called(call) in _HARMLESS:
        return False
    callee = called_here(module, call) if isinstance(call.func, ast.Name) else None
    if callee is None:
        return True
    taken = keyword or next((name for name, each in matched(callee, call) if each is read), None)
    return taken is None or _is_moved_in(module, callee, taken)


def _is_moved_in(module: Module, function: FunctionNode, parameter: str) -> bool:
    """Whatever takes it there may move it."""
    reads = (each for each in module.uses(parameter, inside=function)
             if isinstance(each.ctx, ast.Load))  # fmt: skip
    for each in reads:
        above = module.parent(each)
        if isinstance(above, ast.Attribute) and above.attr not in _MOVES:
            continue
        if isinstance(above, ast.Call) and above.func is each:
            continue
        return True
    return False
