"""The ranks of a run are compared: what they share, and where one of them went another way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from tensortrail.tracer.reading.ranks.deeds import Deeds, Difference, deeds
from tensortrail.tracer.reading.ranks.names import named
from tensortrail.tracer.reading.timeline import RunTimeline


def ranks_of(timeline: RunTimeline) -> list[RunTimeline]:
    """The ranks, without the process that only started them."""
    return [each for each in timeline.by_rank() if each.rank is not None]


def differences(timeline: RunTimeline) -> list[Difference]:
    """What only some ranks did at a line, the first first."""
    found = Deeds()
    for rank in ranks_of(timeline):
        found.add(rank.label, deeds(rank))
    return found.differences()


def shared_devices(timeline: RunTimeline) -> Iterator[str]:
    """A GPU on which several ranks of one machine have tensors: mostly, one of them was meant."""
    yield from shared((rank.label, gpus(rank)) for rank in ranks_of(timeline))


def gpus(rank: RunTimeline) -> list[tuple[str, str]]:
    """Those that its first process has tensors on, each with what tells machines apart."""
    process = rank.processes[0]
    header, text = process.part.header, process.part.text
    if not isinstance(header.get("local_rank"), int):
        return []
    machine = f"{header.get('host')}|{header.get('visible')}"
    devices = {text(row[2]) for row in process.part.storages.values()}
    return [(device, machine) for device in sorted(devices) if device.startswith("cuda")]


def shared(users: Iterable[tuple[str, Iterable[tuple[str, str]]]]) -> Iterator[str]:
    """The same of ranks that were read one by one."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for rank, of_rank in users:
        for used in of_rank:
            found[used].append(rank)
    for (device, _), those in sorted(found.items()):
        if len(those) > 1:
            told = " and ".join(those) if len(those) == 2 else named(those)
            yield f"{told} have tensors on the same {device}"
