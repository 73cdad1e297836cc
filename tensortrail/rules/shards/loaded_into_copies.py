from __future__ import annotations

import ast
import os
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Bad, Did, Event, Good, Module, Rule, Timeline
from tensortrail.rules.shards._loaded_empty import empty_given, numbers_not_read
from tensortrail.rules.shared.mends import edited, line_behind, statement_of
from tensortrail.rules.shared.sentences import first_of

OP = "dcp.load"
OF_OPTIMIZERS = (
    "an optimizer that has not stepped has no state to fill: save and load what "
    "`torch.distributed.checkpoint.state_dict.get_optimizer_state_dict(model, optimizer)` gives, "
    "and pass it to `set_optimizer_state_dict`"
)


class LoadedIntoCopies(Rule):
    """A distributed checkpoint is loaded into copies that are never used, or into an empty dict.

    ## What it does
    In code, reports `state = {}` that is given to `torch.distributed.checkpoint.load` with nothing
    in it, and `state = {"step": step}` with a number, if `step` is used after the load and
    `state["step"]` is not. In a recorded run, reports a load into an empty dict, and one into
    tensors that are not the model's own, though a model has a weight for each of their keys, if
    nothing reads these tensors until the end: no `load_state_dict`, no copy, no comparison, no
    save.

    Reported as a warning: a load into a dict with an empty part, if the checkpoint has values for
    that part, such as the state of an optimizer that has not stepped.

    ## Why is this bad?
    The model keeps its initial weights, and no error is raised: a run that should resume starts
    anew. The load writes only into the tensors that it is given, and returns no others.

    ## Fix safety
    Unsafe: the model then has other weights. For an empty dict, no fix is offered.

    ## References
    - pytorch documentation, `torch.distributed.checkpoint`: "load operates in place"
    - pytorch/pytorch#126881
    """

    code = "SHD442"
    name = "loaded-into-copies"
    severity = Severity.ERROR
    proven = False
    triggers = (("checkpoint", "load("),)

    bad = (
        Bad(
            """\
import torch.distributed.checkpoint as dcp

def restore(model, folder):
    state = {}
    dcp.load(state, checkpoint_id=folder)
    model.load_state_dict(state["model"])
""",
            lines=(5,),
            instead="""\
import torch.distributed.checkpoint as dcp

def restore(model, folder):
    state = {"model": model.state_dict()}
    dcp.load(state, checkpoint_id=folder)
    model.load_state_dict(state["model"])
""",
        ),
        Bad(
            """\
import torch.distributed.checkpoint as dcp

def resume(model, folder):
    step = 0
    state = {"model": model.state_dict(), "step": step}
    dcp.load(state, checkpoint_id=folder)
    model.load_state_dict(state["model"])
    return model, step
""",
            lines=(6,),
            instead="""\
import torch.distributed.checkpoint as dcp

def resume(model, folder):
    state = {"model": model.state_dict(), "step": 0}
    dcp.load(state, checkpoint_id=folder)
    model.load_state_dict(state["model"])
    return model, state["step"]
""",
        ),
    )
    good = (
        Good(
            """\
import torch.distributed.checkpoint as dcp

def resume(model, folder):
    step = 0
    state = {"model": model.state_dict(), "step": step}
    dcp.load(state, checkpoint_id=folder)
    model.load_state_dict(state["model"])
    step = state["step"]
    return model, step
"""
        ),
        Good(
            """\
import torch.distributed.checkpoint as dcp

def restore(model, folder, wanted):
    state = {}
    for name, value in model.state_dict().items():
        if name in wanted:
            state[name] = value
    dcp.load(state, checkpoint_id=folder)
    model.load_state_dict(state, strict=False)
"""
        ),
        Good(
            """\
import torch.distributed.checkpoint as dcp

def restore(model, folder, fill):
    state = dict()
    fill(state, model)
    dcp.load(state, checkpoint_id=folder)
    model.load_state_dict(state)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for call in module.calls("load", "load_state_dict"):
            given = module.argument(call, 0, "state_dict")
            made = empty_given(module, call, given) if isinstance(given, ast.Name) else None
            if made is not None:
                yield self.finding(
                    module,
                    call,
                    f"`{module.text(made.targets[0])}` is empty, and nothing is loaded: "
                    f"`{module.text(call.func)}` fills the entries that it finds in it",
                    trail=[(made, "made empty here")],
                )
            if isinstance(given, ast.Name):
                yield from self._numbers(module, call, given)

    def _numbers(self, module: Module, call: ast.Call, given: ast.Name) -> Iterator[Finding]:
        for value, use in numbers_not_read(module, call, given):
            yield self.finding(
                module,
                call,
                f"the load writes the saved number into `{given.id}`, but line {use.lineno} uses "
                f"`{value.id}`, which keeps its old value",
                trail=[(value, "put into the dict here"), (use, "the old number is used here")],
            )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in timeline.events(Did.HOOK):
            if "unread" in event.facts:
                yield self._found(timeline, event, str(event.facts["unread"]))
            elif "unfilled" in event.facts:
                yield self._empty(timeline, event)

    def _empty(self, timeline: Timeline, event: Event) -> Finding:
        keys = [str(each) for each in event.facts["unfilled"]]
        count = int(event.facts.get("count", len(keys)))
        listed = first_of([f"`{each}`" for each in keys], 3, count)
        first = sorted({each.partition(".")[0] for each in keys if "." in each})
        shape = f': `{{"{first[0]}": ...}}`' if len(first) == 1 else ""
        part = str(event.facts.get("part", ""))
        nothing = f"finds `{part}` empty" if part else "is given an empty dict"
        change = (
            f"give it a dict with the keys that were saved, to be filled{shape}, for "
            "example of `model.state_dict()`"
        )
        if part.rpartition(".")[2] == "state":
            change = OF_OPTIMIZERS
        return self.finding_in_run(
            timeline,
            event,
            f"`{event.op}` {nothing} and loads nothing{' into it' if part else ''}: it fills the "
            f"entries that it finds there, and the checkpoint has {listed}",
            severity=Severity.WARNING if part else None,
            fixes=[Fix(change, Safety.DISPLAY, ())],
        )

    def _found(self, timeline: Timeline, event: Event, model: str) -> Finding:
        count, path = event.facts.get("count"), os.path.basename(str(event.facts.get("path")))
        of = f" of {path}" if path else ""
        return self.finding_in_run(
            timeline,
            event,
            f"the {count} tensors that `{event.op}` filled with the values{of} are not those of "
            f"`{model}`, and nothing has read them: `{model}` has none of these values",
            fixes=[_given_to(timeline, event.site, model)],
        )


def _given_to(timeline: Timeline, site: Site | None, model: str) -> Fix:
    text = f"give them to the model behind the load: `{model}.load_state_dict(...)`"
    statement = statement_of(timeline, site)
    given = _given(statement) if statement else ""
    if site is None or statement is None or not given or not model.isidentifier():
        return Fix(text, Safety.DISPLAY, ())
    line = f"{model}.load_state_dict({given})"
    told = f"give them to the model behind the load: `{line}`"
    edit = line_behind(timeline, site.file, statement, line)
    return edited(timeline, told, edit)


def _given(statement: ast.stmt) -> str:
    """The variable, or the part of a dict under the only key, that is loaded into."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and node.args:
            match node.args[0]:
                case ast.Name(id=name):
                    return name
                case ast.Dict(values=[ast.Name(id=name)]):
                    return name
    return ""
