"""State that a module makes once, hands to one of its layers, and takes back: `self.hidden`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.devices.shared.written_for.goes_along import only_sets_up
from tensortrail.rules.places import Held, What, Where
from tensortrail.rules.shared.objects import given
from tensortrail.rules.view import Module

_RECURRENT = frozenset(
    f"torch.nn.{each}" for each in ("LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell")
)

_SAME_PLACE = frozenset({"detach", "clone", "detach_", "contiguous"})


class Carried(NamedTuple):
    made: ast.Attribute
    """Where the state is made, while the module is set up."""
    call: ast.Call
    """`self.rnn(x, self.hidden)`, whose answer becomes the state."""


def carried_states(module: Module, cls: ast.ClassDef) -> Iterator[Carried]:
    """States on the default device whose every other assignment comes from the layer."""
    stores: dict[str, list[ast.Attribute]] = {}
    for node in module.nodes(ast.Attribute, cls):
        if _is_own(node) and module.class_of(node) is cls:
            stores.setdefault(node.attr, []).append(node)
    twice = {name: found for name, found in stores.items() if len(found) == 2}
    elsewhere = module.once(_stored_on_others, module.top) if twice else frozenset()
    for name, found in twice.items():
        if name in elsewhere:
            continue
        made, again = found
        function = module.function_of(made)
        call = _update(module, again)
        if call is not None and function is not None and only_sets_up(module, function):
            held = module.places(function).seen.get(made)
            if held is not None and _is_on_default(held):
                yield Carried(made, call)


def _is_own(node: ast.Attribute) -> bool:
    """`self.hidden = ...`"""
    owner = node.value
    return isinstance(node.ctx, ast.Store) and isinstance(owner, ast.Name) and owner.id == "self"


def _stored_on_others(module: Module, top: ast.AST) -> frozenset[str]:
    """Attributes that the file assigns to other objects than `self`."""
    return frozenset(
        node.attr
        for node in module.nodes(ast.Attribute)
        if isinstance(node.ctx, ast.Store) and not _is_own(node)
    )


def _update(module: Module, store: ast.Attribute) -> ast.Call | None:
    """The call of a submodule that is given the state and gives the next one."""
    statement = module.statement_of(store)
    given_back = statement.value if isinstance(statement, ast.Assign) else None
    call = _answering_call(module, given_back) if given_back is not None else None
    if call is None or not _is_recurrent(module, call.func):
        return None
    shown = module.text(store)
    handed = [part for each in given(call) for part in (each, *module.nodes(ast.Attribute, each))]
    return call if any(module.text(each) == shown for each in handed) else None


def _answering_call(module: Module, value: ast.expr) -> ast.Call | None:
    """The call that the state is taken from: `hidden.detach()` after `out, hidden = rnn(...)`, and
    `(h.detach(), c.detach())`."""
    if isinstance(value, ast.Tuple) and value.elts:
        value = value.elts[0]
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in _SAME_PLACE:
            return value
        value = value.func.value
    if isinstance(value, ast.Name):
        return _binding_call(module, value)
    return value if isinstance(value, ast.Call) else None


def _binding_call(module: Module, name: ast.Name) -> ast.Call | None:
    """The last call before, that binds the name together with others."""
    found: ast.Call | None = None
    for assign in module.nodes(ast.Assign, module.function_of(name)):
        bound = [each for target in assign.targets for each in module.nodes(ast.Name, target)]
        if _is_over(assign, name) and any(each.id == name.id for each in bound):
            found = assign.value if isinstance(assign.value, ast.Call) else None
    return found


def _is_over(statement: ast.stmt, name: ast.Name) -> bool:
    end = (statement.end_lineno or 0, statement.end_col_offset or 0)
    return end <= (name.lineno, name.col_offset)


def _is_recurrent(module: Module, layer: ast.expr) -> bool:
    """`self.rnn` after `self.rnn = nn.LSTM(n, n)`."""
    made = module.value_of(layer).origins if isinstance(layer, ast.Attribute) else ()
    return bool(made) and all(
        isinstance(each, ast.Call) and module.qualified(each.func) in _RECURRENT for each in made
    )


def _is_on_default(held: Held) -> bool:
    """A tensor, or a tuple of tensors, that was made without a device."""
    if held.what is What.BOX:
        return bool(held.parts) and all(_is_on_default(each) for each in held.parts or ())
    where = {each.where for each in held.places}
    return held.what is What.TENSOR and where == {Where.DEFAULT}
