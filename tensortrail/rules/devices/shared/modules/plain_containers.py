"""Lists, tuples and dicts in which a class keeps modules, without torch knowing of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules import Kind, Module
from tensortrail.rules.devices.shared.modules.container_reads import bound_above
from tensortrail.rules.devices.shared.modules.stateless import WITHOUT_WEIGHTS, is_stateless
from tensortrail.rules.shared.objects import called, is_none, keyword, receiver
from tensortrail.rules.shared.origins import behind

_OF_METRICS = "torchmetrics."
"""A package whose classes are modules that keep what they count in tensors."""


def kept_containers(module: Module, cls: ast.ClassDef) -> Iterator[tuple[str, ast.expr, ast.Call]]:
    """Plain containers of the class: the attribute, what it is bound to or the call that adds to
    it, and the first module made in there."""
    lists: set[str] = set()
    for target, value in _assigned(module, cls):
        members = _members(value)
        made = next((e for e in members if _has_weights(module, _copied(module, e))), None)
        if isinstance(made, ast.Call):
            yield target.attr, value, made
        elif _is_empty_list(value):
            lists.add(target.attr)
    for call in module.calls("append", inside=cls):
        holder, given = receiver(call), call.args[0] if call.args else None
        own = isinstance(holder, ast.Attribute) and module.text(holder.value) == "self"
        if not own or not isinstance(holder, ast.Attribute) or holder.attr not in lists:
            continue
        if not all(_is_empty_list(each) for each in bound_above(module, holder)[-1:]):
            continue
        made = behind(module, given) if given is not None else None
        if isinstance(made, ast.Call) and _has_weights(module, _copied(module, made)):
            yield holder.attr, call, made


def _copied(module: Module, node: ast.expr) -> ast.expr:
    """`metrics` of `metrics.clone(prefix="test/")`, as it was made."""
    owner = receiver(node) if isinstance(node, ast.Call) and called(node) == "clone" else None
    made = behind(module, owner) if owner is not None else node
    return made if isinstance(made, ast.Call) else node


def is_a_metric(module: Module, node: ast.expr) -> bool:
    made = _copied(module, node)
    return isinstance(made, ast.Call) and module.qualified(made.func).startswith(_OF_METRICS)


def _is_empty_list(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return called(value) == "list" and not value.args and isinstance(value.func, ast.Name)
    return isinstance(value, ast.List) and not value.elts


def _assigned(module: Module, cls: ast.ClassDef) -> Iterator[tuple[ast.Attribute, ast.expr]]:
    """Attributes of `self`, each with what it is bound to."""
    plain = [(each.targets[0], each.value) for each in module.nodes(ast.Assign, cls)]
    typed = [(each.target, each.value) for each in module.nodes(ast.AnnAssign, cls)]
    for target, value in (*plain, *typed):
        own = isinstance(target, ast.Attribute) and module.text(target.value) == "self"
        if own and isinstance(target, ast.Attribute) and value is not None:
            yield target, value


def _members(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, (ast.List, ast.Tuple)):
        return value.elts
    if isinstance(value, ast.Dict):
        return value.values
    if isinstance(value, ast.ListComp):
        return [value.elt]
    return [value.value] if isinstance(value, ast.DictComp) else []


def _has_weights(module: Module, node: ast.expr) -> bool:
    """A call that makes a module with parameters or buffers."""
    if not isinstance(node, ast.Call):
        return False
    owner, _, last = module.qualified(node.func).rpartition(".")
    if is_a_metric(module, node):
        return last[:1].isupper()
    if owner.startswith("torch.nn") and "functional" not in owner:
        is_empty = last == "Sequential" and not node.args
        holds = _is_weighted(node) or not WITHOUT_WEIGHTS.search(last)
        return last[:1].isupper() and not is_empty and holds
    value = module.value_of(node)
    facts = module.class_facts(value.cls) if value.kind is Kind.MODULE and value.cls else None
    named = value.cls.rpartition(".")[2]
    if facts is None or not facts.fields or WITHOUT_WEIGHTS.search(named):
        return False
    return module.about(value.cls, is_stateless) is not True


def _is_weighted(made: ast.Call) -> bool:
    """A loss that is given weights keeps them in a buffer."""
    given = (keyword(made, name) for name in ("weight", "pos_weight"))
    return any(each is not None and not is_none(each) for each in given)
