"""The keys that a source writes into its checkpoints, and those that it reads from them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.rules.project_facts import SavedFile
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.view import Module


class Saved(NamedTuple):
    call: ast.Call
    path: str
    keys: frozenset[str]


class Read(NamedTuple):
    node: ast.Subscript
    key: str
    path: str
    load: ast.Call


class Mistaken(NamedTuple):
    value: ast.expr
    key: str
    owner: str
    taker: str
    """What loads the entry: the writer has it at hand, and saves `owner` under both keys."""
    load: ast.Call


def saved_mappings(module: Module) -> list[Saved] | None:
    """Every `torch.save` of a mapping, with its keys; None if those of one are not known."""
    found: list[Saved] = []
    for call in module.calls("save"):
        if module.qualified(call.func) != "torch.save":
            continue
        what, path = module.argument(call, 0, "obj"), module.argument(call, 1, "f")
        if what is None or path is None:
            return None
        if _is_state_dict(module, what):
            continue
        own = (each for each in module.saves_in_project(path) if each.path == module.path)
        keys = next((each.keys for each in own if each.line == call.lineno), None)
        if keys is None:
            return None
        found.append(Saved(call, module.text(path), keys))
    return found


def mistaken_values(module: Module) -> Iterator[Mistaken]:
    """`"q2": self.q.state_dict()` beside `"q": self.q.state_dict()`, where `self.q2` loads it."""
    loads = dict(_loads_by_key(module))
    for display in module.nodes(ast.Dict) if loads else ():
        saved = [*_saved_by_key(module, display)]
        right = {owner for key, owner, _ in saved if key in loads and loads[key][0] == owner}
        for key, owner, value in saved:
            taker, load = loads.get(key, (owner, None))
            if load is not None and taker != owner in right and _names(module, display, taker):
                yield Mistaken(value, key, owner, taker, load)


def _loads_by_key(module: Module) -> Iterator[tuple[str, tuple[str, ast.Call]]]:
    for call in module.calls("load_state_dict"):
        taken, owner = call.args[0] if call.args else None, receiver(call)
        if isinstance(taken, ast.Subscript) and isinstance(taken.slice, ast.Constant):
            yield str(taken.slice.value), (module.text(owner) if owner is not None else "", call)


def _saved_by_key(module: Module, display: ast.Dict) -> Iterator[tuple[str, str, ast.expr]]:
    for key, value in zip(display.keys, display.values, strict=True):
        made = value.body if isinstance(value, ast.IfExp) else value
        owner = receiver(made) if isinstance(made, ast.Call) else None
        is_state = isinstance(made, ast.Call) and called(made) == "state_dict"
        if isinstance(key, ast.Constant) and owner is not None and is_state:
            yield str(key.value), module.text(owner), value


def _names(module: Module, display: ast.Dict, owner: str) -> bool:
    """The function that makes the mapping reads the owner too."""
    function = module.function_of(display)
    kinds = (ast.Attribute, ast.Name)
    found = (each for kind in kinds if function for each in module.nodes(kind, function))
    return any(module.text(each) == owner for each in found)


def saved_elsewhere(module: Module, load: ast.Call) -> list[SavedFile]:
    """What other files of the project write under the name that is loaded."""
    path = module.argument(load, 0, "f")
    found = module.saves_in_project(path) if path is not None else ()
    return [each for each in found if each.path != module.path]


def keys_read(module: Module) -> Iterator[Read]:
    """`state["model"]` of `state = torch.load(path)`, where nothing asks whether it is there."""
    for item in module.nodes(ast.Subscript):
        key = item.slice.value if isinstance(item.slice, ast.Constant) else None
        if not isinstance(key, str) or not isinstance(item.ctx, ast.Load):
            continue
        load = _loaded(module, item.value)
        path = module.argument(load, 0, "f") if load is not None else None
        if load is None or path is None or _is_asked_for(module, item, key):
            continue
        yield Read(item, key, module.text(path), load)


def _loaded(module: Module, node: ast.expr) -> ast.Call | None:
    if isinstance(node, ast.Name):
        origins = module.value_of(node).origins
        node = origins[0] if len(origins) == 1 and isinstance(origins[0], ast.expr) else node
    is_load = isinstance(node, ast.Call) and module.qualified(node.func) == "torch.load"
    return node if isinstance(node, ast.Call) and is_load else None


def _is_asked_for(module: Module, item: ast.Subscript, key: str) -> bool:
    """A condition names the key, or an error of its absence is caught."""
    if any(key in module.text(guard.test) for guard in module.guards_of(item)):
        return True
    return any(isinstance(up, (ast.Try, ast.IfExp)) for up in module.ancestors(item))


def _is_state_dict(module: Module, what: ast.expr) -> bool:
    """The state dict of a model alone, whose keys are names of parameters."""
    made = [each for each in module.value_of(what).origins if isinstance(each, ast.expr)]
    parts = [what] if isinstance(what, ast.Call) else made
    return bool(parts) and all(
        isinstance(each, ast.Call) and called(each) == "state_dict" for each in parts
    )
