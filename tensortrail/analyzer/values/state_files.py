"""Functions around `torch.save` and `load_state_dict`: the models whose state goes to a file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.analyzer.facts.project_file import ProjectFile
from tensortrail.analyzer.values.functions import params_of
from tensortrail.rules.shared.objects import called
from tensortrail.rules.state_files import UNWRAPS, WRITERS
from tensortrail.rules.view import FunctionNode


def written_states(file: ProjectFile, function: FunctionNode) -> frozenset[str]:
    """The parameters whose state dict the function writes into a file, with the keys it has."""
    if next(file.calls("state_dict"), None) is None:
        return frozenset()
    asked = {
        name: call
        for name, call in _asked_of_parameters(file, function, "state_dict")
        if _is_written(file, function, call)
    }
    return frozenset() if not asked or _renames(file, function) else frozenset(asked)


def loaded_states(file: ProjectFile, function: FunctionNode) -> frozenset[str]:
    """The parameters that are given a state dict, with the keys it has."""
    if next(file.calls("load_state_dict"), None) is None:
        return frozenset()
    asked = {name for name, _ in _asked_of_parameters(file, function, "load_state_dict")}
    return frozenset() if not asked or _renames(file, function) else frozenset(asked)


def _asked_of_parameters(
    file: ProjectFile, function: FunctionNode, method: str
) -> Iterator[tuple[str, ast.Call]]:
    """`model.state_dict()` of a parameter that is not bound to anything else."""
    names = set(params_of(function, False)) - _bound(file, function)
    for call in file.tree.nodes(ast.Call, function):
        func = call.func
        owner = func.value if isinstance(func, ast.Attribute) and func.attr == method else None
        if isinstance(owner, ast.Name) and owner.id in names:
            yield owner.id, call


def _bound(file: ProjectFile, function: FunctionNode) -> set[str]:
    names = file.tree.nodes(ast.Name, function)
    return {each.id for each in names if isinstance(each.ctx, ast.Store)}


def _is_written(file: ProjectFile, function: FunctionNode, call: ast.Call) -> bool:
    """At once, or by way of a variable or of a mapping in one."""
    for up in file.tree.ancestors(call):
        if isinstance(up, ast.Call) and called(up) in WRITERS:
            return True
        if isinstance(up, ast.Assign):
            return bool(_roots(up) & _given_to_writers(file, function))
    return False


def _roots(assign: ast.Assign) -> set[str]:
    """`state` of `state = {...}` and of `state["model"] = ...`."""
    found = set()
    for target in assign.targets:
        while isinstance(target, ast.Subscript):
            target = target.value
        found.add(getattr(target, "id", ""))
    return found


def _given_to_writers(file: ProjectFile, function: FunctionNode) -> set[str]:
    writers = (each for each in file.tree.nodes(ast.Call, function) if called(each) in WRITERS)
    return {getattr(each, "id", "-") for call in writers for each in call.args}


def _renames(file: ProjectFile, function: FunctionNode) -> bool:
    """It calls what changes keys, or goes through the `module` of a wrapper: its code, not what
    is said of it."""
    names = [each.attr for each in file.tree.nodes(ast.Attribute, function)]
    texts = [str(each.value) for each in file.tree.nodes(ast.Constant, function)]
    calls = [called(each) for each in file.tree.nodes(ast.Call, function)]
    unwraps = any(word in name for name in (*names, *calls) for word in UNWRAPS)
    return unwraps or "module" in names or "_orig_mod" in " ".join(texts)
