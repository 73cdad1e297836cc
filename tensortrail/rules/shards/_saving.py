"""What the rules about saving look for: conversions, onloads, splits, shard loops, writers."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Setting
from tensortrail.patterns import pattern
from tensortrail.rules import Kind, Module
from tensortrail.rules.shared import objects
from tensortrail.rules.shared.objects import resolved_name

_CONVERSION = pattern(
    r"^_?(revert|reverse|convert|transform|remap|translate|apply)_\w*"
    r"(weight|state_dict|conversion|checkpoint|tensors)s?\w*$"
)
_JOINS = pattern(r"revert|reverse|merge|fuse|stack|pack|combine|concat")
_JOINING_OPS = ("cat", "stack", "concat", "hstack", "vstack")
_ONLOAD = pattern(r"load_offloaded|onload|materiali[sz]e_offloaded|offloaded_state_dict")
_READ_BACK = pattern(
    r"load_offloaded|materiali[sz]e_offloaded|offloaded_(state_dict|param|weight|tensor)"
    r"|^onload_(param|weight|tensor|state)"
)
_SPLIT = pattern(r"^_?(split_(torch_)?state_dict_into_shards\w*|shard_checkpoint)$")
_SHARDS = pattern(r"filename_to_tensors|\bshards\b")


def is_conversion(module: Module, call: ast.Call) -> bool:
    """It turns a state dict into one of other names or shapes."""
    if not _CONVERSION.match(resolved_name(module, call)):
        return False
    return any(_is_state_dict(module, each) for each in objects.given(call))


def joins_weights(module: Module, call: ast.Call) -> bool:
    """The conversion is known to make one weight of several, not only to rename them."""
    name = resolved_name(module, call)
    if _JOINS.search(name):
        return True
    defined = (each for each in module.nodes(ast.FunctionDef) if each.name == name)
    return any(
        resolved_name(module, inner) in _JOINING_OPS
        for function in defined
        for inner in module.nodes(ast.Call, function)
    )


def is_onload(module: Module, call: ast.Call) -> bool:
    """It brings weights back that are offloaded."""
    return bool(_ONLOAD.search(resolved_name(module, call)))


def reads_back(module: Module, call: ast.Call) -> bool:
    """It reads one offloaded weight, or all of them, for somebody else than the forward."""
    return bool(_READ_BACK.search(resolved_name(module, call)))


def is_split(module: Module, call: ast.Call) -> bool:
    return bool(_SPLIT.match(resolved_name(module, call)))


def shard_loop_around(module: Module, node: ast.AST) -> ast.For | None:
    """The loop over shard files that the node stands in."""
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        if isinstance(up, ast.For) and _SHARDS.search(module.text(up.iter)):
            return up
    return None


def conversions_in_shard_loops(module: Module, function: ast.AST) -> Iterator[ast.Call]:
    for call in module.nodes(ast.Call, function):
        if is_conversion(module, call) and shard_loop_around(module, call) is not None:
            yield call


def _is_state_dict(module: Module, node: ast.expr) -> bool:
    if module.kind_of(node) is Kind.STATE_DICT:
        return True
    text = module.text(node)
    named = "state_dict" in text or text in ("sd", "weights", "tensors", "checkpoint")
    return named or any(
        isinstance(each, (ast.Dict, ast.DictComp)) for each in module.value_of(node).origins
    )


KEEP_GROUPS_WHOLE = (
    Setting(
        library="transformers",
        name="save_original_format",
        value="False",
        why="saves the weights as the model holds them: nothing is converted shard by shard",
        where="save_pretrained",
    ),
    Setting(
        library="transformers",
        name="max_shard_size",
        value="above the largest group of weights converted together",
        why="a larger limit keeps groups in one file; a smaller one splits more of them",
        where="save_pretrained",
    ),
)
