"""A record says which rank is in which collective, so that one that waits can be named."""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch._C import DisableTorchFunction

from tensortrail.rules.timeline import Did
from tensortrail.tracer.events.recorder import Recorder
from tensortrail.tracer.identity.sites import frames
from tensortrail.tracer.noticing.operands import tensors_in
from tensortrail.tracer.patching.patches import Around, Patches
from tensortrail.tracer.trail.last_state import GIVEN, Standing

LIBRARY = "torch.distributed.distributed_c10d"
NAMES = (
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce",
    "all_to_all", "all_to_all_single", "all_gather_coalesced", "all_reduce_coalesced", "barrier",
    "batch_isend_irecv", "broadcast", "broadcast_object_list", "destroy_process_group", "gather",
    "gather_object", "irecv", "isend", "monitored_barrier", "new_group",
    "recv", "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_single",
    "reduce_scatter_tensor", "scatter", "scatter_object_list", "send", "send_object_list",
    "_broadcast_coalesced",
)  # fmt: skip


LEAVES = "destroy_process_group"
MOST_SIZES = 4


class Depth(threading.local):
    """Collectives call each other: the outermost is the one that people know."""

    inside = False


def install(recorder: Recorder, patches: Patches) -> None:
    depth, standing = Depth(), Standing(recorder.writer.path)
    around = _around(recorder, depth, standing)
    watched: list[str] = []

    def joining(original: Any, *args: Any, **kwargs: Any) -> Any:
        if not watched:
            watched.extend(NAMES)
            recorder.guarded(lambda _: _watch(patches, around))
        result = around(original, *args, **kwargs)
        recorder.guarded(_joined)
        return result

    for owner in (sys.modules[LIBRARY], torch.distributed):
        patches.wrap(owner, "init_process_group", joining)
    recorder.at_close.append(standing.close)
    recorder.at_fork.append(lambda: standing.forget(recorder.writer.path))
    if torch.distributed.is_initialized():
        watched.extend(NAMES)
        _watch(patches, around)


def _watch(patches: Patches, around: Around) -> None:
    """Wherever the functions are known by now, but where torch tells the compiler of them."""
    importlib.import_module("torch.distributed._functional_collectives")
    found = (getattr(torch.distributed, name, None) for name in NAMES)
    wanted = {id(each): name for name, each in zip(NAMES, found, strict=True) if each is not None}
    for name, module in list(sys.modules.items()):
        if not name.startswith("torch.") or name in ("torch.distributed", LIBRARY):
            namespace = getattr(module, "__dict__", None)
            for key, value in list(namespace.items()) if isinstance(namespace, dict) else ():
                if id(value) in wanted:
                    patches.wrap(module, key, around)


def _around(recorder: Recorder, depth: Depth, standing: Standing) -> Around:
    def around(original: Any, *args: Any, **kwargs: Any) -> Any:
        if depth.inside:
            return original(*args, **kwargs)
        depth.inside = True
        given = [tensor for _, tensor in tensors_in(args, kwargs)]
        recorder.fresh_memory.given(given)
        sizes = recorder.guarded(_sizes, given) or []
        said = recorder.guarded(_began, standing, GIVEN.join([original.__name__, *sizes[:1]]))
        began = time.perf_counter_ns()
        failed = True
        try:
            result = original(*args, **kwargs)
            failed = False
            return result
        finally:
            depth.inside = False
            if said is not None:
                standing.ended(said)
                took = time.perf_counter_ns() - began
                recorder.guarded(_ended, original.__name__, said[0], took, failed, sizes)

    return around


def _joined(recorder: Recorder) -> None:
    """Processes that the program starts by itself learn their rank only now."""
    if torch.distributed.get_world_size() > 1:
        recorder.joined(torch.distributed.get_rank())


def _began(recorder: Recorder, standing: Standing, op: str) -> Any:
    user, by = frames(sys._getframe(1))
    frame = user or by
    recorder.writer.flush_before_waiting()
    place = (frame.f_code.co_filename, frame.f_lineno) if frame is not None else ("", 0)
    return standing.began(op, *place)


def _ended(
    recorder: Recorder, op: str, number: int, nanos: int, failed: bool, sizes: list[str]
) -> None:
    """Who waits long waited for others; who comes last does not wait."""
    facts: dict[str, Any] = {"number": number, "took": nanos // 1000}
    if sizes:
        facts["sizes"] = sizes
    if failed:
        facts["failed"] = True
    if op == LEAVES:
        facts["steps"] = recorder.optimizer_steps
    recorder.note(Did.COLLECTIVE, op=op, facts=facts)


def _sizes(_: Recorder, given: Sequence[Any]) -> list[str]:
    """Of what this rank gives and takes: the same on all ranks, or they do not fit together."""
    with DisableTorchFunction():
        return [_size(each.dtype, each.shape) for each in given[:MOST_SIZES]]


@functools.lru_cache(maxsize=4096)
def _size(dtype: torch.dtype, shape: torch.Size) -> str:
    """Programs send the same sizes again and again."""
    return f"{str(dtype)[6:]} {'x'.join(map(str, shape)) or 'number'}"
