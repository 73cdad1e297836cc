"""Settings that put a tensor where it is needed, at the call that put it elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Setting
from tensortrail.rules.shared.calls import carrier, gives, quoted
from tensortrail.rules.shared.history import put_there
from tensortrail.rules.shared.lines import line_of
from tensortrail.rules.shared.operands import Operand, called
from tensortrail.rules.timeline import Did, Event, Timeline

MAKERS = frozenset({
    "torch.tensor", "torch.as_tensor", "torch.ones", "torch.zeros", "torch.full", "torch.empty",
    "torch.arange", "torch.linspace", "torch.logspace", "torch.eye", "torch.rand", "torch.randn",
    "torch.randint", "torch.randperm", "torch.tril_indices", "torch.triu_indices",
    "torch.ones_like", "torch.zeros_like", "torch.full_like", "torch.empty_like",
    "torch.rand_like", "torch.randn_like", "torch.randint_like",
})  # fmt: skip
"""Functions that take the device of what they make, by its name."""
MAP_LOCATION = 1


def where_needed(
    timeline: Timeline, event: Event, odd: Operand, others: list[str]
) -> Iterator[Setting]:
    """`others` are the devices of the other operands: there must be one only."""
    if odd.device != "cpu" or odd.storage is None or len(others) != 1:
        return
    made, device = put_there(timeline, odd.storage, event), others[0]
    if made is None or device in ("cpu", "meta"):
        return
    if _is_of_module(made):
        yield _moved(timeline, event, odd, device)
    elif made.did is Did.CREATE and made.op in MAKERS:
        yield from _given(timeline, made, "device", device, -1)
    elif made.did is Did.LOAD and made.op == "torch.load":
        yield from _given(timeline, made, "map_location", device, MAP_LOCATION)


def _is_of_module(made: Event) -> bool:
    """Made while a module was: it goes where the module is moved."""
    sites = (each for each in (made.site, made.by) if each)
    return any(each.function.rpartition(".")[2] == "__init__" for each in sites)


def _given(
    timeline: Timeline, made: Event, name: str, device: str, position: int
) -> Iterator[Setting]:
    function = made.op.rpartition(".")[2]
    at = carrier(timeline, made.site, function)
    # A device that is asked for is a decision.
    if made.by is None and at is not None and not gives(at, name):
        why = f"this is used with tensors on {device}"
        where = f"torch.{function}"
        told = Setting("torch", name, quoted(device), why, where, function, at, position)
        yield told


def _moved(timeline: Timeline, event: Event, odd: Operand, device: str) -> Setting:
    at = line_of(event)
    place = f" at line {at.line}" if at else ""
    return Setting(
        library="torch",
        name="device",
        value=quoted(device),
        why=f"{called(timeline, odd)} is used with tensors on {device}{place}",
        where="the module, before it is used",
        call="to",
    )
