from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tensortrail.findings import Confidence, Edit, Finding, Fix, Safety, Setting, Severity
from tensortrail.rules import Did, Event, Rule, Timeline
from tensortrail.rules.shared.lines import where
from tensortrail.rules.shared.mends import edited
from tensortrail.rules.shared.sentences import first_of

_SHOWN = 2
_PARTIAL = Setting(
    library="torch",
    name="allow_partial_load",
    value="True",
    why="loads the keys that exist; what is missing keeps its values",
    where="DefaultLoadPlanner(...)",
)


class KeyNotInCheckpoint(Rule):
    """A distributed checkpoint does not have the keys that are loaded.

    ## What it does
    In a recorded run, reports a `torch.distributed.checkpoint.load` that failed, and how the keys
    of the state dict differ from those of the checkpoint: another name before all of them, as in
    `dcp.load({"net": ...})` of what was saved as `{"model": ...}`, or some missing weights.

    ## Why is this bad?
    The program ends on each rank. The exception names the first key and nothing of what the
    checkpoint has. It suggests a partial load, which loads nothing at all if every key begins with
    another name.

    ## Example
    ```python
    dcp.save({"model": model.state_dict()}, checkpoint_id=folder)
    dcp.load({"net": model.state_dict()}, checkpoint_id=folder)
    ```
    Use instead:
    ```python
    dcp.load({"model": model.state_dict()}, checkpoint_id=folder)
    ```

    ## Fix safety
    Unsafe: the checkpoint may be the wrong one. The name in the call is replaced if it occurs there
    once.

    ## References
    - pytorch/pytorch#148252
    """

    code = "SHD435"
    name = "key-not-in-checkpoint"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in timeline.events(Did.HOOK):
            if event.op == "dcp.load" and event.facts.get("lacks"):
                yield self._refused(timeline, event)

    def _refused(self, timeline: Timeline, event: Event) -> Finding:
        lacks, unused = (_texts(event, name) for name in ("lacks", "unused"))
        asked, there = _other_name(lacks, unused)
        path, count = event.facts.get("path"), int(event.facts["count"])
        told = f"{path} lacks {first_of([f'`{key}`' for key in lacks], _SHOWN, count)}"
        fixes: list[Fix] = []
        settings: list[Setting] = []
        if asked != there:
            saved = where(_saved(timeline, str(path), there))
            told += f": keys begin with {_shown(asked)} here, and with {_shown(there)} there"
            told += f", as saved{saved}" if saved else ""
            fixes.append(_under_the_other(timeline, event, asked, there))
        elif count < int(event.facts["asked"]) / 2:
            settings.append(_PARTIAL)
        return self.finding_in_run(
            timeline,
            event,
            told,
            confidence=Confidence.HIGH,
            fixes=fixes,
            settings=settings,
            evidence={"lacking": str(count), "asked": str(event.facts["asked"])},
        )


def _texts(event: Event, name: str) -> list[str]:
    given = event.facts.get(name)
    return [str(each) for each in given] if isinstance(given, (list, tuple)) else []


def _other_name(lacks: Sequence[str], unused: Sequence[str]) -> tuple[str, str]:
    """What stands before the keys here and there, if they are the same but for that."""
    ends = {end: start for key in unused for start, end in _splits(key)}
    pairs: Counter[tuple[str, str]] = Counter()
    for key in lacks:
        pair = next(((start, ends[end]) for start, end in _splits(key) if end in ends), None)
        if pair is not None:
            pairs[pair] += 1
    (pair, count), *_ = pairs.most_common(1) or [(("", ""), 0)]
    return pair if 2 * count > len(lacks) else ("", "")


def _splits(key: str) -> Iterator[tuple[str, str]]:
    """`a.b.c` is nothing and `a.b.c`, `a.` and `b.c`, `a.b.` and `c`."""
    yield "", key
    for at, letter in enumerate(key):
        if letter == ".":
            yield key[: at + 1], key[at + 1 :]


def _shown(start: str) -> str:
    return f"`{start}`" if start else "no such name"


def _saved(timeline: Timeline, path: str, start: str) -> Event | None:
    """What wrote these keys there, if this run has."""
    for event in reversed(timeline.events(Did.SAVE)):
        same = str(event.facts.get("path")) == path
        if same and str(event.facts.get("key", "")).startswith(start):
            return event
    return None


def _under_the_other(timeline: Timeline, event: Event, asked: str, there: str) -> Fix:
    what = f"ask for them under the name they were saved by: {_shown(there)}"
    call = timeline.call(event.site, "load") if event.site else None
    old, new = (f'"{each.rstrip(".")}"' for each in (asked, there))
    if call is None or not asked or not there or call.source.count(old) != 1:
        return Fix(what, Safety.DISPLAY, ())
    return edited(timeline, what, Edit(call, call.source.replace(old, new)))
