"""What a class with its own `to()` keeps: the attributes that it moves, and tensors that it does
not name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import partial

from tensortrail.rules.devices.shared.modules.moved_by_its_class import is_moved
from tensortrail.rules.devices.shared.modules.same_of_both import is_treated_like_one_of
from tensortrail.rules.places import Held, What, Where
from tensortrail.rules.shared.given_devices import is_used_as_device
from tensortrail.rules.shared.moves import MOVERS, TO_DEVICE
from tensortrail.rules.shared.objects import called, given
from tensortrail.rules.unchanging import unchanging
from tensortrail.rules.view import Module

BRINGERS = MOVERS - {"cpu"}
"""What `cpu` leaves out may be on the CPU already."""
_MOVES = TO_DEVICE | {"fn", "func", "to_device", "move_to", "send_to_device"}
_BY_NAME = re.compile(r"__dict__|\b(vars|setattr|getattr|fields|replace|named_\w+|tree_map)\(")
"""How a method moves attributes that it does not name."""
_GOES_ALONG = frozenset({Where.DEFAULT, Where.DEVICE, Where.OF})
_DEVICE = re.compile(r"(^|[._])device$")
_FORM = frozenset("shape size dtype device numel dim ndim item tolist requires_grad".split())


@unchanging(frozen=True, slots=True)
class Mover:
    """A method that moves what its class keeps."""

    function: ast.FunctionDef
    moves: dict[str, ast.Assign]
    """By the name of the attribute."""


@unchanging(frozen=True, slots=True)
class Kept:
    name: str
    at: ast.stmt
    """Where the class says it, or keeps it."""


def movers(module: Module, cls: ast.ClassDef) -> Iterator[Mover]:
    for each in cls.body:
        if not isinstance(each, ast.FunctionDef) or each.name not in BRINGERS:
            continue
        if not _BY_NAME.search(module.text(each)):
            yield Mover(each, dict(_moves(module, each)))


def _moves(module: Module, function: ast.FunctionDef) -> Iterator[tuple[str, ast.Assign]]:
    """`self.x = self.x.to(device)`, also of a copy of `self` and of what `self.x` keeps."""
    for statement in module.nodes(ast.Assign, function):
        target: ast.AST = statement.targets[0]
        while isinstance(target, ast.Attribute) and isinstance(target.value, ast.Attribute):
            target = target.value
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            calls = module.nodes(ast.Call, statement)
            if any(called(each) in _MOVES for each in calls):
                yield target.attr, statement


def left_behind(module: Module, cls: ast.ClassDef, mover: Mover) -> Sequence[Kept]:
    """Tensors of the class that the method does not name, and nothing else moves."""
    function = mover.function
    named = {each.attr for each in module.nodes(ast.Attribute, function)}
    named |= {str(each.value) for each in module.nodes(ast.Constant, function)}
    facts = module.class_facts(cls)
    named |= facts.registered if facts is not None and facts.is_module else set()
    found: dict[str, Kept] = {}
    for each in (*_fields(module, cls, mover), *_attributes(module, cls, mover)):
        if each.name not in named and not is_moved(module, cls, each.name):
            found.setdefault(each.name, each)
    return list(found.values())


def _fields(module: Module, cls: ast.ClassDef, mover: Mover) -> Iterator[Kept]:
    """Fields of a dataclass that are tensors, if one of those that are moved is."""
    if not any(map(partial(_makes_fields, module), cls.decorator_list)):
        return
    said = [each for each in cls.body if isinstance(each, ast.AnnAssign)]
    moved = [each for each in said if module.text(each.target) in mover.moves]
    if mover.moves and not any(_is_tensor(module, each.annotation) for each in moved):
        return
    for each in said:
        if _is_tensor(module, each.annotation):
            yield Kept(module.text(each.target), each)


def _makes_fields(module: Module, decorator: ast.expr) -> bool:
    """`@dataclass`, `@dataclass(frozen=True)`, `@tensorclass`, under any name."""
    maker = decorator.func if isinstance(decorator, ast.Call) else decorator
    return "class" in module.qualified(maker).rpartition(".")[2]


def _is_tensor(module: Module, said: ast.expr) -> bool:
    """`Tensor`, `Optional[Tensor]`, `Tensor | None`, and `Float[Tensor, "rows 3"]` of jaxtyping."""
    if isinstance(said, ast.BinOp):
        return _is_tensor(module, said.left)
    if isinstance(said, ast.Subscript):
        if isinstance(said.slice, ast.Tuple):
            first, second = said.slice.elts[0], said.slice.elts[-1]
            return isinstance(second, ast.Constant) and _is_tensor(module, first)
        return module.qualified(said.value).endswith("Optional") and _is_tensor(module, said.slice)
    return module.qualified(said).endswith("Tensor") or module.text(said).endswith("Tensor")


def _attributes(module: Module, cls: ast.ClassDef, mover: Mover) -> Iterator[Kept]:
    for store in _stores(module, cls):
        statement = module.statement_of(store)
        sure = (
            _keeps_tensor(module, store)
            or _is_made_like(module, cls, mover, statement)
            or _is_used_like(module, cls, mover, store.attr)
        )
        if sure and _is_read(module, cls, store):
            yield Kept(store.attr, statement)


def _stores(module: Module, cls: ast.ClassDef) -> Iterator[ast.Attribute]:
    """While the object is set up."""
    for node in module.nodes(ast.Attribute, cls):
        function = module.function_of(node)
        own = isinstance(node.value, ast.Name) and node.value.id == "self"
        first = function is not None and function.name in ("__init__", "__post_init__")
        if own and first and isinstance(node.ctx, ast.Store) and module.class_of(node) is cls:
            yield node


def _keeps_tensor(module: Module, store: ast.Attribute) -> bool:
    function = module.function_of(store)
    held = module.places(function).seen.get(store) if function is not None else None
    return held is not None and is_plain_tensor(held)


def is_plain_tensor(held: Held) -> bool:
    """With a dimension, made here or given, and no parameter or buffer."""
    if held.what is not What.TENSOR or held.may_be_scalar or not held.places:
        return False
    own = {"parameter", "buffer"}
    return all(each.where in _GOES_ALONG and each.subject not in own for each in held.places)


def _is_made_like(module: Module, cls: ast.ClassDef, mover: Mover, statement: ast.stmt) -> bool:
    """Bound together with one that is moved, or made on a device as one that is moved was."""
    value = getattr(statement, "value", None)
    moved = [each for each in _stores(module, cls) if each.attr in mover.moves]
    rest = _moves_the_rest(module, mover)
    if isinstance(value, ast.Call) and any(
        module.statement_of(each) is statement and not (rest and _is_of_a_part(mover, each.attr))
        for each in moved
    ):
        return True
    if not _is_given_a_device(module, value) or rest:
        return False
    others = [getattr(module.statement_of(each), "value", None) for each in moved]
    return any(_is_given_a_device(module, each) for each in others)


def _is_of_a_part(mover: Mover, name: str) -> bool:
    """`self.head.steps = fn(self.head.steps)`: `self.head` is a module, which its base moves."""
    target = mover.moves[name].targets[0]
    return isinstance(target, ast.Attribute) and isinstance(target.value, ast.Attribute)


def _is_used_like(module: Module, cls: ast.ClassDef, mover: Mover, name: str) -> bool:
    if not mover.moves or _moves_the_rest(module, mover):
        return False
    return is_treated_like_one_of(module, cls, name, mover.moves.keys())


def _is_given_a_device(module: Module, value: ast.expr | None) -> bool:
    """One that is passed on: of torch, only what makes tensors has a place that can be moved."""
    return any(
        not module.qualified(each.func).startswith("torch.")
        and any(_is_device(module, said) for said in given(each))
        for each in ast.walk(value or ast.Pass())
        if isinstance(each, ast.Call)
    )


def _is_device(module: Module, said: ast.expr) -> bool:
    return bool(_DEVICE.search(module.text(said))) or is_used_as_device(module, said)


def _moves_the_rest(module: Module, mover: Mover) -> bool:
    """`super().to(device)` moves modules that the class keeps."""
    return any(
        called(each) in BRINGERS and "super(" in module.text(each.func)
        for each in module.nodes(ast.Call, mover.function)
    )


def _is_read(module: Module, cls: ast.ClassDef, store: ast.Attribute) -> bool:
    """Another method, or code that is given the object, reads more of it than its form."""
    for node in module.nodes(ast.Attribute):
        if node.attr == store.attr and isinstance(node.ctx, ast.Load):
            above = module.parent(node)
            asks = isinstance(above, ast.Attribute) and above.attr in _FORM
            if module.function_of(node) is not module.function_of(store) and not asks:
                return True
    return False
