"""Loads in which the names of the state dict can be seen not to be those of the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Module
from tensortrail.rules.shards._loaded_again import loads
from tensortrail.rules.shards._wrapped import renames_keys, writer_of
from tensortrail.rules.shared.objects import called, is_constant, is_self, receiver
from tensortrail.rules.shared.origins import behind


def names_of_no_part(module: Module, load: ast.Call) -> str:
    """Why the names of the state dict do not fit; "" if nothing says so."""
    model, given = receiver(load), module.argument(load, 0, "state_dict")
    if model is None or given is None:
        return ""
    made = behind(module, given)
    if not isinstance(made, ast.DictComp):
        return _changed_by_the_save(module, load)
    parts = _parts(module, model)
    added, cut = _added(made.key), _cut_everywhere(made.key)
    if parts is not None and added and added not in parts:
        return f"they begin with `{added}.`, and `{module.text(model)}` has no such part"
    if parts is not None and cut in parts:
        return f"`{cut}.`, the name of a part of `{module.text(model)}`, was cut out of them"
    return ""


def _parts(module: Module, model: ast.expr) -> frozenset[str] | None:
    """What the class of the model has, if all of it is known."""
    cls = module.class_of(model) if is_self(model) else module.value_of(model).cls
    facts = module.class_facts(cls) if cls else None
    if facts is None or not facts.is_module or not facts.complete or facts.registers_others:
        return None
    return facts.registered | facts.fields


def _added(key: ast.expr) -> str:
    """`encoder` of `f"encoder.{k}"` and of `"encoder." + k`."""
    match key:
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), ast.FormattedValue()]):
            return _first(text)
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Add()):
            return _first(text)
    return ""


def _first(text: str) -> str:
    return text.partition(".")[0] if text.endswith(".") else ""


def _cut_everywhere(key: ast.expr) -> str:
    """`encoder` of `k.replace("encoder.", "")`."""
    match key:
        case ast.Call(args=[ast.Constant(value=str(text)), by]) if called(key) == "replace":
            return text.removesuffix(".") if is_constant(by, "") and text.endswith(".") else ""
    return ""


def _changed_by_the_save(module: Module, load: ast.Call) -> str:
    """The same file is written with other names: those of the same model, changed."""
    model = receiver(load)
    shown = module.text(model) if model is not None else ""
    for owner, made in _renamed_states(module):
        writer = writer_of(module, made) if module.text(owner) == shown else None
        again = loads(module, writer, made, "") if writer is not None else ()
        if any(each.call is load for each in again) and not renames_keys(module, load):
            return f"line {made.lineno} changes them before the file is written"
    return ""


def _renamed_states(module: Module) -> Iterator[tuple[ast.expr, ast.DictComp]]:
    """Each mapping with other names that is made of a state dict, and the model that has it."""
    for made in module.nodes(ast.DictComp):
        items = made.generators[0].iter
        source = receiver(items) if isinstance(items, ast.Call) else None
        state = behind(module, source) if source is not None else None
        if not isinstance(state, ast.Call) or called(state) != "state_dict":
            continue
        owner = receiver(state)
        if owner is not None and (_added(made.key) or _is_replaced(made.key)):
            yield owner, made


def _is_replaced(key: ast.expr) -> bool:
    return isinstance(key, ast.Call) and called(key) in ("replace", "removeprefix")
