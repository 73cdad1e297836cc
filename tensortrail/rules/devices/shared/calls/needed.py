"""Which argument a call leaves out that what it calls cannot do without."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.devices.shared.calls.customs import may_be_given_anything, named
from tensortrail.rules.project_facts import Namesake
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.functions import parameters as parameters_of
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import Module

_OF_PLACES = re.compile(
    r"(?:\w+_)?(?:device|dtype|generator|device_map|map_location)|\w*offload\w*"
)
_USUAL = ("device", "dtype", "generator")
_OF_ALL = frozenset(
    "to type cuda cpu to_empty half float double bfloat16 clone copy copy_ detach empty zeros "
    "ones full new_empty new_zeros new_ones new_full new_tensor view reshape expand sum mean "
    "prod cumsum softmax log_softmax norm forward apply load_state_dict state_dict insert save "
    "register_buffer add_module get pop update setdefault items append extend load".split()
)
_ENOUGH = 2
"""Calls elsewhere that pass it by its name, where the callee is known by its name alone."""


def needed_in_file(module: Module) -> set[str]:
    """Functions and classes of the file that have such a parameter without a default, by name."""
    found = set()
    for function in functions(module):
        optional = {each.arg for each, _ in with_defaults(function.args)}
        if any(_OF_PLACES.fullmatch(each.arg) and each.arg not in optional
               for each in parameters_of(function)):  # fmt: skip
            above = module.parent(function)
            own = function.name == "__init__" and isinstance(above, ast.ClassDef)
            found.add(above.name if own and isinstance(above, ast.ClassDef) else function.name)
    return found


def is_passed_elsewhere(module: Module, call: ast.Call) -> bool:
    """Another call of something by that name in the package passes one."""
    return any(module.passed_in_project(call, each) for each in _USUAL)


def needed_and_left_out(module: Module, call: ast.Call) -> Iterator[str]:
    """Names of the arguments about devices that the callee needs and the call does not give."""
    if may_be_given_anything(call) or not (call.args or call.keywords):
        return
    parameters = module.parameters_of(call)
    for name in sorted(module.needed_by(call)) if parameters else ():
        if _OF_PLACES.fullmatch(name) and _is_missing(call, parameters, name):
            yield name


def _is_missing(call: ast.Call, parameters: tuple[str, ...], name: str) -> bool:
    if name not in parameters or name in named(call):
        return False
    return parameters.index(name) >= len(call.args)


def _is_own(func: ast.Attribute) -> bool:
    """`super().build(...)`: whose method that is depends on the class it is used in."""
    return isinstance(func.value, ast.Call)


def _may_be_inherited(module: Module, call: ast.Call) -> bool:
    """`self.build(...)` in a class with a base of another package, which may have the method; or in
    a function that some class gets as a method."""
    cls = module.class_of(call)
    own = isinstance(call.func, ast.Attribute) and module.text(call.func.value) == "self"
    if cls is None or not own:
        return own
    return any(module.about(module.qualified(base), _is_class) is None for base in cls.bases)


def _is_class(module: Module, node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef)


def needed_by_namesakes(module: Module, call: ast.Call) -> Iterator[str]:
    """What all methods of that name in the package need, if the call could be one of any: tensors,
    modules and containers have no method of that name."""
    if may_be_given_anything(call) or module.parameters_of(call):
        return
    if not isinstance(call.func, ast.Attribute) or _is_own(call.func) or called(call) in _OF_ALL:
        return
    keywords = sorted(str(each) for each in named(call))
    if not any(_passed(module, call, each) for each in _USUAL):
        return
    if _may_be_inherited(module, call):
        return
    found = module.namesakes_of(call)
    if not found or not all(_could_be(each, call, keywords) for each in found):
        return
    for name in sorted(frozenset.intersection(*(each.needed for each in found))):
        missing = all(_is_missing(call, each.parameters, name) for each in found)
        if missing and _OF_PLACES.fullmatch(name) and _passed(module, call, name):
            yield name


def _passed(module: Module, call: ast.Call, name: str) -> bool:
    return module.passed_in_project(call, name) >= _ENOUGH


def _could_be(each: Namesake, call: ast.Call, keywords: list[str]) -> bool:
    """All that the call gives is taken by it, one of them by its name."""
    fits = len(call.args) < len(each.parameters) and set(keywords) <= set(each.parameters)
    return fits and bool(keywords) and not each.is_open
