"""Models that a `device_map` puts on a GPU, and what they are given that lies on the CPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.places import Held, Where
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.objects import keyword
from tensortrail.rules.view import Module

_QUANTIZED = frozenset({"load_in_8bit", "load_in_4bit", "quantization_config"})
"""Such a model always gets the hooks that move its inputs, or may get them."""
_ON_A_GPU = frozenset({"auto", "balanced", "balanced_low_0", "sequential"})
_RUNS = frozenset({"forward", "generate"})


class Given(NamedTuple):
    call: ast.Call
    made: ast.Call
    """What gave the tensor, on the CPU."""
    loaded: ast.Call
    """What loaded the model and placed its weights."""


def given_to_mapped_models(module: Module) -> Iterator[Given]:
    """Only a model that is spread over several devices gets hooks that move its inputs: one that
    fits on a GPU is moved there, and no more."""
    if not any(map(_is_mapped, module.calls("from_pretrained"))):
        return
    for function in (module.top, *functions(module)):
        seen = module.places(function).seen
        for call in module.nodes(ast.Call, function):
            loaded = _model_of(module, call)
            for each in (*call.args, *(one.value for one in call.keywords)) if loaded else ():
                made = _on_cpu(seen.get(each))
                if loaded and isinstance(made, ast.Call) and _is_asked_for_tensors(made):
                    yield Given(call, made, loaded)
                    break


def _is_mapped(loaded: ast.Call) -> bool:
    mapped = keyword(loaded, "device_map")
    known = isinstance(mapped, ast.Constant) and mapped.value in _ON_A_GPU
    return known and _QUANTIZED.isdisjoint(each.arg for each in loaded.keywords)


def _model_of(module: Module, call: ast.Call) -> ast.Call | None:
    """`model(...)`, `model.generate(...)` of one that was loaded with a map on every path."""
    func = call.func
    runs = isinstance(func, ast.Attribute) and func.attr in _RUNS
    origins = module.value_of(func.value if runs else func).origins  # type: ignore[attr-defined]
    loaded = [each for each in origins if isinstance(each, ast.Call) and _is_loaded(each)]
    return loaded[0] if loaded and len(loaded) == len(origins) else None


def _is_loaded(call: ast.Call) -> bool:
    named = isinstance(call.func, ast.Attribute) and call.func.attr == "from_pretrained"
    return named and _is_mapped(call)


def _on_cpu(held: Held | None) -> ast.AST | None:
    """What gave it, or all parts of it, on the CPU."""
    if held is None:
        return None
    if held.each is not None and not held.places:
        return _on_cpu(held.each)
    place = held.only
    return place.by if place is not None and place.where is Where.HOST else None


def _is_asked_for_tensors(call: ast.Call) -> bool:
    return keyword(call, "return_tensors") is not None
