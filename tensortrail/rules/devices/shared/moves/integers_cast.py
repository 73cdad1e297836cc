"""Moves by another tensor, `ids.to(x)`, which give indices and labels its type as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.layers import WITH_PARAMETERS
from tensortrail.rules.shared.objects import called, given, is_name, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module

_BY_TENSOR = ("to", "type_as")
_INDEX_AT = {"gather": 1, "index_select": 1, "scatter": 1, "scatter_": 1, "scatter_add_": 1}
_LOOKS_UP = ("torch.nn.Embedding", "torch.nn.EmbeddingBag")
_OF_INTEGERS = ("torch.nn.functional.embedding", "torch.nn.functional.one_hot")
_LABELLED = ("torch.nn.functional.cross_entropy", "torch.nn.CrossEntropyLoss")
_FLOATS = frozenset(
    "rand randn rand_like randn_like softmax log_softmax sigmoid tanh relu gelu silu linear "
    "layer_norm dropout normalize sqrt exp log sin cos linspace".split()
)
_INTEGERS = frozenset(
    "arange randint randperm argmax argmin argsort long LongTensor nonzero".split()
)
_INTEGER_TYPES = frozenset("torch.long torch.int64 torch.int torch.int32".split())


class Cast(NamedTuple):
    move: ast.Call
    by: ast.expr
    """The tensor whose type it takes."""
    use: ast.expr
    """Where only integers are taken."""
    taker: ast.AST


def integers_cast(module: Module) -> Iterator[Cast]:
    for move in module.calls(*_BY_TENSOR):
        by = _by(move)
        if by is None or receiver(move) is None:
            continue
        for use in _uses(module, move):
            taker, labels = _taker(module, use)
            if taker is None or (labels and not _is_integer(module, receiver(move))):
                continue
            if _is_float(module, move, by):
                yield Cast(move, by, use, taker)
                break


def _by(move: ast.Call) -> ast.expr | None:
    """`x` of `ids.to(x)` and `ids.to(other=x)`, if nothing else is said."""
    said = [*move.args, *(each.value for each in move.keywords)]
    named = all(each.arg == "other" for each in move.keywords)
    return said[0] if len(said) == 1 and named else None


def _uses(module: Module, move: ast.Call) -> Iterator[ast.expr]:
    """The call itself, and its name where it is still what the name holds."""
    yield move
    bound = module.parent(move)
    target = bound.targets[0] if isinstance(bound, ast.Assign) else None
    if isinstance(target, ast.Name):
        for use in module.uses(target.id, module.function_of(move)):
            if isinstance(use.ctx, ast.Load) and list(module.value_of(use).origins) == [move]:
                yield use


def _taker(module: Module, use: ast.expr) -> tuple[ast.AST | None, bool]:
    """What takes integers only here; whether it takes them as labels, which may be floats too."""
    above = module.parent(use)
    if isinstance(above, ast.Subscript) and above.slice is use:
        return (above if module.value_of(above.value).is_tensor else None), False
    if not isinstance(above, ast.Call):
        return None, False
    name = module.qualified(above.func)
    if name in _OF_INTEGERS or module.value_of(above.func).cls in _LOOKS_UP:
        return (above if above.args[:1] == [use] else None), False
    if name in _LABELLED or module.value_of(above.func).cls in _LABELLED:
        return (above if use in given(above)[1:] else None), True
    place = _INDEX_AT.get(called(above), -1) + name.startswith("torch.")
    indexes = called(above) in _INDEX_AT and above.args[place : place + 1] == [use]
    return (above if indexes else None), False


def _is_float(module: Module, move: ast.Call, tensor: ast.expr) -> bool:
    """A layer of weights gave it, or takes it; or it is what a loss compares with labels."""
    made = behind(module, tensor)
    if isinstance(made, ast.Call):
        name = module.qualified(made.func).rpartition(".")[2] or called(made)
        return name in _FLOATS or _is_layer(module, made)
    if not isinstance(tensor, ast.Name):
        return False
    return any(
        is_name(call.args[0], tensor.id) and _takes_floats(module, call)
        for call in module.nodes(ast.Call, module.function_of(move))
        if call.args
    )


def _takes_floats(module: Module, call: ast.Call) -> bool:
    layer = _is_layer(module, call) and module.value_of(call.func).cls not in _LOOKS_UP
    return layer or module.qualified(call.func) in _LABELLED


def _is_layer(module: Module, call: ast.Call) -> bool:
    cls = module.value_of(call.func).cls
    return cls.startswith("torch.nn.") and any(each in cls for each in WITH_PARAMETERS)


def _is_integer(module: Module, tensor: ast.expr | None) -> bool:
    made = behind(module, tensor) if tensor is not None else None
    if not isinstance(made, ast.Call):
        return False
    if any(module.qualified(e.value) in _INTEGER_TYPES for e in made.keywords if e.arg == "dtype"):
        return True
    written = made.args[0] if made.args and called(made) == "tensor" else None
    numbers = [e for e in ast.walk(written) if isinstance(e, ast.Constant)] if written else []
    return called(made) in _INTEGERS or (
        bool(numbers) and all(isinstance(each.value, int) for each in numbers)
    )
