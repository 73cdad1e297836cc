"""The operands that met in a graph which the compiler refused, from the frames of its exception.

In a plain run nothing of ours stands in the compiler's way: it works on tensors without data, and
which ones met is looked up only when its exception has left the program."""

from __future__ import annotations

import ast
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from traceback import walk_tb
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_map_only

from tensortrail.tracer.identity.errors_behind import with_those_behind
from tensortrail.tracer.identity.sites import runs

FAKE = "torch/_subclasses/fake_tensor.py"
DYNAMO, BEGINS = "torch/_dynamo/utils.py", "torch/_dynamo/convert_frame.py"
PLAIN = (dict, OrderedDict, list, tuple)


class Refused(NamedTuple):
    """A call, with the program's own tensors where those without data stood for them."""

    func: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def refused_by_compiler(error: BaseException) -> Refused | None:
    frames = [f for each in with_those_behind(error) for f, _ in walk_tb(each.__traceback__)]
    traced = next((f for f in frames if runs(f, DYNAMO, "run_node")), None)
    if traced is not None:
        begun = next((f.f_locals for f in frames if runs(f, BEGINS, "_compile")), {})
        return _of_node(traced.f_locals, begun.get("locals") or {})
    exported = next((f for f in frames if runs(f, FAKE, "__torch_dispatch__")), None)
    return _of_operation(exported.f_locals) if exported is not None else None


def _of_node(known: Mapping[str, Any], variables: Mapping[str, Any]) -> Refused:
    """`run_node(tracer, node, args, kwargs, nnmodule)`, in a function with these variables."""
    real = dict(_stood_for(known["tracer"], variables))
    given = tree_map_only(
        torch.Tensor, lambda fake: real.get(id(fake), fake), (known["args"], known["kwargs"])
    )
    return Refused(called(known["node"].target), *given)


def called(target: Any) -> Any:
    """What a graph calls: a method by its name, an operator as Python has it, or a function."""
    name = target if type(target) is str else f"__{getattr(target, '__name__', '')}__"
    is_method = type(target) is str or getattr(target, "__module__", "") == "_operator"
    return getattr(torch.Tensor, name, target) if is_method else target


def _of_operation(known: Mapping[str, Any]) -> Refused | None:
    """`FakeTensorMode.__torch_dispatch__(self, func, types, args, kwargs)`"""
    args = known.get("args")
    if type(args) is not tuple:
        return None
    return Refused(known["func"], args, known.get("kwargs") or {})


def _stood_for(graph: Any, variables: Mapping[str, Any]) -> Iterator[tuple[int, torch.Tensor]]:
    """`id` of a tensor without data -> the one that the program has."""
    scopes = {"L": graph.local_scope or variables, "G": graph.global_scope}
    for each in graph.tracked_fakes:
        with suppress(Exception):
            name = each.source.name
            value = _value(
                ast.parse(name if type(name) is str else name(), mode="eval").body, scopes
            )
            if isinstance(value, torch.Tensor):
                yield id(each.fake), value


def _value(node: ast.expr, scopes: Mapping[str, Any]) -> Any:
    """What `L['self'].scale` stands for. No code of the program's runs."""
    match node:
        case ast.Name(id=name):
            return scopes[name]
        case ast.Subscript(value=of, slice=ast.Constant(value=key)):
            held = _value(of, scopes)
            return held[key] if type(held) in PLAIN else None
        case ast.Attribute(value=of, attr=name):
            return object.__getattribute__(_value(of, scopes), "__dict__")[name]
    return None
