"""Calls that every process of a run has to make."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.patterns import pattern
from tensortrail.rules.shared.collectives import GROUP_AT
from tensortrail.rules.shared.objects import called, is_self, is_true, keyword, receiver
from tensortrail.rules.shared.origins import kept_behind
from tensortrail.rules.view import Module

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
_OF_FABRIC = frozenset("all_reduce all_gather barrier broadcast save load".split())
_OF_TRAINERS = frozenset({"train", "evaluate", "predict"})
_TRAINER = pattern(r"^(?:transformers|trl)\..*Trainer$")
_FSDP = "FullyShardedDataParallel"
_OF_FSDP = tuple(
    f"torch.distributed.fsdp.{_FSDP}.{each}"
    for each in ("full_optim_state_dict", "optim_state_dict", "summon_full_params")
)


def made_by_all(module: Module) -> Iterator[ast.Call]:
    """Calls in which each process waits for all others."""
    for name, position in GROUP_AT.items():
        for call in module.calls(f"torch.distributed.{name}"):
            if module.argument(call, position, "group") is None:
                yield call
    yield from module.calls(*_CHECKPOINTS, *_OF_FSDP, "full_tensor")
    yield from (each for each in module.calls(*_OF_ACCELERATORS) if is_of_accelerator(module, each))
    yield from (each for each in module.calls(*_OF_ENGINES) if _is_of_engine(module, each))
    yield from (each for each in module.calls(*_OF_FABRIC) if _is_of(module, each, "Fabric"))
    yield from (each for each in module.calls(*_OF_TRAINERS) if _is_of_trainer(module, each))
    yield from (each for each in module.calls("log", "log_dict") if _is_averaged_log(each))
    yield from _of_sharded_models(module)


def _is_averaged_log(call: ast.Call) -> bool:
    """Of a LightningModule, which averages the value over all processes."""
    owner = receiver(call)
    of_some = keyword(call, "rank_zero_only") is not None
    averaged = is_true(keyword(call, "sync_dist")) and not of_some
    return owner is not None and is_self(owner) and averaged


def _of_sharded_models(module: Module) -> Iterator[ast.Call]:
    """`model(x)` and `model.state_dict()`, where the model was wrapped in FSDP: they gather its
    weights."""
    wraps = next(module.calls(f"torch.distributed.fsdp.{_FSDP}"), None)
    for call in module.nodes(ast.Call) if wraps is not None else ():
        owner = receiver(call) if called(call) == "state_dict" else call.func
        if owner is not None and is_fsdp(module, owner):
            yield call


WAITS_ALWAYS = frozenset(
    {"gather", "gather_for_metrics", "reduce", "wait_for_everyone", "pad_across_processes"}
)
"""Of an Accelerator, whatever it works with."""


def is_of_accelerator(module: Module, call: ast.Call) -> bool:
    return _is_of(module, call, "Accelerator")


def _is_of(module: Module, call: ast.Call, name: str) -> bool:
    """A method of an object of a library's class."""
    owner = receiver(call)
    return owner is not None and module.value_of(owner).cls.rpartition(".")[2] == name


def _is_of_trainer(module: Module, call: ast.Call) -> bool:
    """Of a Trainer of transformers, or of a class of the project that is one."""
    owner = receiver(call)
    cls = module.value_of(owner).cls if owner is not None else ""
    facts = module.class_facts(cls) if cls else None
    return any(_TRAINER.search(each) for each in (cls, *(facts.bases if facts else ())))


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


def is_fsdp(module: Module, model: ast.expr) -> bool:
    """The function, or the class, has wrapped the model in FSDP."""
    made = kept_behind(module, model)
    return isinstance(made, ast.Call) and module.qualified(made.func).endswith(f".{_FSDP}")
