"""FSDP2 shards, gathers and frees parameters; this notes which, and whose memory it uses."""

from __future__ import annotations

from typing import Any

from torch.compiler import is_compiling
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.hooks.distributed.fsdp_shards import Shards
from tensortrail.tracer.hooks.shared.looking import looking_before
from tensortrail.tracer.patching.patches import Around, Patches

LIBRARY = "torch.distributed.fsdp._fully_shard._fully_shard"
CHANGES = {"_to_unsharded": "unshard", "_to_sharded": "reshard",
           "_to_sharded_post_forward": "reshard"}  # fmt: skip


def install(recorder: Recorder, patches: Patches) -> None:
    from torch.distributed.fsdp._fully_shard import _fully_shard
    from torch.distributed.fsdp._fully_shard._fsdp_param import FSDPParam
    from torch.distributed.fsdp._fully_shard._fsdp_param_group import FSDPParamGroup

    shards = Shards(recorder)
    patches.wrap(
        _fully_shard,
        "fully_shard",
        looking_before(recorder, lambda _, module, *__, **___: shards.name(module)),
        everywhere=True,
    )
    patches.wrap(FSDPParam, "_init_sharded_param", _sharding(recorder, shards))
    patches.wrap(FSDPParam, "reset_sharded_param", _resetting(recorder, shards))
    patches.wrap(
        FSDPParamGroup,
        "unshard",
        looking_before(recorder, lambda _, group, *__, **___: shards.before_gathering(group)),
    )
    for method, op in CHANGES.items():
        patches.wrap(FSDPParamGroup, method, _changing(recorder, shards, op))

    def stepping(optimizer: Any, args: Any, kwargs: Any) -> None:
        if recorder.active and not is_compiling():
            recorder.guarded(lambda _: shards.before_step(optimizer))

    recorder.at_close.append(register_optimizer_step_pre_hook(stepping).remove)


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


def _changing(recorder: Recorder, shards: Shards, op: str) -> Around:
    def around(original: Any, group: Any) -> Any:
        was = group._sharded_state
        result = original(group)
        if group._sharded_state is not was:
            recorder.guarded(lambda _: shards.changed(group, op))
            for each in group.fsdp_params:
                recorder.fresh_memory.given(each.all_gather_outputs)
        return result

    return around
