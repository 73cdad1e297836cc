"""What other files see of the places of a file: questions that can be named, and asked again."""

from __future__ import annotations

import ast

from tensortrail.analyzer.facts.project_file import Place as InProject
from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.places.functions.callee import CalledAs
from tensortrail.analyzer.places.functions.parameters import is_static
from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.rules.places import UNKNOWN_HELD, FunctionPlaces, Held, Place, What
from tensortrail.rules.view import FunctionNode

_PUTS = frozenset({"device", "cuda", "to", "to_empty", "device_map"})
_HARMLESS = frozenset(
    "staticmethod classmethod no_grad inference_mode property cache lru_cache autocast "
    "cached_property override".split()
)


def called_as(file: ProjectFile, function: FunctionNode) -> CalledAs:
    in_class = isinstance(file.tree.parent(function), ast.ClassDef)
    return CalledAs(
        function.args,
        is_method=in_class and not is_static(function),
        gives_back=_is_plain(function) and file.tree.once(_returns, function),
        chooses_a_device=file.tree.once(_chooses_a_device, function),
    )


def places_of(file: ProjectFile, function: FunctionNode) -> FunctionPlaces:
    """What callers of other files take from the places of a function."""
    places = file.places_of_file.places(function)
    return FunctionPlaces(meetings=places.meetings, returns=places.returns)


def attribute_of(file: ProjectFile, cls: ast.ClassDef, name: str) -> Held | None:
    """What the class keeps under a name; None where nothing is known."""
    held = file.places_of_file.attribute(cls, name)
    return foreign(held) if held != UNKNOWN_HELD else None


def method_of(file: ProjectFile, cls: ast.ClassDef, name: str, depth: str) -> InProject | None:
    """Where the method of the class is, or that of a base of it."""
    found = file.places_of_file.method(cls, name, int(depth))
    if found is None or isinstance(found, InProject):
        return found
    return InProject(file.path, file.tree.qualname_of(found))


def is_compiled(file: ProjectFile, function: FunctionNode) -> bool:
    """`@triton.jit`, `@cuda.jit(...)`, and Triton's `autotune` and `heuristics` above it."""
    return any(_name_of(each) == "jit" for each in function.decorator_list)


def puts_something(file: ProjectFile, init: ast.AST) -> bool:
    """It asks for a device, or moves something."""
    names = {each.arg for each in file.tree.nodes(ast.arg, init)}
    asked = {each.attr for each in file.tree.nodes(ast.Attribute, init)}
    return bool((names | asked) & _PUTS)


def foreign(held: Held) -> Held:
    """What a class of another file keeps: its nodes mean nothing here."""
    places = (Place(each.where, each.subject, None, each.given) for each in held.places)
    members = held.each if held.what is What.MODULE else None
    return Held(held.what, frozenset(places), held.rank, held.path, each=members, cls=held.cls)


def _chooses_a_device(tree: Tree, function: FunctionNode) -> bool:
    """`if device is None: device = ...`"""
    names = tree.nodes(ast.Name, function)
    return any(each.id == "device" and isinstance(each.ctx, ast.Store) for each in names)


def _is_plain(function: FunctionNode) -> bool:
    """Its decorators leave what it returns alone."""
    return all(_name_of(each) in _HARMLESS for each in function.decorator_list)


def _name_of(decorator: ast.expr) -> str:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def _returns(tree: Tree, function: FunctionNode) -> bool:
    """It gives back a value, and is no generator."""
    yields = bool(tree.nodes(ast.Yield, function) or tree.nodes(ast.YieldFrom, function))
    return not yields and any(each.value for each in tree.nodes(ast.Return, function))
