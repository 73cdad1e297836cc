"""Where models were to lie and where they do, in a recorded run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tensortrail.findings import Setting
from tensortrail.rules.shared.calls import carrier
from tensortrail.rules.shared.sizes import size
from tensortrail.rules.timeline import Did, Event, Storage, Timeline

DISK = "disk"
ELSEWHERE, NOWHERE, SPLIT, UNKNOWN = "elsewhere", "nowhere", "split", "unknown"
"""How what was declared and what is can differ."""
_POSITIONS = {"dispatch_model": 1, "load_checkpoint_and_dispatch": 2}
"""Where these take the device map without its name."""


def placements(timeline: Timeline) -> Iterator[Event]:
    for event in timeline.events(Did.HOOK):
        if isinstance(event.facts.get("rows"), (list, tuple)):
            yield event


def differences(event: Event) -> Iterator[Mapping[str, Any]]:
    told = event.facts.get("differences")
    yield from (each for each in told or () if isinstance(each, Mapping))


def weight(timeline: Timeline, event: Event, difference: Mapping[str, Any]) -> Storage | None:
    """The weight that lies elsewhere."""
    number = difference.get("storage")
    return timeline.storage(event.process, number) if isinstance(number, int) and number else None


def sentence(difference: Mapping[str, Any]) -> str:
    module, declared = f"`{difference.get('module')}`", difference.get("declared")
    lies, why = difference.get("lies"), difference.get("why")
    match difference.get("kind"):
        case "elsewhere":
            because = f": it is {why}" if why else ""
            if difference.get("instead"):
                because = ": the entry is for a weight, and only modules get hooks"
            return f"{module} should be on {declared}, but is on {lies}{because}"
        case "nowhere":
            return f"{module} should be on {declared}, but is on meta, and no hook has its values"
        case "split":
            return f"{module}, a {why} that must not be split, is on {lies}"
        case _:
            return f"{module} is in the device map ({declared}), but the model has no such part"


def kept_on(timeline: Timeline, use: Event, module: str, device: str) -> Iterator[Setting]:
    """The device map that leaves this module where it is used, if it has an entry of its own."""
    for event in reversed([each for each in placements(timeline) if each.time <= use.time]):
        row = next((each for each in rows(event) if each.get("module") == module), None)
        if row is not None and event.process == use.process and not event.facts.get("more_rows"):
            nbytes = row.get("nbytes")
            takes = f", which takes {size(nbytes)} there" if isinstance(nbytes, int) else ""
            yield with_map(timeline, event, {module: device}, f"keeps it on {device}{takes}")
            return


def on_one(timeline: Timeline, use: Event, model: str, device: str) -> Iterator[Setting]:
    """The device map that puts the whole model where it was moved by hand."""
    for event in reversed([each for each in placements(timeline) if each.time <= use.time]):
        if event.facts.get("model") == model and event.process == use.process:
            sizes = [each.get("nbytes") for each in rows(event)]
            whole = sum(each for each in sizes if isinstance(each, int))
            why = (
                f"puts the whole model, which takes {size(whole)}, on {device} in the first place, "
                "its inputs too; or leave the move out"
            )
            yield _given(timeline, event, {"": device}, why)
            return


def rows(event: Event) -> Iterator[Mapping[str, Any]]:
    """What each entry of the device map has come to."""
    yield from (each for each in event.facts["rows"] if isinstance(each, Mapping))


def corrected(
    timeline: Timeline, event: Event, differing: Sequence[Mapping[str, Any]]
) -> list[Setting]:
    """The device map with which nothing differs in this way."""
    if event.facts.get("more_rows"):
        return []
    declared = _declared(event)
    wanted = dict(declared)
    whys = [_mend(wanted, each) for each in differing]
    if wanted == declared:
        return []
    return [_given(timeline, event, wanted, "; ".join(dict.fromkeys(filter(None, whys))))]


def with_map(timeline: Timeline, event: Event, changes: Mapping[str, str], why: str) -> Setting:
    """The device map with these entries changed, which may be parts of one that it has."""
    return _given(timeline, event, {**_declared(event, changes), **changes}, why)


def split(row: Mapping[str, Any]) -> list[tuple[str, Any, int]]:
    """Module, device and bytes of the entry, or of the blocks and other parts that it is for."""
    parts, declared, nbytes = row.get("parts"), row.get("declared"), row.get("nbytes")
    if isinstance(parts, Mapping) and parts:
        return [(str(name), declared, size) for name, size in parts.items()]
    return [(str(row.get("module")), declared, nbytes if isinstance(nbytes, int) else 0)]


def _declared(event: Event, changes: Mapping[str, str] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for row in rows(event):
        parts = [name for name, _, _ in split(row)]
        inside = any(each in (changes or {}) for each in parts)
        names = parts if inside else [str(row.get("module"))]
        found.update((each, row.get("declared")) for each in names)
    return found


def _given(timeline: Timeline, event: Event, wanted: Mapping[str, Any], why: str) -> Setting:
    library, _, call = event.op.rpartition(".")
    return Setting(
        library=library,
        name="device_map",
        value=repr(wanted),
        why=why,
        where=call,
        call=call,
        at=carrier(timeline, event.site, call),
        position=_POSITIONS.get(call, -1),
    )


def _mend(wanted: dict[str, Any], difference: Mapping[str, Any]) -> str:
    module, lies = str(difference.get("module")), str(difference.get("lies"))
    match difference.get("kind"):
        case "elsewhere" if difference.get("why"):
            wanted[_entry(wanted, module)] = lies
            return (
                f"keeps {module} on one device with the weight that it shares: it is "
                f"{difference['why']}"
            )
        case "elsewhere" if beside := difference.get("instead"):
            wanted.pop(module, None)
            wanted.update(beside)
            return "names modules: only they get hooks"
        case "nowhere":
            if beside := difference.get("instead"):
                wanted.pop(_entry(wanted, module), None)
                wanted.update(beside)
            entry = module.rpartition(".")[0] or module
            wanted[entry] = next((p for p in wanted.values() if p != "disk"), "cpu")
            return f"keeps {entry} in memory: nothing on disk has its values"
        case "split":
            parts = [each for each in wanted if each.startswith(f"{module}.")]
            places = [wanted.pop(each) for each in parts]
            wanted[module] = max(places, key=places.count)
            return f"keeps {module} in one piece"
        case "unknown":
            wanted.pop(module, None)
            return f"leaves out {module}, which the model does not have"
    return ""


def _entry(device_map: Mapping[str, Any], name: str) -> str:
    fitting = [key for key in device_map if not key or name == key or name.startswith(f"{key}.")]
    return max(fitting, key=len, default=name)
