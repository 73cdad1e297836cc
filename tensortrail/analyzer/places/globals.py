"""What stands under a name at the top of a file, as the functions of the file find it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from tensortrail.analyzer.places.functions.world import World
from tensortrail.analyzer.places.statements import Inference
from tensortrail.analyzer.syntax.tree import SCOPES, Tree
from tensortrail.analyzer.values.beliefs import Beliefs
from tensortrail.rules.places import UNKNOWN_HELD, Held, Place, What, Where
from tensortrail.rules.shared.moves import MODULE_MOVES

_TOLD = (Where.DEVICE, Where.LITERAL)


class Globals:
    """Inferred when a function first asks for a name that is not its own. The file is passed to
    each question and not kept: files are let go of without a collector."""

    def __init__(self) -> None:
        self._held: Beliefs[Held] | None = None
        self._changed: Collection[str] | None = None

    def held(self, world: World, name: str) -> Held:
        if self._held is None:
            self._held = Beliefs()  # what is made at the top by itself ends here
            self._held = _inferred(world)
        held = self._held.get(name) or UNKNOWN_HELD
        if held.what is What.TENSOR and held.only is not None:
            made = held.only.where in (Where.DEFAULT, Where.HOST) and self._stays(world.tree, name)
            return held.at(Place(Where.STAYS, name, held.only.by)) if made else UNKNOWN_HELD
        if held.what is What.MODULE and held.only is not None:
            return (
                held if held.only.where in _TOLD and self._stays(world.tree, name) else UNKNOWN_HELD
            )
        if held.what is What.OBJECT:
            return held if self._stays(world.tree, name) else UNKNOWN_HELD
        return held if held.what in (What.NUMBER, What.DEVICE) else UNKNOWN_HELD

    def _stays(self, tree: Tree, name: str) -> bool:
        """Nothing but plain statements at the top of the file bind or move it."""
        if self._changed is None:
            self._changed = frozenset(_names_changed(tree))
        return name not in self._changed


def _inferred(world: World) -> Beliefs[Held]:
    inference = Inference(world, None)
    inference.run_top([each for each in world.tree.root.body if _is_plain(each)])
    return Beliefs() if inference.end is None else inference.end.values


def _names_changed(tree: Tree) -> Iterator[str]:
    for declared in tree.nodes(ast.Global):
        yield from declared.names
    for node in tree.nodes(ast.Name):
        if isinstance(node.ctx, ast.Load):
            above = tree.parent(node)
            if not isinstance(above, ast.Attribute) or above.attr not in MODULE_MOVES:
                continue
        elif any(isinstance(each, SCOPES) for each in tree.ancestors(node)):
            continue  # a name of the function
        around = tree.ancestors(node)
        if not any(_is_plain(each) and tree.parent(each) is tree.root for each in around):
            yield node.id


def _is_plain(statement: ast.AST) -> bool:
    """An assignment, or `net.to(device)` as a statement."""
    if isinstance(statement, (ast.Assign, ast.AnnAssign)):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    moved = call.func if isinstance(call, ast.Call) else None
    return isinstance(moved, ast.Attribute) and moved.attr in MODULE_MOVES
