"""What the parameters of a function are, and that they lie where the caller has put them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from tensortrail.analyzer.places.functions.annotated import by_annotation, where_given
from tensortrail.analyzer.places.functions.used_as_tensors import used_as_tensors
from tensortrail.analyzer.places.functions.world import World
from tensortrail.analyzer.places.libraries.library import names
from tensortrail.analyzer.syntax.tree import Tree
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.places import NUMBER, Held, What
from tensortrail.rules.shared.objects import last_name
from tensortrail.rules.view import FunctionNode

_AUTOGRAD = "torch.autograd.Function"
_HOOKS = frozenset({"register_hook", "register_post_accumulate_grad_hook"})


def parameters_of(
    function: FunctionNode, cls: ast.ClassDef | None, world: World
) -> dict[str, Held]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    evidence: set[str] | None = None
    types: set[str] | None = None
    numbers = set(_numbers_by_default(arguments))
    found: dict[str, Held] = {}
    for index, each in enumerate(every):
        if index == 0 and cls is not None and each.arg == "self" and not is_static(function):
            found["self"] = Held(What.SELF, path="self")
            continue
        held = by_annotation(each, world)
        if held is NUMBER:
            types = _asked_for_types(function, world) if types is None else types
        if held is NUMBER and each.arg in (types or ()):
            held = Held(What.UNKNOWN, where_given(each.arg), path=each.arg)
        if held is None:
            if evidence is None:
                evidence = used_as_tensors(function, world) | given_to_a_hook(function, world)
            known = each.arg in evidence or (index == 1 and _takes_a_tensor(function, cls, world))
            if each.arg in numbers and not (known and _is_kept(each.arg, function, world)):
                found[each.arg] = NUMBER
                continue
            what = What.TENSOR if known else What.UNKNOWN
            held = Held(what, where_given(each.arg), path=each.arg)
        found[each.arg] = held
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            found[rest.arg] = Held(path=rest.arg)
    return found


def _numbers_by_default(arguments: ast.arguments) -> Iterator[str]:
    """Parameters that are numbers or texts unless something else is given."""
    for each, default in with_defaults(arguments):
        value = default.value if isinstance(default, ast.Constant) else None
        if isinstance(value, (int, float, str)):
            yield each.arg


def _is_kept(name: str, function: FunctionNode, world: World) -> bool:
    """The function does not bind the name anew: its uses are of the argument."""
    return not any(
        each.id == name and isinstance(each.ctx, ast.Store)
        for each in world.tree.nodes(ast.Name, function)
    )


def _takes_a_tensor(function: FunctionNode, cls: ast.ClassDef | None, world: World) -> bool:
    """The first argument of a module's `forward`, if the function never asks what it is."""
    if cls is None:
        return False
    if function.name == "backward":  # gradients come as tensors
        return any(world.qualified(each) == _AUTOGRAD for each in cls.bases)
    if function.name != "forward" or not world.is_module(cls):
        return False
    if len(function.args.args) < 2:  # the others can only be named
        return False
    name = function.args.args[1].arg
    for call in world.tree.nodes(ast.Call, function):
        given = [getattr(each, "id", "") for each in call.args]
        called = call.func.id if isinstance(call.func, ast.Name) else ""
        if called in ("isinstance", "len", "type") and given[:1] == [name]:
            return False
        if name in given and (called == "range" or world.qualified(call.func) == "torch.arange"):
            return False  # a number of steps
    return not _is_asked_for_parts(function, name, world)


def given_to_a_hook(function: FunctionNode, world: World) -> set[str]:
    """The argument of a function that the file registers on a tensor: its gradient."""
    if function.name not in world.tree.once(_registered_on_tensors, world.tree.root):
        return set()
    given = [each.arg for each in function.args.args if each.arg != "self"]
    return set(given[:1])


def _registered_on_tensors(tree: Tree, root: ast.Module) -> frozenset[str]:
    """`f` of `x.register_hook(f)` and of `x.register_hook(self.f)`."""
    return frozenset(
        last_name(call.args[0])
        for call in tree.nodes(ast.Call)
        if isinstance(call.func, ast.Attribute) and call.func.attr in _HOOKS and call.args
    )


def _is_asked_for_parts(function: FunctionNode, name: str, world: World) -> bool:
    """`batch.pos`: an object that holds tensors, and is none."""
    known = names("keeps", "attributes") | names("plain", "attributes")
    called = {id(each.func) for each in world.tree.nodes(ast.Call, function)}
    return any(
        isinstance(each.value, ast.Name)
        and each.value.id == name
        and each.attr not in known
        and each.attr != "device"
        and id(each) not in called
        for each in world.tree.nodes(ast.Attribute, function)
    )


def _asked_for_types(function: FunctionNode, world: World) -> set[str]:
    """Names with two conditions or more such as `isinstance(rows, int)`: what is said of such an
    argument may leave tensors out, and they are what remains."""
    asked = Counter(
        call.args[0].id
        for call in world.tree.nodes(ast.Call, function)
        if isinstance(call.func, ast.Name) and call.func.id == "isinstance"
        if call.args and isinstance(call.args[0], ast.Name)
    )
    return {name for name, count in asked.items() if count > 1}


def is_static(function: FunctionNode) -> bool:
    return any(getattr(each, "id", "") == "staticmethod" for each in function.decorator_list)
