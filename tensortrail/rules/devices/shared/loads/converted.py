"""Converters: they take weights out of a checkpoint that who runs them names, and use no GPU."""

from __future__ import annotations

import ast

from tensortrail.patterns import pattern
from tensortrail.rules.devices.shared.loads.saved_here import source_of
from tensortrail.rules.devices.shared.loads.taken_from_file import weights_by_key
from tensortrail.rules.devices.shared.loads.why_mapped import Why
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import Module

_OF_DEVICES = pattern(r"(?i)cuda|device|gpu")
_PARSES = ("parse_args", "parse_known_args")


def needs_no_gpu(module: Module, call: ast.Call) -> Why | None:
    """Where `torch.load(args.path)["state_dict"]` is read by code that says no device at all."""
    taken = next(weights_by_key(module, call), None)
    if taken is None or not _is_option(module, source_of(call)) or _says_devices(module):
        return None
    says = "if that is a GPU, this fails on a machine without one, and nothing here needs one"
    return Why(taken, says, "the weights of a checkpoint are read")


def _is_option(module: Module, source: ast.expr) -> bool:
    """`args.path`, of the command line."""
    if not isinstance(source, ast.Attribute):
        return False
    made = module.value_of(source.value).origins
    return any(isinstance(each, ast.Call) and called(each) in _PARSES for each in made)


def _says_devices(module: Module) -> bool:
    return module.once(_any_of_devices, module.top)


def _any_of_devices(module: Module, top: ast.AST) -> bool:
    names = [each.id for each in module.nodes(ast.Name, top)]
    names += [each.attr for each in module.nodes(ast.Attribute, top)]
    names += [each.arg or "" for each in module.nodes(ast.keyword, top)]
    return any(_OF_DEVICES.search(each) for each in names)
