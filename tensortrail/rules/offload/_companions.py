"""Tensors that belong to an object and that a move of it leaves behind."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.findings import Fix, Safety, Severity
from tensortrail.rules.devices.written_for.beforehand import need_not_move
from tensortrail.rules.devices.written_for.used_here import is_used_on_a_gpu
from tensortrail.rules.shared.buffers import registration
from tensortrail.rules.shared.given_weights import is_made_of_given_weights, takes_its_weights
from tensortrail.rules.shared.moves import ACCELERATORS, MOVE_METHODS
from tensortrail.rules.shared.objects import called, is_none, is_self, last_name, receiver
from tensortrail.rules.shared.operations import Operation, operations
from tensortrail.rules.shared.placeholders import stands_for_nothing
from tensortrail.rules.shared.tensor_origin import (
    ONLY_TENSORS,
    Decides,
    Origin,
    is_dtype,
    origin_of,
)
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Kind

_BUILDING = frozenset({"__init__", "__post_init__", "post_init", "reset_parameters"})
_LIVING = frozenset({"forward", "__call__", "step"})
_CASTS = frozenset({"float", "contiguous", "requires_grad_"})
_OF_BUILT = (Decides.MOVED, Decides.GIVEN, Decides.UNKNOWN)
_OF_OTHERS = (Decides.MOVED,)
"""What may decide where a tensor is that is stored by `__init__`, and by other methods."""


class Companion(NamedTuple):
    stored: ast.Assign
    name: str
    meets: ast.expr
    """What it meets, in `operation`."""
    operation: ast.AST
    once: bool
    """It is the only assignment to the attribute."""


def plain_companions(module: Module, cls: ast.ClassDef) -> Iterator[Companion]:
    """Tensors in plain attributes of an nn.Module that meet its weights or its inputs."""
    facts = module.class_facts(cls)
    if facts is None or not facts.is_module:
        return
    read = set(_read_elsewhere(module, cls))
    kept = {
        name: stores
        for name, stores in _stores(module, cls).items()
        if name in read
        and name not in facts.registered
        and not any(_is_plain(each.value) and not is_none(each.value) for each in stores)
        and not all(is_none(each.value) for each in stores)
        and not _follows(module, cls, name)
        and all(_is_table(module, cls, name, each) or is_none(each.value) for each in stores)
    }
    if not kept:
        return
    for function in methods_of(cls):
        if function.name in MOVE_METHODS or not _reads(module, function, kept):
            continue
        if _builds(module, function, kept):
            continue
        for operation in operations(module, function):
            met = _met(module, operation, kept, facts.registered)
            if met is not None:
                stores = kept.pop(met[0])
                first = next(each for each in stores if not is_none(each.value))
                yield Companion(first, met[0], met[1], operation.node, len(stores) == 1)


def how_bad(module: Module, companion: Companion) -> Severity:
    if _may_be_in_place(module, companion) or _is_made_anew(module, companion):
        return Severity.NOTE
    here = is_used_on_a_gpu(module, companion.stored)
    return Severity.ERROR if here else Severity.WARNING


def _is_made_anew(module: Module, companion: Companion) -> bool:
    """Whoever comes to the operation has called the method that stores it, in any case."""
    function, cls = module.function_of(companion.stored), module.class_of(companion.stored)
    meets = module.function_of(companion.operation)
    if function is None or cls is None or meets is None or function.name in _BUILDING:
        return False
    calls = [
        each
        for each in module.calls(function.name, inside=cls)
        if not module.guards_of(each) and (by := receiver(each)) is not None and is_self(by)
    ]
    makers = {module.function_of(each) for each in calls}
    users = {module.function_of(each) for each in module.calls(meets.name, inside=cls)}
    return meets in makers or (bool(users) and users <= makers)


def _may_be_in_place(module: Module, companion: Companion) -> bool:
    """Another method stores the real tensor, who builds the module says where it is, or the class
    works on the CPU, or modules are built on their device."""
    stored = companion.stored
    return (
        _is_made_later(module, companion)
        or _is_put_where_told(module, stored)
        or need_not_move(module, stored)
        or _has_no_weights_of_its_own(module, stored)
        or is_made_of_given_weights(module, stored)
    )


def _is_made_later(module: Module, companion: Companion) -> bool:
    """`self.table = torch.tensor([0])`, where another method stores the real one."""
    return not companion.once and stands_for_nothing(module, companion.stored.value)


def _is_put_where_told(module: Module, stored: ast.Assign) -> bool:
    """The tensor is put on a device that is a value, or made of an attribute that was; or it is
    the argument of the constructor as it came: who builds the module knows where it is, and mostly
    need not move it."""
    function = module.function_of(stored)
    if function is None:
        return False
    if function.name in _BUILDING and _is_handed_in(stored.value, function):
        return True
    told = [*module.nodes(ast.Call, stored), *_stored_parts(module, function, stored)]
    return any(_is_on_a_given_device(module, each) for each in told)


def is_put_by_hand(module: Module, companion: Companion) -> bool:
    """Who builds the module says the device for this tensor too, as they do for its weights. One
    that is put beside another tensor of the module stays behind when that one is moved."""
    function = module.function_of(companion.stored)
    if function is None:
        return False
    told = [*module.nodes(ast.Call, companion.stored)]
    told += _stored_parts(module, function, companion.stored)
    return any(_is_on_a_given_device(module, e) and not _is_beside_another(e) for e in told)


def _is_beside_another(call: ast.Call) -> bool:
    """`x.to(device=self.weight.device)`"""
    said = [each.value for each in call.keywords if each.arg == "device"] or call.args[:1]
    return any(
        isinstance(each, ast.Attribute) and each.attr == "device" and not is_self(each.value)
        for each in said
    )


def _has_no_weights_of_its_own(module: Module, stored: ast.Assign) -> bool:
    cls = module.class_of(stored)
    function = module.function_of(stored)
    computed = function is not None and function.name in _BUILDING
    return cls is not None and computed and takes_its_weights(module, cls.name)


def _stored_parts(module: Module, function: FunctionNode, stored: ast.Assign) -> Iterator[ast.Call]:
    """The calls in what the attributes were assigned from that the value is made of."""
    read = {module.text(each) for each in module.nodes(ast.Attribute, stored.value)}
    for other in module.nodes(ast.Assign, function):
        if other is not stored and read.intersection(map(module.text, other.targets)):
            yield from module.nodes(ast.Call, other)


def _is_on_a_given_device(module: Module, call: ast.Call) -> bool:
    """`x.to(device)`, `torch.ones(2, device=self.device)`: none that is written out. A bare
    `.cuda()` is one, where all is for the GPU of the process."""
    said = [each.value for each in call.keywords if each.arg == "device"]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "to":
        said += [each for each in call.args[:1] if not is_dtype(module, each)]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda" and not call.args:
        return module.is_for_current_gpu()
    return any(isinstance(each, (ast.Name, ast.Attribute)) for each in said)


def _read_elsewhere(module: Module, cls: ast.ClassDef) -> Iterator[str]:
    """Attributes that a method other than the building ones reads."""
    for function in methods_of(cls):
        if function.name not in _BUILDING:
            for node in module.nodes(ast.Attribute, function):
                if is_self(node.value) and isinstance(node.ctx, ast.Load):
                    yield node.attr


def _stores(module: Module, cls: ast.ClassDef) -> dict[str, list[ast.Assign]]:
    """Plain assignments to `self.name`; a name that is stored in another way is left out."""
    found: dict[str, list[ast.Assign]] = {}
    others: set[str] = set()
    for node in module.nodes(ast.Attribute, cls):
        if not isinstance(node.ctx, ast.Store) or not is_self(node.value):
            continue
        statement = module.parent(node)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            found.setdefault(node.attr, []).append(statement)
        else:
            others.add(node.attr)
    return {name: stores for name, stores in found.items() if name not in others}


def _is_table(module: Module, cls: ast.ClassDef, name: str, stored: ast.Assign) -> bool:
    """The value is a tensor that the module is built with, not one of a call's inputs."""
    function = module.function_of(stored)
    if function is None or function.name in _LIVING or _is_plain(stored.value):
        return False
    if not _is_decided_before(module, cls, name, stored, function):
        return False
    return not _has_no_dimension(module, function, stored)


