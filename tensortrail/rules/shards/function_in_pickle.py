from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Edit, Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Event, Rule, Timeline
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.shared.lines import place
from tensortrail.rules.shared.mends import edited, source_of
from tensortrail.rules.shared.objects import called

LAMBDA = "<lambda>"


class FunctionInPickle(Rule):
    """A pickled object refers to a function that pickle cannot find again by its name.

    ## What it does
    In a recorded run, reports a `torch.save` or the start of a process that failed for that reason,
    with the attribute that refers to the function: a compiled function, a lambda, a function inside
    another one.

    Not reported: a failure that the program catches.

    ## Why is this bad?
    The program ends. A pickle holds the names of functions only. `torch.compile` gives its result
    the name of the function that it was given, which is another object.

    ## What you may see
    ```
    _pickle.PicklingError: Can't pickle <function swish>: it's not the same object as __main__.swish
    AttributeError: Can't pickle local object 'loader.<locals>.<lambda>'
    ```

    ## Example
    ```python
    self.act = torch.compile(swish)
    ...
    torch.save(model, "model.pt")
    ```
    Use instead:
    ```python
    self.act = torch.compile(swish)
    ...
    torch.save(model.state_dict(), "model.pt")
    ```

    ## Fix safety
    Unsafe: what loads the file gets a state dict, and needs a model to load it into.

    ## References
    - pytorch/pytorch issue 101107
    """

    code = "SHD449"
    name = "function-in-pickle"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in hooks_telling(timeline, "pickled function"):
            yield self._found(timeline, event)

    def _found(self, timeline: Timeline, event: Event) -> Finding:
        facts = event.facts
        held, path = str(facts.get("in")), str(facts["pickled function"])
        starts = bool(facts.get("starts"))
        whole = "what a new process is given" if starts else f"`{held}`"
        at = path if starts or not path else f"{held}.{path}"
        of = f" has `{at}`, which is" if path else " is"
        return self.finding_in_run(
            timeline,
            event,
            f"{whole}{of} {_what(event)}, and pickle cannot find it again by its name",
            fixes=[_fix(timeline, event, starts)],
        )


def _what(event: Event) -> str:
    facts = event.facts
    called, line = str(facts.get("called")), place(_defined(event))
    if facts.get("compiled"):
        return f"the compiled form of `{called}`"
    return f"a lambda{line}" if called == LAMBDA else f"the function `{called}`{line}"


def _defined(event: Event) -> Site | None:
    match event.facts.get("defined"):
        case [str(file), int(line)]:
            return Site(file, line)
    return None


def _fix(timeline: Timeline, event: Event, starts: bool) -> Fix:
    if not starts and event.facts.get("module"):
        text = f"save its values: `{event.facts.get('in')}.state_dict()`"
        return edited(timeline, text, _state_dict(timeline, event))
    if event.facts.get("compiled"):
        return Fix("give it the function itself, and compile where it is used", Safety.DISPLAY, ())
    text = "define it with `def` at the top of the file"
    more = ", and bind what it needs with `functools.partial`" if starts else ""
    return Fix(text + more, Safety.DISPLAY, ())


def _state_dict(timeline: Timeline, event: Event) -> Edit | None:
    """`.state_dict()` of what the `save` of that line is given first."""
    site, tree = event.site, timeline.tree(event.site.file) if event.site else None
    for node in ast.walk(tree) if tree else ():
        if site and isinstance(node, ast.Call) and node.args and node.lineno == site.line:
            first = node.args[0]
            if called(node) == "save" and isinstance(first, (ast.Name, ast.Attribute)):
                written = source_of(timeline, site.file, first)
                return timeline.replace(site.file, first, f"{written}.state_dict()")
    return None
