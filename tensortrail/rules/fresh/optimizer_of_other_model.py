from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Did, Event, Rule, Timeline
from tensortrail.rules.fresh._cut_graphs import frame_of, where
from tensortrail.rules.shared.mends import statement_at


class OptimizerOfOtherModel(Rule):
    """Two optimizers have the parameters of one model, and another model has none.

    ## What it does
    In a recorded run, reports two optimizers that were given the very same parameters and both make
    steps, while another model gets gradients in each of its weights and is in no optimizer.

    ## Why is this bad?
    One of two networks that are trained in turns, usually the generator, is never trained, and no
    error is raised. Two optimizers change the other one.

    ## Example
    ```python
    opt_g = Adam(discriminator.parameters())
    opt_d = Adam(discriminator.parameters())
    ```
    Use instead:
    ```python
    opt_g = Adam(generator.parameters())
    opt_d = Adam(discriminator.parameters())
    ```

    ## Fix safety
    Unsafe. Offered where the run shows which optimizer was meant for the other model: the one that
    steps after the backward pass through it.

    ## References
    - pytorch tutorial "DCGAN"
    """

    code = "NEW316"
    name = "optimizer-of-other-model"
    severity = Severity.ERROR

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in timeline.events(Did.HOOK):
            made, other = frame_of(event.facts.get("made")), frame_of(event.facts.get("other"))
            if "twins" in event.facts and made is not None and other is not None:
                yield self._found(timeline, event, Site(*made[:2]), Site(*other[:2]))

    def _found(self, timeline: Timeline, event: Event, made: Site, other: Site) -> Finding:
        alone, models = event.facts["alone"], event.facts.get("models") or ["one model"]
        return self.finding_in_run(
            timeline,
            dataclasses.replace(event, site=made),
            f"`{alone}` gets gradients and is in no optimizer: `{event.facts['twins']}`"
            f"{where(made)} and the one{where(other)} both have the parameters of `{models[0]}`",
            fixes=[_given_its_own(timeline, event, made, str(models[0]), str(alone))],
        )


def _given_its_own(timeline: Timeline, event: Event, made: Site, model: str, alone: str) -> Fix:
    text = f"give one of the two `{alone}.parameters()`"
    tree = timeline.tree(made.file) if event.facts.get("certain") else None
    statement = statement_at(tree, made.line) if tree else None
    found = [
        node
        for node in (ast.walk(statement) if statement else ())
        if isinstance(node, ast.expr) and ast.unparse(node).rpartition(".")[2] == model
    ]
    outer = [each for each in found if isinstance(each, ast.Attribute)] or found
    if len(outer) == 1:
        new = ast.unparse(outer[0])[: -len(model)] + alone
        edit = timeline.replace(made.file, outer[0], new)
        told = f"give the optimizer of line {made.line} `{new}.parameters()`"
        if fix := timeline.fix(told, Safety.UNSAFE, edit):
            return fix
    return Fix(text, Safety.DISPLAY, ())
