"""The places of one file: inferred function by function, when a rule asks."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from tensortrail.analyzer.facts.classes import kind_of_class
from tensortrail.analyzer.facts.project_file import Kinds, ProjectFile
from tensortrail.analyzer.facts.project_file import Place as InProject
from tensortrail.analyzer.places import outside
from tensortrail.analyzer.places.arguments import argument_of
from tensortrail.analyzer.places.attributes import own_attribute
from tensortrail.analyzer.places.components import is_of_library, may_be_model
from tensortrail.analyzer.places.globals import Globals
from tensortrail.analyzer.places.made_objects import maker_of
from tensortrail.analyzer.places.results import CalledAs, Callee
from tensortrail.analyzer.places.statements import Inference
from tensortrail.analyzer.places.stored_attributes import class_kept
from tensortrail.analyzer.syntax.tree import SCOPES, Tree
from tensortrail.rules.places import UNKNOWN_HELD, FunctionPlaces, Held, Place, What, Where
from tensortrail.rules.project_facts import ClassFacts
from tensortrail.rules.shared.asked_as_modules import asked_as_modules
from tensortrail.rules.text_of import text_of
from tensortrail.rules.view import FunctionNode, Module
from tensortrail.rules.words import Kind

A = TypeVar("A")
_DEEPEST = 6
"""Bases of bases that are asked for a method."""
_SETS_DEFAULT = ("set_default_device", "set_default_tensor_type")


class PlacesOfFile:
    """Implements the `World` of the inference over one file of a project."""

    def __init__(self, module: ProjectFile) -> None:
        self._module = module
        self.tree: Tree = module.tree
        self._functions: dict[FunctionNode, FunctionPlaces] = {}
        self._running: list[FunctionNode] = []
        self._early: dict[FunctionNode, bool] = {}
        """Functions that asked about one which was not through; whether they were run again."""
        self._attributes: dict[tuple[ast.ClassDef, str], Held] = {}
        self._how: dict[FunctionNode, CalledAs] = {}
        self._globals = Globals()
        self._asked_as_modules: frozenset[str] | None = None
        self.sets_default_device = any(
            name in module.source.data.decode("utf-8", "replace") for name in _SETS_DEFAULT
        )

    # --- what rules ask ------------------------------------------------------------------
    def places(self, function: FunctionNode) -> FunctionPlaces:
        """Of the outermost function around: functions inside of it are run with it."""
        outer = self.tree.outermost_function_of(function) or function
        if outer in self._running:
            self._note_early(outer)
        if outer not in self._functions:
            self._functions[outer] = FunctionPlaces()  # recursion ends here
            if self._module.project.is_deep:
                del self._functions[outer]
                return FunctionPlaces()
            self._module.project.depth += 1
            self._module.running += 1
            self._running.append(outer)
            try:
                self._functions[outer] = self._inferred(outer)
            except RecursionError:
                if self._module.project.depth > 1:
                    del self._functions[outer]  # the function that asked may be the deep one
                    raise
                where = f"`{outer.name}`, which is nested too deeply"
                self._module.project.limit.notes.append(f"the places in {where}")
            finally:
                self._running.pop()
                self._module.running -= 1
                self._module.project.depth -= 1
        known = self._functions[outer]
        if self._early and not self._running:
            self._forget_early()
        return known

    def _note_early(self, asked: FunctionNode) -> None:
        """`__init__` asks for what `start` gives, and `start` for what `__init__` stores."""
        self._module.asked_early += 1
        for each in self._running[self._running.index(asked) + 1 :]:
            self._early.setdefault(each, False)

    def _forget_early(self) -> None:
        """Now that all are through, those that asked too early are run again, once, when asked."""
        again = [each for each, done in self._early.items() if not done]
        for each in again:
            self._early[each] = True
            self._functions.pop(each, None)
        classes = {self.tree.parent(each) for each in again}
        stale = [key for key in self._attributes if key[0] in classes]
        for key in stale:
            del self._attributes[key]

    def _inferred(self, function: FunctionNode) -> FunctionPlaces:
        cls = self.tree.parent(function)
        inference = Inference(self, cls if isinstance(cls, ast.ClassDef) else None)
        inference.run(function)
        met = inference.meetings
        return FunctionPlaces(inference.seen, met.all(), met.passed(), inference.returns)

    def passed(self, function: FunctionNode, parameter: str) -> Sequence[tuple[FunctionNode, Held]]:
        """What callers in this file pass for a parameter, with the caller."""
        found: list[tuple[FunctionNode, Held]] = []
        top = cast("Module", self._module).top
        for call in self._module.calls(function.name):
            if self.called_by(call) is not function:
                continue
            caller = self.tree.outermost_function_of(call) or top
            given = argument_of(self.tree, function, call, parameter)
            if given is not None:
                found.append((caller, self.places(caller).seen.get(given, UNKNOWN_HELD)))
        return found

    # --- what the inference asks ---------------------------------------------------------
    def qualified(self, node: ast.AST) -> str:
        return self._module.qualified(node)

    def global_held(self, name: str) -> Held:
        return self._globals.held(self, name)

    def is_module(self, cls: ast.ClassDef) -> bool:
        facts = self._module.class_facts(cls)
        return facts is not None and facts.is_module

    def is_module_named(self, dotted: str) -> bool:
        if is_of_library(dotted):
            return True
        if not may_be_model(dotted.rpartition(".")[2]):
            return False
        facts = self._module.class_facts(dotted)
        return facts is not None and facts.is_module

    def is_no_tensor(self, dotted: str) -> bool:
        if "." not in dotted or dotted.startswith("torch."):
            return False
        return kind_of_class(self._module.class_facts(dotted)) is Kind.OTHER

    def is_asked_as_module(self, node: ast.expr) -> bool:
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return False
        if self._asked_as_modules is None:
            self._asked_as_modules = asked_as_modules(self._module)
        return text_of(node) in self._asked_as_modules

    def is_called(self, node: ast.expr) -> bool:
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        text = text_of(node)
        return any(text_of(each.func) == text for each in self._module.calls(name))

    def attribute(self, cls: ast.ClassDef, name: str) -> Held:
        key = (cls, name)
        if key not in self._attributes:
            self._attributes[key] = UNKNOWN_HELD  # an attribute defined by itself ends here
            self._module.running += 1
            try:
                found = own_attribute(self, cls, name)
                self._attributes[key] = found if found is not None else self._inherited(cls, name)
            finally:
                self._module.running -= 1
        return self._attributes[key]

    def _inherited(self, cls: ast.ClassDef, name: str) -> Held:
        for base in cls.bases:
            held = self._attribute_in(self._place(self.qualified(base), ast.ClassDef), name)
            if held is not None:
                return held
            if self.qualified(base).startswith("torch.nn.") and name in ("weight", "bias"):
                place = Place(Where.SELF, "parameter")
                return Held(What.TENSOR, frozenset({place}), path=f"self.{name}")
        return UNKNOWN_HELD

    def is_kernel(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call) and node.args:  # `wrap_triton(kernel)[grid](...)`
            node = node.args[0]
        return bool(self._ask(self._place(self.qualified(node), SCOPES), outside.is_compiled))

    def callee(self, call: ast.Call) -> Callee | None:
        if any(isinstance(each, ast.Starred) for each in call.args):
            return None
        return self._as_callee(self.runs(call))

    def callee_of(self, cls: str, method: str) -> Callee | None:
        return self._as_callee(self._method_in(self._place(cls, ast.ClassDef), method))

    def _as_callee(self, found: FunctionNode | InProject | None) -> Callee | None:
        if found is None:
            return None
        if not isinstance(found, InProject):
            if found not in self._how:
                self._how[found] = outside.called_as(self._module, found)
            return Callee(self._how[found], partial(self.places, found), foreign=False)
        said = self._ask(found, outside.called_as)
        inferred = partial(self._places_in, found)
        return Callee(said, inferred, foreign=True) if said is not None else None

    def attribute_of(self, cls: str, name: str) -> Held:
        return self._attribute_in(self._place(cls, ast.ClassDef), name) or UNKNOWN_HELD

    def runs(self, call: ast.Call) -> FunctionNode | InProject | None:
        """The function of the project that the call runs, if it is known: of this file, or where
        it is in another one."""
        dotted = self.qualified(call.func)
        first, _, rest = dotted.partition(".")
        if first == "self" and rest:
            cls = self.tree.class_of(call)
            return self._method_of_self(cls, rest) if cls is not None else None
        if not dotted or first in ("torch", "numpy", "math", "os", "self", "cls"):
            return None
        place = self._place(dotted, SCOPES)
        found: FunctionNode | InProject | None = self._own_or_place(place)
        return found

    def called_by(self, call: ast.Call) -> FunctionNode | InProject | None:
        """The same, also of an object that is made just there, or under a name of its own:
        `Net(8).step(x)`, `net.step(x)`."""
        func = call.func
        maker = maker_of(self.tree, func.value) if isinstance(func, ast.Attribute) else None
        if maker is None:
            return self.runs(call)
        place = self._place(self.qualified(maker.func), ast.ClassDef)
        return self._method_in(place, func.attr)  # type: ignore[attr-defined]

    def made_by(self, call: ast.Call) -> InProject | None:
        """The class of which the call makes an object."""
        return self._place(self.qualified(call.func), ast.ClassDef)

    def _method_of_self(self, cls: ast.ClassDef, name: str) -> FunctionNode | InProject | None:
        """`self.step()`, and `self.detect.step()` of an object that the class makes."""
        kept, _, of_kept = name.partition(".")
        if not of_kept:
            return self.method(cls, name)
        maker = class_kept(self.tree, cls, kept) if "." not in of_kept else None
        place = self._place(self.qualified(maker), ast.ClassDef) if maker is not None else None
        return self._method_in(place, of_kept)

    def method(
        self, cls: ast.ClassDef, name: str, depth: int = 0
    ) -> FunctionNode | InProject | None:
        """The method of the class or of a base of it."""
        for statement in cls.body:
            if isinstance(statement, SCOPES) and statement.name == name:
                return statement
        for base in cls.bases if depth < _DEEPEST else ():
            place = self._place(self.qualified(base), ast.ClassDef)
            method = self._method_in(place, name, depth + 1)
            if method is not None:
                return method
        return None

    # --- what it asks of other files -----------------------------------------------------
    def _attribute_in(self, cls: InProject | None, name: str) -> Held | None:
        """None where nothing is known."""
        own = self._own_or_place(cls)
        if isinstance(own, ast.ClassDef):
            held = self.attribute(own, name)
            return held if held != UNKNOWN_HELD else None
        return self._ask(cls, outside.attribute_of, name)

    def _places_in(self, function: InProject) -> FunctionPlaces:
        return self._ask(function, outside.places_of) or FunctionPlaces()

    def _method_in(
        self, cls: InProject | None, name: str, depth: int = 0
    ) -> FunctionNode | InProject | None:
        own = self._own_or_place(cls)
        if isinstance(own, ast.ClassDef):
            return self.method(own, name, depth)
        place = self._ask(cls, outside.method_of, name, str(depth))
        found: FunctionNode | InProject | None = self._own_or_place(place)
        return found

    def _own_or_place(self, place: InProject | None) -> Any:
        """The definition itself, if it is one of this file."""
        if place is None or place.path != self._module.path:
            return place
        return self._module.definition_named(place.name)

    def _ask(self, place: InProject | None, question: Callable[..., A], *words: str) -> A | None:
        if place is None:
            return None
        return self._module.project.asked_at(self._module, place, question, *words)

    def _place(self, dotted: str, kinds: Kinds) -> InProject | None:
        """Where the class or function is that the name stands for."""
        if not dotted:
            return None
        local = dotted.removeprefix(f"{self._module.name}.") if self._module.name else dotted
        node = self._module.definition_named(local)
        if node is not None:
            return InProject(self._module.path, local) if isinstance(node, kinds) else None
        if "." not in dotted or dotted.startswith(("torch.", "numpy.")):
            return None
        return self._module.project.defined(self._module, dotted, kinds)

    def made(self, call: ast.Call, dotted: str) -> Held | None:
        last = dotted.rpartition(".")[2]
        if not last[:1].isupper():
            return None
        facts = self._module.class_facts(dotted)
        if facts is None:
            return None
        if not facts.is_module:
            return self._object(call, facts)
        cls = self.tree.class_of(call)
        is_part = cls is not None and (bool(cls.bases) or self.is_module(cls))
        made = Place(Where.SELF) if is_part else Place(Where.DEFAULT, by=call)
        known = is_part or not (self.sets_default_device or self._puts_itself(dotted))
        return Held(What.MODULE, frozenset({made} if known else ()), cls=facts.name)

    def _object(self, call: ast.Call, facts: ClassFacts) -> Held | None:
        """An object of a plain class of the project, all of whose bases are known."""
        if not facts.complete or facts.is_wrapper or self._place(facts.name, ast.AST) is None:
            return None
        made = None if self.sets_default_device else call
        return Held(What.OBJECT, cls=facts.name, made=made)

    def _puts_itself(self, dotted: str) -> bool:
        """The class asks for a device, or moves something, while an object is set up."""
        cls = self._place(dotted, ast.ClassDef)
        if cls is None:
            return True
        init = self._method_in(cls, "__init__")
        if isinstance(init, SCOPES):
            return outside.puts_something(self._module, init)
        return bool(self._ask(init, outside.puts_something))
