from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from tensortrail.findings import Edit, Finding, Fix, Safety, Severity
from tensortrail.rules import Did, Event, Rule, Timeline
from tensortrail.rules.shared.lines import by_line

REFUSES = "safetensors.save_file"
_STATE_DICT = ".state_dict()"


class SharedMemorySaved(Rule):
    """A writer that refuses shared memory was given one tensor under several names.

    ## What it does
    Reports calls of `safetensors.torch.save_file` whose dict has the same memory under more than
    one key, as tied weights have, and names the keys. Found in recorded runs only.

    ## Why is this bad?
    safetensors stores each tensor once and raises an error. Cloning one of the two makes the call
    succeed, and the tie is gone in the file.

    ## What you may see
    ```
    RuntimeError: Some tensors share memory, this will lead to duplicate memory on disk
    ```

    ## Example
    ```python
    save_file(model.state_dict(), path)
    ```
    Use instead:
    ```python
    save_model(model, path)
    ```

    ## Fix safety
    Unsafe: `save_model` leaves one of the names out, and `load_model` has to be used to read it.

    ## References
    - huggingface/safetensors documentation, "Torch shared tensors"
    """

    code = "SHD416"
    name = "shared-memory-saved"
    since = "0.2.0"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        saves = (each for each in timeline.events(Did.SAVE) if each.op == REFUSES)
        for events in by_line(saves):
            shared = _shared(events)
            if not shared:
                continue
            names = [" and ".join(f"`{key}`" for key in keys) for keys in shared[:3]]
            more = f", and {len(shared) - 3} more" if len(shared) > 3 else ""
            yield self.finding_in_run(
                timeline,
                events[0],
                f"`{REFUSES}` is given the same memory under several names, which it refuses: "
                f"{', '.join(names)}{more}",
                fixes=[_save_model(timeline, events[0], shared[0])],
                evidence={"shared": str(len(shared))},
            )


def _shared(events: list[Event]) -> list[list[str]]:
    """The keys of each storage that is wholly covered by more than one of them."""
    keys: dict[tuple[str, int], list[str]] = defaultdict(list)
    for event in events:
        storage = event.storage
        if storage is not None and event.facts.get("logical") == storage.nbytes:
            keys[storage.key].append(str(event.facts.get("key")))
    return [sorted(set(each)) for each in keys.values() if len(set(each)) > 1]


def _save_model(timeline: Timeline, event: Event, keys: list[str]) -> Fix:
    text = f"save with `safetensors.torch.save_model`, or leave `{keys[-1]}` out of the dict"
    call = timeline.call(event.site, "save_file") if event.site else None
    given = timeline.argument(event.site, "save_file") if event.site else None
    if call is None or given is None or not given.source.endswith(_STATE_DICT):
        return Fix(text, Safety.DISPLAY, ())
    model = given.source.removesuffix(_STATE_DICT)
    new = call.source.replace(given.source, model, 1).replace("save_file", "save_model", 1)
    edits = [Edit(call, new)]
    if call.source.startswith("save_file"):
        line = "from safetensors.torch import save_model\n"
        edits.append(timeline.insert(call.file, _first_import(timeline, call.file), line))
    return timeline.fix(text, Safety.UNSAFE, *edits) or Fix(text, Safety.DISPLAY, ())


def _first_import(timeline: Timeline, file: str) -> int:
    tree = timeline.tree(file)
    for node in tree.body if tree else ():
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            return node.lineno
    return 1