def _is_decided_before(
    module: Module, cls: ast.ClassDef, name: str, stored: ast.Assign, function: FunctionNode
) -> bool:
    if _is_parameter(module, stored.value):
        return False  # a Parameter is registered by the assignment
    origin = origin_of(module, stored.value)
    if origin.decides is Decides.DEFAULT:
        return True
    built = function.name == "__init__"
    if origin.decides not in (_OF_BUILT if built else _OF_OTHERS):
        return False
    value = module.value_of(stored.value)
    registered = value.may_be(Kind.PARAMETER, Kind.WRAPPER_TENSOR, Kind.MODULE)
    if registered or _is_frozen(module, cls, name):
        return False
    if value.is_tensor and value.sure:
        return True
    handed_in = built and _is_handed_in(stored.value, function)
    return handed_in and is_used_as_tensor(module, cls, name)


def _has_no_dimension(module: Module, function: FunctionNode, stored: ast.Assign) -> bool:
    """`torch.tensor(self.head_dim)`, made of a number as far as can be seen: it may be anywhere."""
    held = module.places(function).seen.get(stored.targets[0])
    return held is not None and held.may_be_scalar


def _is_plain(value: ast.expr) -> bool:
    """Seen without a look around: a number, a text, `nn.Linear(...)`."""
    if isinstance(value, (ast.Constant, ast.JoinedStr, ast.Compare, ast.BoolOp, ast.Lambda)):
        return True
    func = value.func if isinstance(value, ast.Call) else None
    name = last_name(func)
    return name[:1].isupper() and not name.endswith("Tensor")


