from __future__ import annotations

import os
import re
from collections.abc import Iterator

from tensortrail.findings import Edit, Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Did, Event, Rule, Timeline
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.shared.lines import where
from tensortrail.rules.shared.mends import edited
from tensortrail.rules.shared.saved_files import last_save
from tensortrail.rules.shared.sentences import first_of
from tensortrail.rules.shared.sizes import dimensions

LOAD = "Module.load_state_dict"
_DIFFERS = re.compile(
    r"size mismatch for (?P<name>[\w.]+): copying a param with shape torch\.Size\(\["
    r"(?P<there>[\d, ]*)\]\) from checkpoint, "
    r"the shape in current model is torch\.Size\(\[(?P<here>[\d, ]*)\]\)"
)
COMPARED = (
    "compare the shapes before the copy, `if value.shape != weight.shape: raise ValueError(name)`, "
    "or load with `load_state_dict`, which does"
)
LEFT_OUT = (
    "{{key: value for key, value in {given}.items()"
    " if key not in {model}.state_dict() or {model}.state_dict()[key].shape == value.shape}}"
)


class ShapeDiffersAtLoad(Rule):
    """A state dict has weights of other shapes than the model.

    ## What it does
    In a recorded run, reports a `load_state_dict` that failed because of shapes: which weights
    differ and how, their file, and the line that saved it, if the run saw it.

    In a recorded run, as a warning, reports a tensor of a file that `copy_` spreads over a larger
    weight.

    ## Why is this bad?
    The program ends, even with `strict=False`, which ignores names, not shapes.

    ## What you may see
    ```
    size mismatch for fc.weight: copying a param with shape torch.Size([1000, 16]) from checkpoint
    ```

    ## Example
    ```python
    model = Net(classes=10)
    model.load_state_dict(torch.load("of_1000_classes.pt"), strict=False)
    ```
    Use instead:
    ```python
    model = Net(classes=10)
    state = torch.load("of_1000_classes.pt")
    del state["fc.weight"], state["fc.bias"]
    model.load_state_dict(state, strict=False)
    ```

    ## Fix safety
    Unsafe: the weights of other shapes keep their initial values and have to be trained.

    ## References
    - pytorch/pytorch issue 40859
    """

    code = "SHD445"
    name = "shape-differs-at-load"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in timeline.events(Did.ERROR):
            found = list(_DIFFERS.finditer(str(event.facts.get("message", ""))))
            if event.op == LOAD and found:
                yield self._found(timeline, event, found)
        for event in hooks_telling(timeline, "spread over"):
            yield self._spread(timeline, event)

    def _spread(self, timeline: Timeline, event: Event) -> Finding:
        there, here = event.facts["spread over"]
        file = os.path.basename(str(event.facts.get("file", ""))) or "the file"
        name = timeline.name(event.storage) if event.storage else "a weight"
        return self.finding_in_run(
            timeline,
            event,
            f"`{event.op}` fills `{name}`, {dimensions(here)}, with {dimensions(there)} of {file}: "
            "it spreads what is smaller, and raises nothing",
            severity=Severity.WARNING,
            fixes=[Fix(COMPARED, Safety.DISPLAY, ())],
        )

    def _found(self, timeline: Timeline, event: Event, found: list[re.Match[str]]) -> Finding:
        said = [
            f"`{each['name']}` {_shape(each['there'])} for {_shape(each['here'])}" for each in found
        ]
        file = os.path.basename(str(event.facts.get("file", "")))
        saved = last_save(timeline, str(event.facts.get("file", "")), found[0]["name"])
        by = f", saved{where(saved)}" if saved is not None else ""
        return self.finding_in_run(
            timeline,
            event,
            f"{file or 'the state dict'}{by}{',' * bool(by)} has other shapes than the model: "
            f"{first_of(said, 3, len(said))}",
            fixes=[_resized(event, found) or _left_out(timeline, event.site)],
        )


def _resized(event: Event, found: list[re.Match[str]]) -> Fix | None:
    """The model can bring its tables to the number of rows that all of them have in the file."""
    rows = {each["there"].split(",")[0].strip() for each in found}
    others = {each["there"].split(",")[1:] == each["here"].split(",")[1:] for each in found}
    if not event.facts.get("resizes") or len(rows) > 1 or others != {True}:
        return None
    text = f"call `resize_token_embeddings({rows.pop()})` on the model before it is loaded"
    return Fix(text, Safety.DISPLAY, ())


def _shape(text: str) -> str:
    return "x".join(each.strip() for each in text.split(",")) or "a number"


def _left_out(timeline: Timeline, site: Site | None) -> Fix:
    """The others, where the model is a name and the call has no other arguments."""
    text = "build the model as it was saved, or leave these out: the others are loaded"
    call = timeline.call(site, "load_state_dict") if site else None
    given = timeline.argument(site, "load_state_dict") if site else None
    if call is None or given is None or site is None:
        return Fix(text, Safety.DISPLAY, ())
    model = call.source.partition(".load_state_dict(")[0]
    if not model.replace(".", "").isidentifier():
        return Fix(text, Safety.DISPLAY, ())
    shown = LEFT_OUT.format(given=given.source, model=model)
    edit = Edit(call, f"{model}.load_state_dict({shown}, strict=False)")
    return edited(timeline, text, edit)
