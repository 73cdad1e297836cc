"""`tensortrail weights`: snapshots of weights, compared as files. No torch is needed."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tensortrail.cli.console import fail, write_text
from tensortrail.cli.exit_codes import CLEAN, FAILED, FOUND

if TYPE_CHECKING:
    from tensortrail.tracer.audit.comparison import Comparison
    from tensortrail.tracer.audit.snapshot import Snapshot


def run(options: Namespace) -> int:
    snapshots = _read(options.files)
    if snapshots is None:
        return FAILED
    if options.weights == "ranks":
        return _ranks(snapshots, options.format == "json")
    first, *between, last = snapshots
    found = first.compare(last, between)
    text = json.dumps(_as_dict(found), indent=2) if options.format == "json" else str(found)
    write_text(text, sys.stdout)
    return CLEAN if found.same else FOUND


def _read(files: Sequence[str]) -> list[Snapshot] | None:
    from tensortrail.tracer.audit.snapshot import NotASnapshot, Snapshot

    if len(files) < 2:
        fail("two snapshots are needed, or more")
        return None
    try:
        return [Snapshot.read(each) for each in files]
    except NotASnapshot as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}")
    return None


def _as_dict(found: Comparison) -> dict[str, object]:
    before, after = found.names
    changes = [
        {
            "name": each.name,
            "became": each.became.value,
            "writer": each.writer,
            "said": list(each.said),
        }
        for each in found.changes
    ]
    told = {"before": before, "after": after, "same": found.same}
    return {**told, "matched": dict(found.matched), "changes": changes}


def _ranks(snapshots: Sequence[Snapshot], as_json: bool) -> int:
    from tensortrail.inert import inert_path
    from tensortrail.tracer.audit.ranks import replicas

    ranks = [place if each.rank is None else each.rank for place, each in enumerate(snapshots)]
    odd = {name: [ranks[place] for place in places] for name, places in replicas(snapshots)}
    if as_json:
        write_text(json.dumps({"same": not odd, "different": odd}, indent=2), sys.stdout)
        return FOUND if odd else CLEAN
    names = [f"  {name}: rank {', '.join(map(str, which))}" for name, which in odd.items()]
    verdict = "these are not the same on all" if odd else "what all of them have whole is the same"
    lines = [f"weights of {len(snapshots)} ranks: {verdict}", *names]
    write_text("\n".join(map(inert_path, lines)), sys.stdout)
    return FOUND if odd else CLEAN
