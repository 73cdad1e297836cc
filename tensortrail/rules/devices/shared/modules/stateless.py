"""Modules that hold nothing: no parameters, buffers or tensors, and no other modules that do."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from tensortrail.patterns import pattern
from tensortrail.rules.shared.objects import called
from tensortrail.rules.view import Module

WITHOUT_WEIGHTS = pattern(
    r"ReLU|ELU|GELU|SiLU|GLU|Mish|Tanh|Sigmoid|Softm|Softplus|Softsign|Hard|Threshold|Identity"
    r"|latten|Dropout|Pool|Upsample|Pad|Fold|Shuffle|Shrink|Loss|Metric|Similarity|Distance"
)
"""Layers of torch that `.to()` has nothing to move in."""
_MODULES = ("torch.nn.Module", "torch.nn.modules.module.Module")
_NUMBERS = frozenset(dir(builtins)) - {"setattr", "vars", "eval", "exec", "getattr"}


def is_stateless(module: Module, cls: ast.AST) -> bool:
    """A class below `nn.Module` that keeps only numbers and layers of torch without weights. Asked
    of the file it stands in."""
    if not isinstance(cls, ast.ClassDef) or len(cls.bases) != 1:
        return False
    base = module.qualified(cls.bases[0])
    if base not in _MODULES and module.about(base, is_stateless) is not True:
        return False
    return all(_holds_nothing(module, each) for each in _made(module, cls))


def _made(module: Module, cls: ast.ClassDef) -> Iterator[ast.Call]:
    """What the methods that set it up call."""
    for function in module.nodes(ast.FunctionDef, cls):
        if function.name == "__init__" or any(_keeps(module, e) for e in function.body):
            yield from module.nodes(ast.Call, function)


def _keeps(module: Module, statement: ast.stmt) -> bool:
    return any(
        isinstance(each.ctx, ast.Store) and module.text(each.value) == "self"
        for each in module.nodes(ast.Attribute, statement)
    )


def _holds_nothing(module: Module, call: ast.Call) -> bool:
    """`nn.AvgPool1d(3)`, `int(n)`, `math.ceil(n / 2)`, `super().__init__()`"""
    owner, _, last = module.qualified(call.func).rpartition(".")
    if owner.startswith("torch.nn") and "functional" not in owner:
        return bool(WITHOUT_WEIGHTS.search(last))
    if called(call) == "__init__" or owner == "math":
        return True
    return isinstance(call.func, ast.Name) and call.func.id in _NUMBERS
