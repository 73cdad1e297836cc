"""What other files see of the places of a file: questions that can be named, and asked again."""

from __future__ import annotations

import ast

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.places.results import chooses_a_device
from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.rules.places import FunctionPlaces, Held, Place
from tensortrail.rules.view import FunctionNode

_PUTS = frozenset({"device", "cuda", "to", "to_empty", "device_map"})


def called_as(file: ProjectFile, function: FunctionNode) -> object:
    """How a function is called and answers. How it is decorated, and in which class it stands,
    the outline of its file says."""
    return function.args, file.tree.once(returns, function), chooses_a_device(function)


def places_of(file: ProjectFile, function: FunctionNode) -> object:
    return seen_outside(file.places_of_file.places(function))


def seen_outside(places: FunctionPlaces) -> object:
    """What callers of other files take from the places of a function."""
    return places.returns, places.meetings


def attribute_of(file: ProjectFile, cls: ast.ClassDef, name: str) -> Held:
    return foreign(file.places_of_file.attribute(cls, name))


def puts_something(file: ProjectFile, init: ast.AST) -> bool:
    """It asks for a device, or moves something."""
    names = {each.arg for each in file.tree.nodes(ast.arg, init)}
    asked = {each.attr for each in file.tree.nodes(ast.Attribute, init)}
    return bool((names | asked) & _PUTS)


def foreign(held: Held) -> Held:
    """What a class of another file keeps: its nodes mean nothing here."""
    places = (Place(each.where, each.subject, None, each.given) for each in held.places)
    return Held(held.what, frozenset(places), held.rank, held.path, cls=held.cls)


def returns(tree: Tree, function: FunctionNode) -> bool:
    """It gives back a value, and is no generator."""
    yields = bool(tree.nodes(ast.Yield, function) or tree.nodes(ast.YieldFrom, function))
    return not yields and any(each.value for each in tree.nodes(ast.Return, function))
