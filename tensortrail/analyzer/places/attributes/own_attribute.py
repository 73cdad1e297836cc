"""What an object keeps under a name, and whether a move of the object takes it along."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Protocol

from tensortrail.analyzer.places.attributes.added_members import added_members, registers_parts
from tensortrail.analyzer.places.attributes.by_name import goes_past_the_module, may_be_registered
from tensortrail.analyzer.places.attributes.moved_attributes import (
    is_moved,
    may_be_moved,
    moved_by_the_class,
)
from tensortrail.analyzer.places.attributes.moved_in_place import moved_in_place
from tensortrail.analyzer.places.attributes.stored_attributes import (
    is_set_outside,
    lasting,
    lists_of_states,
    passed_to_register,
    registered,
    stores_of_class,
)
from tensortrail.analyzer.places.held.joins import join, member
from tensortrail.analyzer.places.libraries.components import COMPONENT
from tensortrail.analyzer.syntax.tree import SCOPES, Tree
from tensortrail.rules.places import NUMBER, UNKNOWN_HELD, FunctionPlaces, Held, Place, What, Where
from tensortrail.rules.set_by_name import is_one_of_many
from tensortrail.rules.shared.functions import is_property
from tensortrail.rules.view import FunctionNode


class ClassFile(Protocol):
    tree: Tree

    def places(self, function: FunctionNode) -> FunctionPlaces: ...
    def is_module(self, cls: ast.ClassDef) -> bool: ...


def own_attribute(file: ClassFile, cls: ast.ClassDef, name: str) -> Held | None:
    """What the class itself assigns to `self.name`; None if it assigns nothing."""
    if name in file.tree.once(registered, cls):
        return Held(What.TENSOR, frozenset({Place(Where.SELF, "buffer")}), path=f"self.{name}")
    if name in file.tree.once(lists_of_states, cls):
        return Held(What.BOX, each=Held(What.TENSOR, frozenset({Place(Where.SELF, "buffer")})))
    stores = lasting(file.tree, file.tree.once(stores_of_class, cls).get(name, []))
    if is_one_of_many(name) and file.tree.once(may_be_registered, cls):
        return None
    passed = file.tree.once(passed_to_register, cls).get(name, ()) if not stores else ()
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
    if name in file.tree.once(moved_by_the_class, cls) or is_set_outside(stores):
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
    if held.what is What.MODULE and (along or (held.places and is_moved(file.tree, cls, name))):
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
    lost = held.what is What.BOX or may_be_moved(tree, cls, name)
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
