"""Calls that every process of a run has to make."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.objects import keyword, receiver
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.view import Module

_COLLECTIVES = (
    "all_reduce all_gather all_gather_into_tensor all_gather_single all_gather_object all_to_all "
    "all_to_all_single barrier broadcast broadcast_object_list gather gather_object "
    "monitored_barrier reduce reduce_scatter reduce_scatter_single reduce_scatter_tensor scatter "
    "scatter_object_list"
).split()
_OF_ACCELERATORS = frozenset(
    "save_state load_state gather gather_for_metrics reduce wait_for_everyone get_state_dict "
    "pad_across_processes".split()
)
_CHECKPOINTS = (
    "torch.distributed.checkpoint.save",
    "torch.distributed.checkpoint.load",
    "torch.distributed.checkpoint.async_save",
)
_OF_ENGINES = ("save_checkpoint", "load_checkpoint", "save_16bit_model", "save_fp16_model")
_FSDP = "FullyShardedDataParallel"


def made_by_all(module: Module) -> Iterator[ast.Call]:
    """Calls in which each process waits for all others."""
    for name in _COLLECTIVES:
        for call in module.calls(f"torch.distributed.{name}"):
            if keyword(call, "group") is None:
                yield call
    yield from module.calls(*_CHECKPOINTS)
    yield from (each for each in module.calls(*_OF_ACCELERATORS) if is_of_accelerator(module, each))
    yield from (each for each in module.calls(*_OF_ENGINES) if _is_of_engine(module, each))
    for call in module.calls("state_dict"):
        owner = receiver(call)
        if owner is not None and _is_sharded(module, owner):
            yield call


WAITS_ALWAYS = frozenset(
    {"gather", "gather_for_metrics", "reduce", "wait_for_everyone", "pad_across_processes"}
)
"""Of an Accelerator, whatever it works with."""


def is_of_accelerator(module: Module, call: ast.Call) -> bool:
    owner = receiver(call)
    named = module.value_of(owner).cls if owner is not None else ""
    return named.rpartition(".")[2] == "Accelerator"


def _is_of_engine(module: Module, call: ast.Call) -> bool:
    """Of what `deepspeed.initialize` gave, or of what goes back and steps by itself, as an engine
    of DeepSpeed does and nothing else that saves checkpoints."""
    owner = receiver(call)
    return owner is not None and module.text(owner) in module.once(_engines, module.top)


def _engines(module: Module, _: ast.AST) -> set[str]:
    backward, stepped = (
        {module.text(owner) for call in module.calls(name) if (owner := receiver(call))}
        for name in ("backward", "step")
    )
    targets = (
        assign.targets[0]
        for call in module.calls("deepspeed.initialize")
        if isinstance(assign := module.parent(call), ast.Assign)
    )
    first = (each.elts[0] for each in targets if isinstance(each, ast.Tuple) and each.elts)
    return (backward & stepped) | {module.text(each) for each in first}


def may_be_sharded(module: Module, call: ast.Call) -> bool:
    """The file names what shards models over processes, and the call is not where that is off."""
    guards = module.guards_of(call)
    off = any(not each.holds and each.mentions("fsdp", "deepspeed") for each in guards)
    return mentions_sharding(module) and not off


def mentions_sharding(module: Module) -> bool:
    """The file uses what shards models over processes: a field of that name alone is no use."""
    names = [each.id for each in module.nodes(ast.Name) if isinstance(each.ctx, ast.Load)]
    names += [each.attr for each in module.nodes(ast.Attribute) if isinstance(each.ctx, ast.Load)]
    return any("deepspeed" in each.lower() or "fsdp" in each.lower() for each in names)


def _is_sharded(module: Module, owner: ast.expr) -> bool:
    """The function has wrapped the model in FSDP."""
    made = behind(module, owner)
    return isinstance(made, ast.Call) and module.qualified(made.func).endswith(f".{_FSDP}")
