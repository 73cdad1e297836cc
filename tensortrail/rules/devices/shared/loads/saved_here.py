"""Who wrote the file that is loaded, and what of: as the project shows."""

from __future__ import annotations

import ast
import os

from tensortrail.patterns import pattern
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.devices.shared.loads.of_this_run import with_its_key
from tensortrail.rules.devices.shared.loads.published import is_download, is_published
from tensortrail.rules.project_facts import Content, SavedFile
from tensortrail.rules.shared.never_given import is_never_given
from tensortrail.rules.shared.objects import called, last_name
from tensortrail.rules.view import Module

_RANK = pattern(r"(^|_)rank$|^process_index$|^is_(local_)?main_process$")
_MOST = 20
"""Expressions that are looked at behind one name."""
_FULL = frozenset(
    "scatter_full_optim_state_dict shard_full_optim_state_dict optim_state_dict_to_load".split()
)
"""Methods of FSDP that take the whole state of an optimizer, which FSDP gathers on the CPU."""


def source_of(call: ast.Call) -> ast.expr:
    return call.args[0] if call.args else call.keywords[0].value


def is_saved_on_the_cpu(module: Module, call: ast.Call) -> bool:
    """Whatever the project writes under that name is no tensor, or was on the CPU."""
    found = module.once(_saves, call)
    return bool(found) and all(each.content in (Content.NO_TENSOR, Content.CPU) for each in found)


def where_it_is_saved(module: Module, call: ast.Call) -> str:
    """` (model.py:12 saves it from wherever the model is)`; "" where the project shows none."""
    found = [each for each in module.once(_saves, call) if each.content is Content.COMPUTED]
    if not found:
        return ""
    first = found[0]
    file = "" if first.path == module.path else f"{os.path.basename(first.path)}:"
    place = f"{file}{first.line}" if file else f"line {first.line}"
    return f" ({place} saves it from wherever the model is)"


def _saves(module: Module, call: ast.Call) -> list[SavedFile]:
    return [*module.saves_in_project(source_of(call))]


def was_saved_above(module: Module, call: ast.Call) -> bool:
    """The function itself wrote a file of that name before it comes here."""
    function = module.function_of(call)
    start = function.lineno if function is not None else call.lineno
    return any(
        each.path == module.path and start < each.line < call.lineno
        for each in module.once(_saves, call)
    )


def is_of_whole_optimizer(module: Module, call: ast.Call) -> bool:
    """`FSDP.scatter_full_optim_state_dict(torch.load(path), model)`."""
    loaded = with_its_key(module, call)
    above, name = module.parent(loaded), ""
    if isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
        name = above.targets[0].id
    for taker in module.calls(*_FULL, inside=module.function_of(call)):
        for each in (*taker.args, *(each.value for each in taker.keywords)):
            if each is loaded or (isinstance(each, ast.Name) and each.id == name):
                return True
    return False


def comes_with_the_project(module: Module, call: ast.Call) -> bool:
    """The code names the file: a download of a name that is written out, one of a table of
    addresses, one whose bytes it writes itself, or the default of a parameter that nobody gives.
    Who wrote the code has seen the file."""
    behind = _behind(module, source_of(call))
    function = module.function_of(call)
    names = {each.id for node in behind for each in ast.walk(node) if isinstance(each, ast.Name)}
    inner = [each for node in behind for each in ast.walk(node) if isinstance(each, ast.expr)]
    named = any(is_download(module, each) for each in inner) or is_published(module, inner)
    named = named or _is_written_as_bytes(module, source_of(call))
    return named or (
        function is not None
        and any(
            name.arg in names and is_never_given(module, function, name.arg)
            for name, default in with_defaults(function.args)
            if isinstance(default, ast.Constant) and isinstance(default.value, str)
        )
    )


def is_of_its_rank(module: Module, call: ast.Call) -> bool:
    """The name of the file holds the rank: each process loads what it saved itself."""
    return any(names_a_rank(module, each) for each in _behind(module, source_of(call)))


def names_a_rank(module: Module, node: ast.AST) -> bool:
    """`rank`, `self.local_rank`, `dist.get_rank()`"""
    return any(
        _RANK.search(called(each) if isinstance(each, ast.Call) else last_name(each))
        for each in ast.walk(node)
        if isinstance(each, (ast.Call, ast.Name, ast.Attribute))
    )


def _is_written_as_bytes(module: Module, source: ast.expr) -> bool:
    """`open(self.path, "wb")`: the class fetches the file, or unpacks it."""
    shown, around = module.text(source), module.class_of(source) or module.function_of(source)
    return around is not None and any(
        len(each.args) > 1
        and module.text(each.args[0]) == shown
        and module.value_of(each.args[1]).constant == "wb"
        for each in module.calls("open", inside=around)
    )


def _behind(module: Module, source: ast.expr) -> list[ast.expr]:
    """The name of the file, and what the names in it were assigned from."""
    found, todo = [source], [source]
    while todo and len(found) < _MOST:
        for name in ast.walk(todo.pop()):
            if isinstance(name, ast.Name):
                new = [each for each in module.value_of(name).origins if each not in found]
                found += new
                todo += new
    return found
