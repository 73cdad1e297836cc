"""What an object keeps under a name, and whether a move of the object takes it along."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

from tensortrail.analyzer.places.added_members import added_members, registers_parts
from tensortrail.analyzer.places.by_name import (
    goes_past_the_module,
    may_be_registered,
    stored_by_name,
)
from tensortrail.analyzer.places.components import COMPONENT
from tensortrail.analyzer.places.joins import join, member
from tensortrail.analyzer.places.library import names
from tensortrail.analyzer.places.moved_in_place import moved_in_place
from tensortrail.analyzer.syntax.tree import SCOPES, Tree
from tensortrail.rules.places import NUMBER, UNKNOWN_HELD, FunctionPlaces, Held, Place, What, Where
from tensortrail.rules.set_by_name import is_one_of_many
from tensortrail.rules.shared.functions import is_property
from tensortrail.rules.shared.moves import MOVE_METHODS, TO_DEVICE
from tensortrail.rules.text_of import text_of
from tensortrail.rules.view import FunctionNode

SETTING_UP = frozenset({"__init__", "__post_init__", "setup", "build", "post_init"})
MOVERS = MOVE_METHODS | {"_replicate_for_data_parallel"}
_GIVE_THE_MODULE = frozenset("eval train requires_grad_ half float double bfloat16 to cuda".split())
_IN_THE_MODULE = frozenset({"register_buffer", "register_parameter"})
_STATES = frozenset({"add_state"})
"""Of a metric of torchmetrics, which moves its states."""


class ClassFile(Protocol):
    tree: Tree

    def places(self, function: FunctionNode) -> FunctionPlaces: ...
    def is_module(self, cls: ast.ClassDef) -> bool: ...


Store: TypeAlias = tuple[FunctionNode, ast.expr]
"""Where the class assigns to an attribute of `self`: the attribute, or the value of one that is set
by name."""


def own_attribute(file: ClassFile, cls: ast.ClassDef, name: str) -> Held | None:
    """What the class itself assigns to `self.name`; None if it assigns nothing."""
    if name in file.tree.once(registered, cls):
        return Held(What.TENSOR, frozenset({Place(Where.SELF, "buffer")}), path=f"self.{name}")
    if name in file.tree.once(_lists_of_states, cls):
        return Held(What.BOX, each=Held(What.TENSOR, frozenset({Place(Where.SELF, "buffer")})))
    stores = _lasting(file.tree, file.tree.once(stores_of_class, cls).get(name, []))
    if is_one_of_many(name) and file.tree.once(may_be_registered, cls):
        return None
    passed = file.tree.once(_passed_to_register, cls).get(name, ()) if not stores else ()
    for function, value in passed:
        held = file.places(function).seen.get(value, UNKNOWN_HELD)
        if held.what is What.MODULE:
            return _kept(file, cls, held, name)
    if not stores:
        return _of_property(file, cls, name) or _annotated(cls, name)
    found: Held | None = None
    for function, target in stores:
        held = file.places(function).seen.get(target, UNKNOWN_HELD)
        if held.what is What.NONE:
            found = found or held
            continue
        if _is_kept_by_the_module(held):
            past = goes_past_the_module(file.tree, target)
            held = _with_its_members(file, cls, held, name)
            return UNKNOWN_HELD if past else _kept(file, cls, held, name)
        found = held if found is None else join(found, held)
    if found is None or found.what is What.NONE:
        return UNKNOWN_HELD
    if found.what is What.OBJECT:
        return replace(found, path=f"self.{name}")
    found = _with_its_members(file, cls, found, name)
    if not file.is_module(cls):
        moved = moved_in_place(file, cls, name) if found.what is What.UNKNOWN else None
        return moved or _of_object(file.tree, cls, found, name)
    if name in file.tree.once(moved_by_the_class, cls) or _is_set_outside(stores):
        return Held(found.what, rank=found.rank)
    return _stays(found, name, stores[0][1])


def _with_its_members(file: ClassFile, cls: ast.ClassDef, held: Held, name: str) -> Held:
    """A list or `ModuleList` to which methods of the class add modules of one kind."""
    if held.what is not What.BOX and held.cls != "box":
        return held
    before = member(held) if held.what is What.BOX else held.each or Held(What.NONE)
    for function, value in file.tree.once(added_members, cls).get(name, ()):
        before = join(before, file.places(function).seen.get(value, UNKNOWN_HELD))
    if before.what is not What.MODULE or not before.cls:
        return held
    if held.what is not What.BOX:
        return replace(held, each=Held(What.MODULE, cls=before.cls))
    moved = file.tree.once(registers_parts, cls)
    own = replace(before, places=frozenset({Place(Where.SELF)}))
    return Held(What.BOX, each=own if moved else None)


def _is_kept_by_the_module(held: Held) -> bool:
    if held.what is What.MODULE:
        return True
    return held.what is What.TENSOR and any(
        each.where is Where.SELF and each.subject in ("parameter", "buffer") for each in held.places
    )


def _kept(file: ClassFile, cls: ast.ClassDef, held: Held, name: str) -> Held:
    """A submodule, wherever it came from, goes along; one of a plain object stays if it was made
    there and no method moves it."""
    if _is_loss_with_weights(file, cls, held, name):
        return replace(held, path=f"self.{name}")
    of_caller = any(each.where is Where.OF for each in held.places)
    along = of_caller or file.is_module(cls) or held.cls != COMPONENT  # moved with others, or not
    if held.what is What.MODULE and (along or (held.places and _is_moved(file.tree, cls, name))):
        held = replace(held, places=frozenset({Place(Where.SELF)}))
    return replace(held, path=f"self.{name}", moved=None, was=frozenset())


def _is_loss_with_weights(file: ClassFile, cls: ast.ClassDef, held: Held, name: str) -> bool:
    """`self.loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0]))` of a plain class, whose
    methods only call it: nothing moves it, and nothing else has the weights."""
    plain = not cls.bases and not file.is_module(cls)
    return held.cls == "weighted" and plain and _is_only_called(file.tree, cls, name)


def _is_only_called(tree: Tree, cls: ast.ClassDef, name: str) -> bool:
    """No method takes it otherwise than to call it: none moves it, by itself or in a loop."""
    for node in tree.nodes(ast.Attribute, cls):
        if node.attr == name and isinstance(node.ctx, ast.Load):
            above = tree.parent(node)
            if not isinstance(above, ast.Call) or above.func is not node:
                return False
    return True


def _is_moved(tree: Tree, cls: ast.ClassDef, name: str) -> bool:
    """Some method says `self.name.to(...)`, `self.name.eval().to(...)`, or moves a part of it."""
    return name in tree.once(_moved_in_methods, cls)


def _moved_in_methods(tree: Tree, cls: ast.ClassDef) -> frozenset[str]:
    """The attributes on the way to each object that the class moves. `layers[0].to(device)` after
    `layers = self.model.layers` moves a part of `model`."""
    stands_for: dict[str, frozenset[str]] = {}
    for assign in tree.nodes(ast.Assign, cls):
        for target in assign.targets:
            if isinstance(target, ast.Name):
                known = stands_for.get(target.id, frozenset())
                stands_for[target.id] = known | _on_the_way(assign.value, stands_for)
    moves = (
        each.func for each in tree.nodes(ast.Call, cls) if isinstance(each.func, ast.Attribute)
    )
    owners = [the_module_itself(each.value) for each in moves if each.attr in TO_DEVICE]
    return frozenset().union(*(_on_the_way(each, stands_for) for each in owners))


def _on_the_way(node: ast.expr, stands_for: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """`model` and `layers` for `self.model.layers[0]`."""
    found = set[str]()
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        node = node.value
    return (
        stands_for.get(node.id, frozenset()) | found
        if isinstance(node, ast.Name)
        else frozenset(found)
    )


def the_module_itself(node: ast.expr) -> ast.expr:
    """`model` of `model.eval().half()`: methods of a module that give the module back."""
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _GIVE_THE_MODULE
    ):
        node = node.func.value
    return node


def _passed_to_register(
    tree: Tree, cls: ast.ClassDef
) -> dict[str, list[tuple[FunctionNode, ast.expr]]]:
    """`self.register_modules(name=value)`, as pipelines of diffusers keep their components."""
    found: dict[str, list[tuple[FunctionNode, ast.expr]]] = {}
    for call in tree.nodes(ast.Call, cls):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr == "register_modules":
            function = tree.outermost_function_of(call)
            for keyword in call.keywords if function is not None else ():
                if keyword.arg and function is not None:
                    found.setdefault(keyword.arg, []).append((function, keyword.value))
    return found


def registered(tree: Tree, cls: ast.ClassDef) -> set[str]:
    found = set(_named_by(tree, cls, _IN_THE_MODULE))
    states = _named_by(tree, cls, _STATES)
    return found | {name for name, call in states.items() if not _is_list(call)}


def _lists_of_states(tree: Tree, cls: ast.ClassDef) -> set[str]:
    """`self.add_state("scores", default=[])` of a metric, which moves the tensors in it."""
    return {name for name, call in _named_by(tree, cls, _STATES).items() if _is_list(call)}


def _named_by(tree: Tree, cls: ast.ClassDef, methods: frozenset[str]) -> dict[str, ast.Call]:
    found: dict[str, ast.Call] = {}
    for call in tree.nodes(ast.Call, cls):
        func = call.func
        if isinstance(func, ast.Attribute) and func.attr in methods:
            given = [each.value for each in call.keywords if each.arg == "name"]
            first = call.args[0] if call.args else next(iter(given), None)
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                found[first.value] = call
    return found


def _is_list(state: ast.Call) -> bool:
    given = [each.value for each in state.keywords if each.arg == "default"]
    return any(isinstance(each, ast.List) for each in (*state.args[1:2], *given))


def stores_of_class(tree: Tree, cls: ast.ClassDef) -> dict[str, list[Store]]:
    """Where the class assigns to attributes of `self`, by their name."""
    found: dict[str, list[Store]] = {}
    for node in tree.nodes(ast.Attribute, cls):
        if not isinstance(node.ctx, ast.Store):
            continue
        if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            continue
        function = tree.outermost_function_of(node)
        if function is not None:
            found.setdefault(node.attr, []).append((function, node))
    for name, function, value in stored_by_name(tree, cls):
        found.setdefault(name, []).append((function, value))
    return found


def class_kept(tree: Tree, cls: ast.ClassDef, name: str) -> ast.expr | None:
    """`Detect` of `self.detect = Detect(...)`, the only thing that the class keeps there."""
    stores = tree.once(stores_of_class, cls).get(name, [])
    above = tree.parent(stores[0][1]) if len(stores) == 1 else None
    made = above.value if isinstance(above, (ast.Assign, ast.AnnAssign)) else None
    return made.func if isinstance(made, ast.Call) else None


def _lasting(tree: Tree, stores: Sequence[Store]) -> list[Store]:
    """Without those that leave it where it is, and those that the same block puts another over."""
    telling = [each for each in stores if not _is_made_of_itself(tree, each[1])]
    if len(telling) < 2:
        return telling
    last = {_block_of(tree, target): target for _, target in telling}
    return [each for each in telling if last[_block_of(tree, each[1])] is each[1]]


def _block_of(tree: Tree, target: ast.expr) -> tuple[ast.AST | None, str]:
    """A statement of several targets, or one within another, is a block of its own."""
    statement = tree.parent(target)
    if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return target, ""
    above = tree.parent(statement)
    fields = ("body", "orelse", "finalbody")
    return above, next((each for each in fields if statement in getattr(above, each, ())), "")


def _is_made_of_itself(tree: Tree, target: ast.expr) -> bool:
    """`self.table = self.table.view(n, 4)` and `self.table += 1` leave it where it was."""
    above = tree.parent(target)
    if not isinstance(above, ast.Assign) or target is above.value:
        return isinstance(above, ast.AugAssign)
    node = above.value
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in names("keeps", "shapes"):
            return False
        node = node.func.value
    return isinstance(node, ast.Attribute) and text_of(node) == text_of(target)


def _of_property(file: ClassFile, cls: ast.ClassDef, name: str) -> Held | None:
    """What a property gives, if it is a tensor or module that the object keeps."""
    for statement in cls.body:
        if isinstance(statement, SCOPES) and statement.name == name:
            given = file.places(statement).returns if is_property(statement) else None
            kept = given is not None and given.what in (What.TENSOR, What.MODULE)
            return given if kept else None
    return None


def _annotated(cls: ast.ClassDef, name: str) -> Held | None:
    """`weight: torch.Tensor` in the body of a module: a buffer or parameter set elsewhere."""
    for statement in cls.body:
        if isinstance(statement, ast.Assign):
            targets = [each.id for each in statement.targets if isinstance(each, ast.Name)]
            if name in targets:
                return NUMBER if isinstance(statement.value, ast.Constant) else UNKNOWN_HELD
        if isinstance(statement, (ast.AnnAssign, *SCOPES)):
            own = getattr(statement, "name", getattr(getattr(statement, "target", None), "id", ""))
            if own == name:
                return UNKNOWN_HELD
    return None


def moved_by_the_class(tree: Tree, cls: ast.ClassDef) -> set[str]:
    """Names that an override of `to`, `_apply` and the like mentions."""
    found: set[str] = set()
    for statement in cls.body:
        if isinstance(statement, SCOPES) and statement.name in MOVERS:
            found.update(each.attr for each in tree.nodes(ast.Attribute, statement))
            for each in tree.nodes(ast.Constant, statement):
                if isinstance(each.value, str):
                    found.add(each.value)
            if "__dict__" in found or any(
                isinstance(each.func, ast.Name) and each.func.id in ("vars", "setattr")
                for each in tree.nodes(ast.Call, statement)
            ):
                found.update(each.attr for each in tree.nodes(ast.Attribute, cls))
    return found


def _is_set_outside(stores: Sequence[Store]) -> bool:
    """Some method other than those that set the object up assigns it: it may have moved."""
    return any(function.name not in SETTING_UP for function, _ in stores)


def _stays(held: Held, name: str, store: ast.expr) -> Held:
    """A plain attribute: it keeps the place it was made on."""
    if held.what is What.BOX:
        parts = tuple(_stays(each, name, store) for each in held.parts or ())
        each = _stays(held.each, name, store) if held.each is not None else None
        return replace(held, parts=parts if held.parts is not None else None, each=each)
    made = {Where.DEFAULT, Where.HOST, Where.STAYS}
    if held.what is What.MODULE and any(each.where is Where.SELF for each in held.places):
        return held
    if held.what is What.DEVICE:
        return UNKNOWN_HELD
    if _is_computed_of_weights(held, store):
        held = held.at(Place(Where.DEFAULT, by=store))
    if held.places and all(each.where in made for each in held.places):
        by = next((each.by for each in held.places if each.by is not None), store)
        place = Place(Where.STAYS, name, by)
        return replace(held, places=frozenset({place}), path=f"self.{name}", moved=None)
    return Held(held.what, rank=held.rank, path=f"self.{name}", cls=held.cls)


def _is_computed_of_weights(held: Held, store: ast.expr) -> bool:
    """Made of parameters or buffers while the module is set up: a tensor of its own, which lies
    where they lay then."""
    own = held.what is What.TENSOR and not held.path and held.only is not None
    return own and held.only is not None and held.only == Place(Where.SELF)


def _of_object(tree: Tree, cls: ast.ClassDef, held: Held, name: str) -> Held:
    """What a plain object keeps: places that refer to arguments of its constructor are lost."""
    lost = held.what is What.BOX or _may_be_moved(tree, cls, name)
    given = held.what in (What.TENSOR, What.UNKNOWN) and not lost
    if given and held.places and all(each.where is Where.OF for each in held.places):
        path = f"self.{name}"  # wherever the one has it who made the object
        return Held(held.what, frozenset({Place(Where.OF, path)}), held.rank, path)
    if lost or any(each.where in (Where.OF, Where.LOCAL) for each in held.places):
        return Held(held.what, rank=held.rank)
    made = {Where.DEFAULT, Where.HOST}
    if held.what is What.TENSOR and all(each.where in made for each in held.places):
        places = frozenset(replace(each, subject=name) for each in held.places)
        return replace(held, places=places)
    return held


def _may_be_moved(tree: Tree, cls: ast.ClassDef, name: str) -> bool:
    """A method of the class moves it, by its name or with everything else that is kept."""
    return name in tree.once(moved_by_the_class, cls) or tree.once(_sets_any_name, cls)


def _sets_any_name(tree: Tree, cls: ast.ClassDef) -> bool:
    """`setattr(self, name, value)` and `self.__dict__` may stand for every attribute."""
    by_name = any(
        isinstance(each.func, ast.Name) and each.func.id in ("setattr", "vars")
        for each in tree.nodes(ast.Call, cls)
    )
    return by_name or any(each.attr == "__dict__" for each in tree.nodes(ast.Attribute, cls))
