"""State that a module makes once, hands to one of its layers, and takes back: `self.hidden`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.devices._lying import sets_up
from tensortrail.rules.places import Held, What, Where
from tensortrail.rules.shared.objects import given
from tensortrail.rules.view import Module

_RECURRENT = frozenset(
    f"torch.nn.{each}" for each in ("LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell")
)


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
        if call is not None and function is not None and sets_up(function):
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
    call = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(call, ast.Call) or not _is_recurrent(module, call.func):
        return None
    handed = any(module.text(each) == module.text(store) for each in given(call))
    return call if handed else None


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