def _is_parameter(module: Module, value: ast.expr) -> bool:
    """Of `nn.Parameter(x).float()`, too: a cast to the dtype that it has gives the Parameter, and
    so does `.to(memory_format=order)` to the order of its own."""
    while (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and (value.func.attr in _CASTS or _is_put_in_order(value))
        and not value.args
    ):
        value = value.func.value
    if not isinstance(value, ast.Call):
        return False
    if module.qualified(value.func) in ("torch.nn.Parameter", "torch.nn.Buffer"):
        return True
    made = module.class_facts(module.qualified(value))
    return made is not None and "torch.nn.Parameter" in made.bases


def _is_put_in_order(call: ast.Call) -> bool:
    named = {each.arg for each in call.keywords}
    return called(call) == "to" and bool(named) and named <= {"memory_format", "non_blocking"}


def _is_frozen(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """`self.weight.requires_grad = False`: what is not to be trained was a Parameter."""
    return any(
        each.attr in ("requires_grad", "requires_grad_")
        and isinstance(each.value, ast.Attribute)
        and each.value.attr == name
        and is_self(each.value.value)
        for each in module.nodes(ast.Attribute, cls)
    )


def _is_handed_in(value: ast.expr, function: FunctionNode) -> bool:
    """`scale`, a parameter, or a name assigned from `kwargs.pop("scale")`."""
    if not isinstance(value, ast.Name):
        return False
    popped = (
        each.targets[0]
        for each in ast.walk(function)
        if isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Call)
        and isinstance(each.value.func, ast.Attribute)
        and each.value.func.attr in ("pop", "get")
    )
    names = [each.arg for each in (*function.args.args, *function.args.kwonlyargs)]
    names += [each.id for each in popped if isinstance(each, ast.Name)]
    return value.id in names


def is_used_as_tensor(module: Module, inside: ast.AST, name: str) -> bool:
    """What only a tensor has is asked of `self.name`, or of the attribute of another object."""
    for node in module.members(name, inside):
        above = module.parent(node)
        if isinstance(above, ast.Attribute) and above.attr in ONLY_TENSORS - {"to"}:
            return True
        if isinstance(above, ast.Attribute) and above.attr == "to":
            return not _to_device(module, above)
    return False


def _follows(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """The class moves the attribute itself: in `to`, on use, or by asking where it is."""
    for node in module.members(name, cls):
        if not is_self(node.value):
            continue
        above = module.parent(node)
        if isinstance(above, ast.Attribute) and above.attr in ACCELERATORS | {"device", "is_cuda"}:
            return True
        if isinstance(above, ast.Attribute) and above.attr == "to" and _to_device(module, above):
            return True
        function = module.function_of(node)
        if function is not None and function.name in MOVE_METHODS:
            return True
    return any(
        node.value == name and not _only_asked(module, node)
        for node in module.nodes(ast.Constant, cls)
    )


def _to_device(module: Module, method: ast.Attribute) -> bool:
    """`.to` with more than a dtype."""
    call = module.parent(method)
    if not isinstance(call, ast.Call) or call.func is not method:
        return True
    return any(not is_dtype(module, each) for each in call.args) or any(
        each.arg not in ("dtype", "copy") for each in call.keywords
    )


def _only_asked(module: Module, name: ast.Constant) -> bool:
    call = module.parent(name)
    if not isinstance(call, ast.Call):
        return False
    return module.qualified(call.func).rpartition(".")[2] in ("hasattr", "getattr", "pop", "get")


def _reads(module: Module, function: FunctionNode, kept: dict[str, list[ast.Assign]]) -> bool:
    return any(each.attr in kept for each in module.nodes(ast.Attribute, function))


def _builds(module: Module, function: FunctionNode, kept: dict[str, list[ast.Assign]]) -> bool:
    """The method is where the attributes are made."""
    if function.name in _BUILDING:
        return True
    return any(module.function_of(each) is function for stores in kept.values() for each in stores)


def _met(
    module: Module,
    operation: Operation,
    kept: dict[str, list[ast.Assign]],
    registered: frozenset[str],
) -> tuple[str, ast.expr] | None:
    origins = [origin_of(module, each) for each in operation.tensors]
    names = [name for each in origins if (name := _attribute(each)) in kept]
    if not names:
        return None
    for each in origins:
        if each.node is None or _attribute(each) in kept:
            continue
        if each.decides in (Decides.GIVEN, Decides.OWN) or _attribute(each) in registered:
            return names[0], each.node
    return None


def _attribute(origin: Origin) -> str:
    node = origin.node
    held = origin.decides is Decides.ATTRIBUTE and isinstance(node, ast.Attribute)
    return node.attr if held and isinstance(node, ast.Attribute) else ""


def methods_of(cls: ast.ClassDef) -> Iterator[FunctionNode]:
    for each in cls.body:
        if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield each


def as_buffer(module: Module, companion: Companion) -> Fix | None:
    """The one assignment, made a registration."""
    stored = companion.stored
    function = module.function_of(stored)
    if not companion.once or function is None:
        return None
    text = registration(function, stored, [companion.name], module.text)
    edit = module.replace(stored, text) if text else None
    return module.fix("make it a buffer", Safety.UNSAFE, edit) if edit else None
