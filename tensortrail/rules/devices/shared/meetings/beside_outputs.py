"""Attributes of a module that an operation takes together with what its layers give."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensortrail.rules.devices.shared.meetings.following import follows
from tensortrail.rules.devices.shared.meetings.place_of_computed import place_of_computed
from tensortrail.rules.devices.shared.modules.attribute_reads import ASKED
from tensortrail.rules.devices.shared.written_for.device_aware import is_forward
from tensortrail.rules.places import Held, What, Where
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import is_self
from tensortrail.rules.view import FunctionNode, Module


def meets_the_layers(module: Module, cls: ast.ClassDef, name: str) -> bool:
    """`self.mix(x) * self.weight.view(-1)`: an operation takes it, as it was kept, together with
    what the layers of the module give."""
    return any(
        isinstance(node.ctx, ast.Load)
        and is_self(node.value)
        and _is_beside_an_output(module, _whole(module, node))
        for node in module.members(name, cls)
    )


def _whole(module: Module, node: ast.expr) -> ast.expr:
    """`self.weight.unsqueeze(-1)` of `self.weight`."""
    while True:
        above = module.parent(node)
        is_base = isinstance(above, ast.Attribute) and above.attr not in MOVES | ASKED
        is_called = isinstance(above, ast.Call) and above.func is node
        if not (is_base or is_called) or not isinstance(above, ast.expr):
            return node
        node = above


def _is_beside_an_output(module: Module, node: ast.expr) -> bool:
    function = module.function_of(node)
    if function is None:
        return False
    seen = module.places(function).seen
    others = [seen[each] for each in _beside(module, node) if each in seen]
    return any(_goes_along(module, function, each) for each in others)


def _beside(module: Module, node: ast.expr) -> Sequence[ast.expr]:
    """`x` of `x * self.weight` and of `torch.einsum("bm,m->b", x, self.weight)`."""
    above = module.parent(node)
    if isinstance(above, ast.BinOp):
        return (above.right if above.left is node else above.left,)
    if not isinstance(above, ast.Call) or not module.qualified(above.func).startswith("torch."):
        return ()
    return [each for each in above.args if each is not node]


def _goes_along(module: Module, function: FunctionNode, held: Held) -> bool:
    """What a layer of the module gives, or what `forward` is given and makes of that."""
    if held.what is not What.TENSOR or held.only is None or held.only.given:
        return False
    if held.only.where is Where.SELF:
        return True
    if not is_forward(module, function):
        return False
    return bool(follows(module, function, held) or place_of_computed(module, function, held))
