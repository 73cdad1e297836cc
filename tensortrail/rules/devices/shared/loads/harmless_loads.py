"""What speaks for a load without `map_location`: the file is at hand, the same run saved it, or it
holds nothing of a GPU."""

from __future__ import annotations

import ast

from tensortrail.rules.devices.shared.loads.loaded_where import holds_numbers
from tensortrail.rules.devices.shared.loads.of_this_run import (
    follows_training,
    is_where_a_gpu_is,
)
from tensortrail.rules.devices.shared.loads.saved_here import (
    comes_with_the_project,
    is_of_whole_optimizer,
    is_saved_on_the_cpu,
    source_of,
    was_saved_above,
)
from tensortrail.rules.devices.shared.named.process_groups import runs_once_a_gpu
from tensortrail.rules.shared.functions import outermost_function
from tensortrail.rules.shared.given_devices import under_device
from tensortrail.rules.view import Module

ADDRESSES = (
    "torch.hub.load_state_dict_from_url",
    "torch.utils.model_zoo.load_url",
)
PROGRAM = "torch.jit.load"
"""Loads a compiled module, whose weights and constants lie where they were saved from."""
_PATHS_OF_THIS_RUN = frozenset({"best_model_path", "last_model_path"})
"""Of Lightning's ModelCheckpoint."""


def says_where(module: Module, call: ast.Call) -> bool:
    before = 2 if module.qualified(call.func) in ADDRESSES else 1
    if len(call.args) > before or not (call.args or call.keywords):
        return True
    if any(each.arg in (None, "map_location") for each in call.keywords):
        return True
    if any(isinstance(each, ast.Starred) for each in call.args):
        return True
    return under_device(module, call)


def is_harmless(module: Module, call: ast.Call) -> bool:
    near = _is_of_fsdp(module, call) or _is_of_memory(module, call) or _is_mapped(module, call)
    near = near or holds_numbers(module, call) or is_of_whole_optimizer(module, call)
    near = near or is_saved_on_the_cpu(module, call)
    function = outermost_function(module, call)
    if near or (function is not None and runs_once_a_gpu(module, function)):
        return near  # of the saver's GPU every process takes memory
    near = _is_of_this_run(call) or follows_training(module, call)
    near = near or is_where_a_gpu_is(module, call) or comes_with_the_project(module, call)
    near = near or _has_fixed_name(module, call) or _is_tried_first(module, call)
    return near or was_saved_above(module, call)


def _is_mapped(module: Module, call: ast.Call) -> bool:
    """Into memory: what is read of it is read from the file. With `assign=True` the loaded tensors
    themselves become the parameters."""
    assigned = any(
        isinstance(each.func, ast.Attribute)
        and each.func.attr == "load_state_dict"
        and any(one.arg == "assign" for one in each.keywords)
        for each in module.later(module.statement_of(call), ast.Call)
    )
    return not assigned and any(each.arg == "mmap" for each in call.keywords)


def _is_of_this_run(call: ast.Call) -> bool:
    """`checkpoint.best_model_path` of Lightning: the same process saved the file."""
    source = source_of(call)
    return isinstance(source, ast.Attribute) and source.attr in _PATHS_OF_THIS_RUN


def _is_tried_first(module: Module, call: ast.Call) -> bool:
    """If it fails, the handler of the `try` around it loads again and says where."""
    child: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, ast.Try) and child in up.body:
            loads = (each for one in up.handlers for each in module.calls("torch.load", inside=one))
            return any(says_where(module, each) for each in loads)
        child = up
    return False


def _has_fixed_name(module: Module, call: ast.Call) -> bool:
    """A file of a fixed name, an address, or a script: who wrote the name, or runs it, has the
    file."""
    if module.qualified(call.func) in ADDRESSES:
        return True
    source = source_of(call)
    fixed = isinstance(module.value_of(source).constant, str)
    return fixed or module.function_of(call) is None


def _is_of_fsdp(module: Module, call: ast.Call) -> bool:
    """Under a state-dict type of FSDP, which writes tensors of the CPU unless told otherwise."""
    around = module.contexts_of(call)
    made = [source for each in around for source in module.value_of(each).origins]
    said = " ".join(module.text(each) for each in (*around, *made))
    return "state_dict_type" in said or "StateDictType" in said


def _is_of_memory(module: Module, call: ast.Call) -> bool:
    """Bytes that somebody handed over, who mostly was near."""
    source = source_of(call)
    made = (source, *module.value_of(source).origins)
    return any("BytesIO" in module.text(each) for each in made)


def was_just_saved(module: Module, call: ast.Call) -> bool:
    """A copy through memory: the tensors were here a moment ago."""
    source = source_of(call)
    while isinstance(source, ast.Call) and source.args:
        source = source.args[0]
    names = (module.text(source), module.text(source).partition(".")[0])
    function = module.function_of(call)
    saved = (module.argument(each, 1, "f") for each in module.calls("torch.save", inside=function))
    return any(each is not None and module.text(each) in names for each in saved)
