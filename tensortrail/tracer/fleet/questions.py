"""Each question across ranks is one expression, which every engine of Ibis answers alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensortrail.rules.timeline import Did
from tensortrail.tracer.fleet.tables import Tables

if TYPE_CHECKING:
    from ibis import Table

NONE = "none"
PLACED = [each.value for each in (Did.CREATE, Did.MOVE, Did.LOAD, Did.SWAP, Did.COPY)]
MOVED = [Did.MOVE.value, Did.COPY.value]


def placement(tables: Tables) -> Table:
    """Named tensors, by the kinds of device that each was on."""
    import ibis

    events = tables.events
    named = events.filter(
        events["name"].notnull() & events["device"].notnull() & events["did"].isin(PLACED)
    )
    subject = named["name"].concat(" on ", _kind(named["device"]))
    there = named.select("rank", subject=subject).distinct()
    return differing(there.mutate(value=ibis.literal("there")), tables)


def moved(tables: Tables) -> Table:
    """Bytes and moves of each line, from one kind of device to another."""
    events = tables.events
    source, target = _kind(events["from_device"]), _kind(events["device"])
    way = source.concat(" -> ", target, " at ", _place(events))
    moves = events.filter(events["did"].isin(MOVED) & (events["from_device"] != events["device"]))
    sums = moves.group_by("rank", subject=way).agg(
        nbytes=moves["bytes"].sum().cast("int64"), times=moves.count()
    )
    value = sums.nbytes.cast("string").concat(" ", sums.times.cast("string"))
    return differing(sums.select("rank", "subject", value=value), tables)


def found(tables: Tables) -> Table:
    """Findings, by code and line."""
    findings = tables.findings
    subject = findings["code"].concat(" ", findings["name"], " at ", _place(findings))
    counted = findings.group_by("rank", subject=subject).agg(times=findings.count())
    return differing(counted.select("rank", "subject", value=counted.times.cast("string")), tables)


def called(tables: Tables) -> Table:
    """How often each collective was called at each line."""
    collectives = tables.collectives
    counted = collectives.group_by("rank", subject=_call(collectives)).agg(
        times=collectives.count()
    )
    return differing(counted.select("rank", "subject", value=counted.times.cast("string")), tables)


def waited(tables: Tables) -> Table:
    """For each collective the ranks that waited least and most; all others waited for the first."""
    collectives = tables.collectives
    sums = collectives.group_by("rank", subject=_call(collectives)).agg(
        took=collectives["took"].sum().cast("int64")
    )
    spans = sums.group_by("subject").agg(
        ranks=sums.count(), total=sums["took"].sum().cast("int64"),
        least=sums["took"].min(), most=sums["took"].max(),
    )  # fmt: skip
    both = sums.join(spans, "subject")
    told = both.group_by("subject", "ranks", "total", "least", "most").agg(
        least_rank=both["rank"].min(where=both["took"] == both["least"]),
        most_rank=both["rank"].min(where=both["took"] == both["most"]),
    )
    return told.order_by(told["total"].desc(), told["subject"])


def silent(tables: Tables) -> Table:
    """Ranks whose recording has no end or that ended otherwise than well, the first one first."""
    ranks = tables.ranks
    lost = ranks.filter(~ranks["closed"] | ranks["how"].notnull())
    told = lost.select(
        "rank", "last", "closed", "how", "file", "line", "collectives", "op", "inside"
    )
    return told.order_by(told["last"], told["rank"])


def counted(tables: Tables) -> Table:
    ranks = tables.ranks
    return ranks.agg(ranks=ranks.count(), events=ranks.events.sum(), began=ranks.began.min())


QUESTIONS = {
    "placement": placement, "moves": moved, "findings": found, "collectives": called,
    "waits": waited, "silent": silent, "counted": counted,
}  # fmt: skip


def differing(said: Table, tables: Tables) -> Table:
    """What ranks say of a subject where that is not what most say; to say nothing is `none`."""
    import ibis

    subjects = said.select("subject").distinct()
    everyone = tables.ranks.select("rank").distinct().cross_join(subjects)
    whole = everyone.left_join(said, ["rank", "subject"])
    whole = whole.select("rank", "subject", value=ibis.coalesce(whole.value, NONE))
    groups = whole.group_by("subject", "value").agg(ranks=whole.count())
    order = ibis.window(group_by=groups.subject, order_by=[groups.ranks.desc(), groups.value])
    ordered = groups.mutate(turn=ibis.row_number().over(order))
    first = ordered.filter(ordered.turn == 0)
    usual = first.select("subject", usual=first.value, usual_ranks=first.ranks)
    both = whole.join(usual, "subject")
    apart = both.filter(both.value != both.usual)
    told = apart.select("subject", "rank", "value", "usual", "usual_ranks")
    return told.order_by(told.usual_ranks.desc(), told.subject, told["rank"])


def _kind(device: Any) -> Any:
    """Each rank has a device of its own: its kind counts, not its number."""
    return device.split(":")[0]


def _place(table: Any) -> Any:
    import ibis

    line = ibis.coalesce(table["line"].cast("string"), "?")
    return ibis.coalesce(table["file"], "?").concat(":", line)


def _call(collectives: Any) -> Any:
    return collectives["op"].concat(" at ", _place(collectives))
