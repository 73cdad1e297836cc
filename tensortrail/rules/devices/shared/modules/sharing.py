"""Objects that are made of a module in training, and hold the module itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.shared.classes import classes_named
from tensortrail.rules.shared.functions import called_here, matched
from tensortrail.rules.shared.objects import called, resolved_name
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.unchanging import unchanging
from tensortrail.rules.view import FunctionNode

_UNWRAPS = ("unwrap_model", "unwrap", "extract_model_from_parallel")
_KEEP = ("from_pretrained", "from_pipe", "from_config")


@unchanging(frozen=True, slots=True)
class Shared:
    """A name under which such an object is known in a function."""

    trained: tuple[ast.expr, ...]
    made: ast.Call
    name: str
    function: FunctionNode | None
    handed: ast.Call | None = None
    """The call that hands it to the function; None where it is made."""


def containers_of_trained(module: Module) -> Iterator[Shared]:
    """Made in a loop, as training goes on after it; here and where the file hands them on."""
    for assign in module.nodes(ast.Assign):
        made, target = assign.value, assign.targets[0]
        if not isinstance(made, ast.Call) or not isinstance(target, ast.Name):
            continue
        trained = tuple(_trained(module, made)) if _is_container(module, made) else ()
        if trained and _in_loop(module, assign):
            here = Shared(trained, made, target.id, module.function_of(assign))
            yield here
            yield from _handed_on(module, here)


def _is_container(module: Module, made: ast.Call) -> bool:
    """A pipeline read from files, or an object of a class."""
    name = resolved_name(module, made)
    return name in _KEEP or name[:1].isupper() or _is_class_here(module, made)


def _is_class_here(module: Module, made: ast.Call) -> bool:
    return bool(classes_named(module, called(made)))


def _trained(module: Module, made: ast.Call) -> Iterator[ast.expr]:
    """`unet` of `Pipeline(unet=accelerator.unwrap_model(unet))`, at once or by a name."""
    for each in (*made.args, *(given.value for given in made.keywords)):
        each = behind(module, each.body if isinstance(each, ast.IfExp) else each)
        if isinstance(each, ast.Call) and called(each) in _UNWRAPS and each.args:
            yield each.args[0]


def _in_loop(module: Module, node: ast.AST) -> bool:
    function = module.function_of(node)
    ups = module.ancestors(node)
    return any(
        isinstance(up, (ast.For, ast.While)) and module.function_of(up) is function for up in ups
    )


def in_the_same_loop(module: Module, made: ast.Call) -> Iterator[ast.Call]:
    """Calls after it, as long as training may go on."""
    loops = {up for up in module.ancestors(made) if isinstance(up, (ast.For, ast.While))}
    for call in module.later(made, ast.Call):
        if not loops.isdisjoint(module.ancestors(call)):
            yield call


def _handed_on(module: Module, shared: Shared) -> Iterator[Shared]:
    for call in in_the_same_loop(module, shared.made):
        function = called_here(module, call)
        name = _parameter(call, function, shared.name) if function is not None else ""
        if name:
            yield Shared(shared.trained, shared.made, name, function, call)


def _parameter(call: ast.Call, function: FunctionNode | None, name: str) -> str:
    """The parameter of the function for which the name is given."""
    for parameter, argument in matched(function, call) if function is not None else ():
        if isinstance(argument, ast.Name) and argument.id == name:
            return parameter
    return ""
