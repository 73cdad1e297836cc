"""Whether a call makes layers with parameters, where nothing says on which device."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.rules.shared.given_devices import says_device, under_device
from tensortrail.rules.shared.layers import PARAMETER, WITH_PARAMETERS
from tensortrail.rules.shared.moves import MAY_PLACE, TO_DEVICE
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import Module
from tensortrail.rules.words import Kind


def is_new_on_default(module: Module, made: ast.Call) -> bool:
    """It has parameters, and nothing in the expression says where they are."""
    calls = [made, *module.nodes(ast.Call, made)]
    if any(called(each) in MAY_PLACE for each in calls):
        return False
    if any(each.arg is None for call in calls for each in call.keywords):
        return False
    if not any(_has_parameters(module, each) for each in calls):
        return False  # before the function is run
    return not (says_device(module, made) or under_device(module, made))


def _has_parameters(module: Module, call: ast.Call) -> bool:
    owner, _, name = module.qualified(call.func).rpartition(".")
    if owner.startswith("torch.nn"):
        return any(each in name for each in WITH_PARAMETERS)
    own = [each for each in module.nodes(ast.ClassDef) if each.name == name or each.name == owner]
    if own:
        makes = len(own) == 1 and makes_layers(module, own[0])
    else:
        makes = bool(module.about(module.qualified(call.func), makes_layers))
    return makes and module.kind_of(call) is Kind.MODULE


def makes_layers(module: Module, cls: ast.AST) -> bool:
    """Its constructor makes layers, and asks nothing where they shall be."""
    for each in cls.body if isinstance(cls, ast.ClassDef) else ():
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            calls = module.nodes(ast.Call, each)
            makes = any(
                module.qualified(c.func) == PARAMETER
                or (module.qualified(c.func).startswith("torch.nn.") and _has_parameters(module, c))
                or _gives_layers(module, c)
                for c in calls
            )
            return makes and not _speaks_of_devices(module, each, calls)
    return False


def _gives_layers(module: Module, call: ast.Call) -> bool:
    """`mlp(8, 64, 2)` of a function of the project that makes layers of torch, and says nothing of
    devices."""
    maker = module.qualified(call.func)
    return not maker.startswith("torch.") and module.about(maker, _is_maker_of_layers) is True


def _is_maker_of_layers(module: Module, node: ast.AST) -> bool:
    if not isinstance(node, ast.FunctionDef):
        return False
    calls = module.nodes(ast.Call, node)
    makes = any(
        module.qualified(each.func).startswith("torch.nn.") and _has_parameters(module, each)
        for each in calls
    )
    return makes and not _speaks_of_devices(module, node, calls)


def _speaks_of_devices(module: Module, inside: ast.AST, calls: Sequence[ast.Call]) -> bool:
    """In its code: what is said of it beside it is no evidence."""
    names = [each.attr for each in module.nodes(ast.Attribute, inside)]
    names += [each.id for each in module.nodes(ast.Name, inside)]
    names += [each.arg for each in module.nodes(ast.arg, inside)]
    names += [each.arg or "" for each in module.nodes(ast.keyword, inside)]
    told = any("device" in each for each in names) or any(says_device(module, e) for e in calls)
    return told or any(
        called(each) in TO_DEVICE or called(each).endswith("_like") for each in calls
    )
