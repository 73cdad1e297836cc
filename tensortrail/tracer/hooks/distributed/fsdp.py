"""FSDP2 shards, gathers and frees parameters; this notes which, and whose memory it uses.

Where it gathers, frees and reduces them without code of others, the mode is off: it would see some
hundred calls a step, and act on few."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any
from weakref import ref

import torch
from torch.compiler import is_compiling
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.distributed.fsdp_alone import (
    changes_alone,
    gathers_alone,
    only_copies,
    reduces_alone,
)
from tensortrail.tracer.hooks.distributed.fsdp_shards import Shards
from tensortrail.tracer.hooks.shared.looking import looking_before
from tensortrail.tracer.hooks.shared.without_our_mode import without_our_mode
from tensortrail.tracer.hooks.torch.storage_methods import resized_at_one_line
from tensortrail.tracer.patching.mode_stack import stepped_aside
from tensortrail.tracer.patching.patches import Around, Patches
from tensortrail.tracer.watching.arming import kept_on
from tensortrail.tracer.watching.mode import TrailMode

LIBRARY = "torch.distributed.fsdp._fully_shard._fully_shard"
CHANGES = {"_to_unsharded": "unshard", "_to_sharded": "reshard",
           "_to_sharded_post_forward": "reshard"}  # fmt: skip
ALONE = {"_to_unsharded", "_to_sharded"}
"""They put parameters into modules and free storages, and compute nothing."""


def install(recorder: Recorder, patches: Patches) -> None:
    from torch.distributed.fsdp._fully_shard import _fully_shard
    from torch.distributed.fsdp._fully_shard._fsdp_param import FSDPParam
    from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup

    shards = Shards(recorder)
    naming = looking_before(recorder, lambda _, module, *__, **___: shards.name(module))
    patches.wrap(_fully_shard, "fully_shard", naming, everywhere=True)
    patches.wrap(FSDPParam, "_init_sharded_param", _sharding(recorder, shards))
    patches.wrap(FSDPParam, "reset_sharded_param", _resetting(recorder, shards))
    looking = looking_before(recorder, lambda _, group, *__, **___: shards.before_gathering(group))
    patches.wrap(FSDPParamGroup, "unshard", looking)
    for method, op in CHANGES.items():
        patches.wrap(FSDPParamGroup, method, _changing(recorder, shards, method, op))
    _watch_collectives(recorder, patches)

    def stepping(optimizer: Any, args: Any, kwargs: Any) -> None:
        if recorder.active and not is_compiling():
            recorder.guarded(lambda _: shards.before_step(optimizer))

    recorder.at_close.append(register_optimizer_step_pre_hook(stepping).remove)


def _watch_collectives(recorder: Recorder, patches: Patches) -> None:
    from torch.distributed.fsdp._fully_shard import _fsdp_collectives, _fsdp_param_group

    patches.wrap(_fsdp_collectives, "_get_all_gather_input_metadatas", without_our_mode)
    patches.wrap(_fsdp_param_group, "foreach_all_gather_copy_out", _copying_out(recorder))
    if (giver := getattr(_fsdp_collectives, "DefaultAllocMixin", None)) is not None:
        patches.wrap(giver, "allocate", _allocating(recorder))
        ours = ref(giver.allocate)
        patches.wrap(_fsdp_param_group, "foreach_all_gather", _gathering(recorder, ours))
        group = _fsdp_param_group.FSDPParamGroup
        patches.wrap(group, "post_backward", _reducing(recorder, ours))


def _sharding(recorder: Recorder, shards: Shards) -> Around:
    def around(original: Any, sharded: Any, param: Any, *args: Any, **kwargs: Any) -> Any:
        whole = recorder.storages.entries(param)
        result = original(sharded, param, *args, **kwargs)
        recorder.guarded(lambda _: shards.sharded(sharded, whole))
        return result

    return around


def _resetting(recorder: Recorder, shards: Shards) -> Around:
    def around(original: Any, sharded: Any, *args: Any, **kwargs: Any) -> Any:
        before = recorder.guarded(lambda _: shards.held(sharded))
        with recorder.fresh_memory.looking_away():
            result = original(sharded, *args, **kwargs)
        if before is not None:
            recorder.guarded(lambda _: shards.reset(sharded, before))
        return result

    return around


def _changing(recorder: Recorder, shards: Shards, method: str, op: str) -> Around:
    def around(original: Any, group: Any) -> Any:
        was = group._sharded_state
        if method in ALONE and recorder.guarded(changes_alone, group):
            with stepped_aside(TrailMode), resized_at_one_line(recorder):
                result = original(group)
        else:
            result = original(group)
        if group._sharded_state is not was:
            recorder.guarded(lambda _: shards.changed(group, op))
            if recorder.fresh_memory.some:
                for each in group.fsdp_params:
                    recorder.fresh_memory.given(each.all_gather_outputs)
        return result

    return around


def _copying_out(recorder: Recorder) -> Around:
    """What was gathered is copied into the storages of the parameters, which are given their bytes
    for it."""

    def around(original: Any, gathered: Any, params: Any, *args: Any, **kwargs: Any) -> Any:
        if not recorder.guarded(only_copies, params):
            return original(gathered, params, *args, **kwargs)
        recorder.guarded(lambda of: of.cut_graphs.switched(False))  # it runs without gradients
        written = (tensor for each in params for tensor in each.all_gather_outputs)
        operands = chain((gathered.all_gather_output,), written)
        with (
            _mode_aside(recorder, torch.split_with_sizes_copy, operands),
            resized_at_one_line(recorder, filled=True),
        ):
            return original(gathered, params, *args, **kwargs)

    return around


def _allocating(recorder: Recorder) -> Around:
    """What is gathered and reduced gets new memory, which is told of also where the mode is off."""

    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        with kept_on(recorder):
            return original(*args, **kwargs)

    return around


def _gathering(recorder: Recorder, allocate: ref[Any]) -> Around:
    def around(original: Any, params: Any, *args: Any, **kwargs: Any) -> Any:
        if not args or not recorder.guarded(gathers_alone, params, args[-1], allocate):
            return original(params, *args, **kwargs)
        recorder.guarded(lambda of: of.cut_graphs.switched(False))  # it runs without gradients
        with _mode_aside(recorder, original, (each.sharded_param for each in params)):
            return original(params, *args, **kwargs)

    return around


def _reducing(recorder: Recorder, allocate: ref[Any]) -> Around:
    def around(original: Any, group: Any, *args: Any, **kwargs: Any) -> Any:
        if not recorder.guarded(reduces_alone, group, allocate):
            return original(group, *args, **kwargs)
        with _mode_aside(recorder, original, (each.sharded_param for each in group.fsdp_params)):
            return original(group, *args, **kwargs)

    return around


@contextmanager
def _mode_aside(recorder: Recorder, func: Any, operands: Iterable[Any]) -> Iterator[None]:
    """The mode is off. Of an error these are the operands, which are asked for only then."""
    try:
        with stepped_aside(TrailMode):
            yield
    except Exception as error:
        recorder.failures.saw(func, tuple(operands), {}, error)
        raise
