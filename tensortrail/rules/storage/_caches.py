"""Caches of keys and values that a loop hands to a model, and what the model is given with them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.shared.objects import (
    called,
    is_before,
    is_name,
    keyword,
    names_in,
    receiver,
    root_of,
    within,
)
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module

_CACHES = ("DynamicCache", "StaticCache", "HybridCache", "SlidingWindowCache", "QuantizedCache")
_EMPTIES = ("crop", "reset", "reorder_cache", "batch_select_indices")
_PIECES = ("range", "split", "chunk", "tensor_split", "unbind", "split_with_sizes")
_EXTENDS = ("append", "extend", "insert", "update")
_DEEPEST = 4


class Grown(NamedTuple):
    cache: ast.Name
    made: ast.expr
    call: ast.Call
    loop: ast.For


def grown_over_inputs(module: Module) -> Iterator[Grown]:
    """`for p in prompts: model(tokenizer(p, ...), past_key_values=cache)`, of one cache."""
    for call in module.nodes(ast.Call):
        cache = keyword(call, "past_key_values")
        loop = _own_loop(module, call)
        if not isinstance(cache, ast.Name) or loop is None:
            continue
        made = _made_before(module, cache, loop)
        if made is None or _is_emptied(module, cache.id, loop):
            continue
        if _is_new_each_round(module, call, cache.id, loop):
            yield Grown(cache, made, call, loop)


def _own_loop(module: Module, call: ast.Call) -> ast.For | None:
    """The innermost loop, if the call stands in no function within it."""
    for up in module.ancestors(call):
        if isinstance(up, ast.For):
            return up
        if isinstance(up, (ast.While, ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            return None
    return None


def _made_before(module: Module, cache: ast.Name, loop: ast.For) -> ast.expr | None:
    """What made it, outside of the loop: a cache of transformers, or what a model has computed."""
    origins = module.value_of(cache).origins
    if len(origins) != 1 or within(origins[0], loop, module):
        return None
    stored = (each for each in module.uses(cache.id, loop) if isinstance(each.ctx, ast.Store))
    if any(stored):
        return None
    made = origins[0]
    if isinstance(made, ast.Attribute) and made.attr == "past_key_values":
        return made
    name = module.qualified(made.func) if isinstance(made, ast.Call) else ""
    of_library = name.startswith("transformers.") and name.rpartition(".")[2] in _CACHES
    return made if of_library else None


def _is_emptied(module: Module, name: str, loop: ast.For) -> bool:
    """It is cut back in the loop, or changed by somebody who is given it."""
    for call in module.nodes(ast.Call, loop):
        owner = receiver(call)
        if called(call) in _EMPTIES and owner is not None and is_name(root_of(owner), name):
            return True
        if any(is_name(each, name) for each in call.args):
            return True
    return False


def _is_new_each_round(module: Module, call: ast.Call, cache: str, loop: ast.For) -> bool:
    """The model is given texts that each round turns into tokens, or tensors that a list has, and
    nothing that grows from round to round."""
    if any(isinstance(each, ast.Call) and called(each) in _PIECES for each in ast.walk(loop.iter)):
        return False
    values = _behind(module, call, cache, loop)
    names = {name for each in values for name in names_in(each)} - {cache}
    of_loop = names_in(loop.target)
    if not names & of_loop or any(_is_carried(module, e, loop) for e in names - of_loop):
        return False
    tokenized = any(_makes_tokens(each) for each in values)
    return tokenized or isinstance(behind(module, loop.iter), (ast.List, ast.Tuple))


def _behind(module: Module, call: ast.Call, cache: str, loop: ast.For) -> list[ast.expr]:
    """What the call is given, and all that it is computed from in the loop."""
    found = [*call.args, *(e.value for e in call.keywords if not is_name(e.value, cache))]
    for _ in range(_DEEPEST):
        names = {name for each in found for name in names_in(each)}
        more = [
            assign.value
            for assign in module.nodes(ast.Assign, loop)
            if not names.isdisjoint(names_in(assign.targets[0])) and assign.value not in found
        ]
        if not more:
            break
        found += more
    return found


def _makes_tokens(value: ast.expr) -> bool:
    calls = (each for each in ast.walk(value) if isinstance(each, ast.Call))
    return any(keyword(each, "return_tensors") is not None for each in calls)


def _is_carried(module: Module, name: str, loop: ast.For) -> bool:
    """It is read before it is bound in a round, or extended: a conversation goes on."""
    bound: list[ast.stmt] = []
    read: list[ast.stmt] = []
    for use in module.uses(name, loop):
        above = module.parent(use)
        extends = isinstance(above, ast.Attribute) and above.attr in _EXTENDS
        if extends or (isinstance(above, (ast.AugAssign, ast.Subscript)) and _is_written(above)):
            return True
        (bound if isinstance(use.ctx, ast.Store) else read).append(module.statement_of(use))
    return bool(bound) and any(not is_before(bound[0], each) for each in read)


def _is_written(above: ast.AugAssign | ast.Subscript) -> bool:
    return isinstance(above, ast.AugAssign) or isinstance(above.ctx, ast.Store)
