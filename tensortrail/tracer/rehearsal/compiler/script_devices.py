"""`x.device` in the code of `torch.jit.script`: C++ answers it, and believes the tensor on the CPU.

A script that asks runs as a copy of its graph, in which an operation of our own is asked instead.
The script itself stays as it is, also in files."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from operator import attrgetter, methodcaller
from typing import Any

import torch

CALL = torch._C.ScriptFunction.__call__
SPACE = "tensortrail_rehearsal"
MOVE = "(Tensor(a) x, Device? device, ScalarType? dtype, bool non_blocking, bool copy"
OURS: dict[str, tuple[str, Callable[..., Any]]] = {
    "prim::device": ("device(Tensor x) -> Device", attrgetter("device")),
    "prim::is_cuda": ("is_cuda(Tensor x) -> bool", attrgetter("is_cuda")),
    "prim::is_cpu": ("is_cpu(Tensor x) -> bool", attrgetter("is_cpu")),
    "aten::get_device": ("get_device(Tensor x) -> int", methodcaller("get_device")),
    "aten::cpu": ("cpu(Tensor(a) x) -> Tensor(a)", methodcaller("cpu")),
    "aten::cuda": ("cuda(Tensor(a) x) -> Tensor(a)", methodcaller("cuda")),
    "aten::to.prim_Device": (
        f"to_place{MOVE}) -> Tensor(a)",
        lambda x, device, dtype, *rest: x.to(device or x.device, dtype or x.dtype, *rest),
    ),
    "aten::to.device": (
        f"to_device{MOVE}, MemoryFormat? format) -> Tensor(a)",
        lambda x, *rest: x.to(*rest[:4], memory_format=rest[4] or torch.preserve_format),
    ),
    "aten::to.other": (
        "to_like(Tensor(a) x, Tensor other, bool non_blocking, bool copy, MemoryFormat? format)"
        " -> Tensor(a)",
        lambda x, other, *rest: x.to(
            other.device, other.dtype, *rest[:2], memory_format=rest[2] or torch.preserve_format
        ),
    ),
    "aten::type_as": (
        "type_as(Tensor(a) x, Tensor other) -> Tensor(a)",
        lambda x, other: x.type_as(other),
    ),
}
"""Torch's operation -> ours in its place, and what that does."""
answers: dict[Any, Callable[..., Any]] = {}
"""Those that say where a simulated tensor lies, once a script has asked."""
_libraries: list[Any] = []
_copies: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def run(plain: Callable[..., Any], script: Any, args: Any, kwargs: Any) -> Any:
    """The script with what it was given; `plain` is torch's own call."""
    if script not in _copies:
        _copies[script] = _copy(script)
    copy = _copies[script]
    given = None if copy is None else _in_order(script, args, kwargs)
    return plain(script, *args, **kwargs) if given is None else CALL(copy, *given)


def forget() -> None:
    _copies.clear()
    answers.clear()
    while _libraries:
        _libraries.pop()._destroy()


def _copy(script: Any) -> Any:
    """None if its code does not ask, and moves nothing."""
    graph = script.graph.copy()
    torch._C._jit_pass_inline(graph)
    replaced = [(node, told) for node, told in _asking(graph) if told is not None]
    if not replaced:
        return None
    _define()
    for node, (schema, _) in replaced:
        name = schema.partition("(")[0]
        ours = graph.create(f"{SPACE}::{name}", list(node.inputs()), 1)
        ours.insertBefore(node)
        ours.copyMetadata(node)
        ours.output().setType(node.output().type())
        node.output().replaceAllUsesWith(ours.output())
        node.destroy()
    return torch._C._create_function_from_graph(script.name, graph)


def _asking(graph: Any) -> Iterator[tuple[Any, Any]]:
    for kind in sorted({name.partition(".")[0] for name in OURS}):
        for node in graph.findAllNodes(kind):
            yield node, OURS.get(node.schema().partition("(")[0])


def _define() -> None:
    if _libraries:
        return
    library = torch.library.Library(SPACE, "DEF")
    _libraries.append(library)
    for schema, told in OURS.values():
        answer = _of_numbers_too(told)
        name, moves = schema.partition("(")[0], schema.endswith("Tensor(a)")
        library.define(schema)
        key = "CompositeImplicitAutograd" if moves else "CompositeExplicitAutograd"
        library.impl(name, answer, key)
        answers[getattr(getattr(torch.ops, SPACE), name).default] = answer


def _of_numbers_too(answer: Callable[..., Any]) -> Callable[..., Any]:
    """C++ hands a tensor of one number, a constant of the script, on as that number."""

    def answered(x: Any, *rest: Any) -> Any:
        return answer(x if isinstance(x, torch.Tensor) else _of_number(x), *rest)

    return answered


def _of_number(value: Any) -> Any:
    made = torch.tensor(value)
    wide = {torch.float32: torch.float64, torch.complex64: torch.complex128}
    return torch.tensor(value, dtype=wide.get(made.dtype, made.dtype))


def _in_order(script: Any, args: Any, kwargs: Any) -> list[Any] | None:
    """All arguments of the copy, whose graph has no defaults; None if they do not fit."""
    owner = getattr(script, "owner", None)
    given = list(args) if owner is None else [owner, *args]
    arguments = script.schema.arguments
    named = dict(kwargs)
    for argument in arguments[len(given) :]:
        if argument.name in named:
            given.append(named.pop(argument.name))
        elif argument.has_default_value():
            given.append(argument.default_value)
        else:
            return None
    return given if len(given) == len(arguments) and not named else None
