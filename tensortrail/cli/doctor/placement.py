"""`tensortrail doctor placement MODEL --gpu 24GiB`: where each module would go, and why."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tensortrail.cli.console import fail
from tensortrail.cli.doctor.report import write_report
from tensortrail.cli.exit_codes import CLEAN, FAILED, FOUND
from tensortrail.rules.shared.sizes import size

if TYPE_CHECKING:
    from tensortrail.doctor.placement.limits import Limits
    from tensortrail.doctor.placement.plan import Device, Plan, Reason

WHOLE = "the whole model"
Declared = dict[str, tuple[str, str]]
"""Of each module in a recorded run: the device that was declared, and where it lies."""


def run(options: Namespace) -> int:
    from tensortrail.doctor.library_models import NoModel, quietly
    from tensortrail.doctor.placement.limits import BadLimit, limits_of, size_of
    from tensortrail.doctor.placement.plan import planned
    from tensortrail.doctor.placement.unloaded import unloaded

    try:
        limits = limits_of(options.gpu, options.cpu, options.disk)
        speeds = {"cpu": size_of(options.bandwidth), "disk": size_of(options.disk_bandwidth)}
        if not limits.gpus:
            raise BadLimit("name at least one GPU: --gpu 24GiB")
        with quietly():
            plan = planned(unloaded(options.model, options.dtype), limits, options.device_map)
        in_run = _of_run(options.run)
    except (BadLimit, NoModel) as error:
        fail(str(error))
        return FAILED
    if in_run is None:
        return FAILED
    homeless = plan.used.get("disk", 0) if not limits.disk else 0
    if options.format == "json":
        text = _json(plan, speeds, in_run)
    else:
        text = "\n".join(_text(plan, limits, speeds, in_run, options.device_map)) + "\n"
    write_report(options, text)
    return FOUND if homeless else CLEAN


def _of_run(run: str) -> Declared | None:
    """{} without a run; None after saying why one cannot be read."""
    if not run:
        return {}
    from tensortrail.cli.recorded_run import opened_run
    from tensortrail.rules.shared.device_maps import placements

    timeline = opened_run(run)
    if timeline is None:
        return None
    found: Declared = {}
    for event in placements(timeline):
        for row in event.facts["rows"]:
            lies = ", ".join(each or "nowhere" for each in row.get("lies", ()))
            found[str(row.get("module"))] = (str(row.get("declared")), lies)
    if not found:
        fail(f"no model was placed by a device map in {run}")
        return None
    return found


def _text(
    plan: Plan, limits: Limits, speeds: dict[str, int], in_run: Declared, strategy: str
) -> Iterator[str]:
    yield f"{plan.model}: {size(plan.total)} ({plan.sizes_from}), device_map={strategy!r}"
    for device, used in plan.used.items():
        names = [name for name, at in plan.device_map.items() if at == device]
        allowed = f" of {size(plan.limits[device])}" if device in plan.limits else ""
        modules = ", ".join(grouped(names)) or WHOLE
        yield f"  {_called(device)}: {size(used)}{allowed}: {modules}"
    for reason in plan.reasons:
        yield f"why: {_why(reason)}"
    yield from _missing(plan, limits)
    for each in plan.unsplit:
        yield f"together: {each.name} is never split ({each.modules}, {size(each.largest)} each)"
    for tied in plan.tied:
        yield f"together: {' and '.join(tied)} are one tensor"
    for device, moved in plan.moved.items():
        seconds = moved / speeds[str(device)]
        yield (
            f"a step moves {size(moved)} from the {device}: with {size(speeds[str(device)])} a "
            f"second it takes {_time(seconds)} or more"
        )
    if plan.crowded:
        yield (
            f"buffers: {size(plan.crowded)} of the offloaded modules' buffers stay on a GPU, and "
            f"none has room for them: offload_buffers=True"
        )
    yield from _compared(plan, in_run)


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _why(reason: Reason) -> str:
    return (
        f"{reason.module} needs {size(reason.needs)}, and {_left(reason)}: "
        f"{reason.missing:,} bytes are missing"
    )


def _left(reason: Reason) -> str:
    device, kept = (
        _called(reason.device),
        f"{size(reason.reserved)} kept free for the largest layer",
    )
    if reason.free < 0:
        return f"{device} has {size(reason.free + reason.reserved)} left, less than the {kept}"
    return f"{device} has {size(reason.free)} left" + (f", {kept}" if reason.reserved else "")


def _missing(plan: Plan, limits: Limits) -> Iterator[str]:
    if not {"cpu", "disk"} & set(map(str, plan.used)):
        yield "nothing is offloaded"
        return
    which = "the GPU" if len(limits.gpus) == 1 else "every GPU"
    if plan.shortage is not None:
        yield f"missing: {which} needs {size(plan.shortage)} more to hold the whole model"
    if plan.used.get("disk") and not limits.disk:
        yield f"no place for {size(plan.used['disk'])}: raise --cpu, or allow --disk"


def _compared(plan: Plan, in_run: Declared) -> Iterator[str]:
    from tensortrail.doctor.placement.plan import device_of

    for module, (declared, lies) in in_run.items():
        at = device_of(module, plan.device_map)
        here = _called(at) if at is not None else "several devices"
        name = module or WHOLE
        yield f"in the run: {name} was declared on {declared} and is on {lies}; here on {here}"


def grouped(names: list[str]) -> Iterator[str]:
    """Names in order, with runs of numbered ones as `model.layers.0-11`."""
    first, last = "", -1
    for name in [*names, ""]:
        stem, _, end = name.rpartition(".")
        number = int(end) if end.isdigit() else -1
        if first and number == last + 1 and number > 0 and stem == first.rpartition(".")[0]:
            last = number
            continue
        if first:
            begin = first.rpartition(".")[2]
            yield first if begin == str(last) or last < 0 else f"{first}-{last}"
        first, last = name, number


def _called(device: Device) -> str:
    return f"gpu {device}" if isinstance(device, int) else device


def _json(plan: Plan, speeds: dict[str, int], in_run: Declared) -> str:
    from tensortrail.reporters.jsontext import to_json

    told: dict[str, Any] = {
        "model": plan.model,
        "sizes_from": plan.sizes_from,
        "bytes": plan.total,
        "device_map": dict(plan.device_map),
        "used": {str(device): used for device, used in plan.used.items()},
        "limits": {str(device): limit for device, limit in plan.limits.items()},
        "reasons": [each._asdict() | {"missing": each.missing} for each in plan.reasons],
        "more_on_every_gpu": plan.shortage,
        "never_split": [each._asdict() for each in plan.unsplit],
        "tied": [list(each) for each in plan.tied],
        "moved_in_a_step": {str(device): moved for device, moved in plan.moved.items()},
        "buffers_without_room": plan.crowded,
        "bytes_a_second": speeds,
        "run": {name: {"declared": a, "lies": b} for name, (a, b) in in_run.items()},
    }
    return to_json(told) + "\n"
