"""What a loop gets as one batch, and which parts of it are moved to a device."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from tensortrail.rules.devices.shared.batches.bound_together import bound_together
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import called
from tensortrail.rules.shared.parts_moved import is_to_a_device, moved_part, root_of_chain
from tensortrail.rules.unchanging import unchanging
from tensortrail.rules.view import Module


@unchanging(frozen=True, slots=True)
class Batch:
    """Names that are bound together, once for each round of a loop."""

    scope: ast.AST
    names: Sequence[str]
    moves: Mapping[str, ast.Call] = field(default_factory=dict)
    """Of the names that are moved, the first call that does it."""

    @property
    def is_zipped(self) -> bool:
        """Its parts come from sequences of their own: `for x, y in zip(rows, others)`."""
        over = self.scope.iter if isinstance(self.scope, ast.For) else None
        if isinstance(over, ast.Call) and called(over) == "enumerate" and over.args:
            over = over.args[0]
        return isinstance(over, ast.Call) and called(over) == "zip"

    @property
    def left(self) -> Sequence[str]:
        return [each for each in self.names if each not in self.moves]


def batches(module: Module) -> Iterator[Batch]:
    """Those of which some parts are moved and others are not."""
    for scope, names in bound_together(module):
        moves = _moves(module, scope, names)
        kept = [each for each in names if each in moves or not _is_bound_again(module, scope, each)]
        found = Batch(scope, kept, moves)
        if moves and found.left:
            yield found


def _moves(module: Module, scope: ast.AST, names: Sequence[str]) -> dict[str, ast.Call]:
    """Of the names that are moved to a device, the first call that does it; where one is brought to
    another of them, it lies where that one does."""
    moves: dict[str, ast.Call] = {}
    beside: list[tuple[str, str, ast.Call]] = []
    for call in module.calls(*TO_DEVICE, inside=scope):
        name = moved_part(module, call) if is_to_a_device(module, call) else ""
        if name not in names:
            continue
        other = _brought_to(module, call)
        if other in names:
            beside.append((name, other, call))
        else:
            moves.setdefault(name, call)
    for name, other, call in beside:
        if other in moves:
            moves.setdefault(name, call)
    return moves


def _brought_to(module: Module, call: ast.Call) -> str:
    """`y` of `x.to(y.device)`, and of `x.to(place)` where that is `y.device`."""
    said = said_device(module, call)
    for each in (said, *module.value_of(said).origins) if said is not None else ():
        if isinstance(each, ast.Attribute) and each.attr == "device":
            root = root_of_chain(each.value)
            if isinstance(root, ast.Name):
                return root.id
    return ""


def _is_bound_again(module: Module, scope: ast.AST, name: str) -> bool:
    """It is made anew in the round, in whatever way: that may move it."""
    bound = [
        node
        for node in module.nodes(ast.Name, scope)
        if node.id == name and isinstance(node.ctx, ast.Store) and not _is_itself(module, node)
    ]
    return len(bound) != 1


def _is_itself(module: Module, target: ast.Name) -> bool:
    """`y` of `x, y = x.to(d), y`, and of `y = y.float()`."""
    around = module.parent(target)
    if isinstance(around, ast.Assign):
        root = root_of_chain(around.value)
        return root is not around.value and isinstance(root, ast.Name) and root.id == target.id
    statement = module.parent(around) if isinstance(around, ast.Tuple) else None
    value = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(around, ast.Tuple) or not isinstance(value, ast.Tuple):
        return False
    pairs = dict(zip(map(id, around.elts), value.elts, strict=False))
    given = pairs.get(id(target))
    return isinstance(given, ast.Name) and given.id == target.id
