from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Edit, Finding, Fix, Safety, Severity, Site
from tensortrail.rules import Bad, Did, Event, Good, Module, Rule, Timeline
from tensortrail.rules.shards._best_kept import is_filled, kept_state, round_kept
from tensortrail.rules.shared.assignments import pairs_of
from tensortrail.rules.shared.callers import is_dropped_by_all
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.lines import place

STATE_DICT = "Module.state_dict"


class BestRoundNotCopied(Rule):
    """The weights of the best round are kept without a copy, and training goes on.

    ## What it does
    In code, reports `best = model.state_dict()`, directly or in a dict, or `best = model` itself,
    under a condition in a loop that trains `model`, if `best` is used after the loop. Copies that
    copy no tensors count as well: `dict(model.state_dict())`, `copy.copy` of it and, as a warning,
    values taken with `.cpu()`, which copies nothing while the model is on the CPU. A loop whose
    best state is loaded into `model` afterwards is taken to train it.

    Reported as a note: values taken with `.cpu()` that are only returned, and weights that are
    returned to callers of which none keeps them.

    In a recorded run, reports `model.load_state_dict(state)` where `state` holds the tensors of the
    model itself, and optimizers have stepped since it was taken; and a line that took three state
    dicts of one model which are all kept, with steps between.

    ## Why is this bad?
    The weights of the last round are saved or returned with the score of the best one. A state dict
    holds the tensors of the model, not copies, and the following rounds change them in place.

    ## Fix safety
    In code, no fix is offered: a copy costs the memory of the model; saving to a file at once does
    not. After a run, a copy is offered as an unsafe fix.

    ## References
    - pytorch/pytorch, tutorial "Saving and Loading Models": `best_model_state` needs a deepcopy
    """

    code = "SHD420"
    name = "best-round-not-copied"
    since = "0.2.0"
    severity = Severity.ERROR
    triggers = (("state_dict(", "for "), ("state_dict(", "while "), ("torch", "for ", ".step("))

    bad = (
        Bad(
            """\
def fit(model, optimizer, loader, measured):
    best, kept = 0.0, None
    for _ in range(10):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).backward()
            optimizer.step()
        if measured(model) > best:
            best = measured(model)
            kept = model.state_dict()
    model.load_state_dict(kept)
    return model
""",
            lines=(10,),
            instead="""\
import copy


def fit(model, optimizer, loader, measured):
    best, kept = 0.0, None
    for _ in range(10):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).backward()
            optimizer.step()
        if measured(model) > best:
            best = measured(model)
            kept = copy.deepcopy(model.state_dict())
    model.load_state_dict(kept)
    return model
""",
        ),
        Bad(
            """\
import torch


def fit(model, train_epoch, measured):
    optimizer = torch.optim.SGD(model.parameters())
    best, kept = 0.0, {}
    for epoch in range(10):
        train_epoch(model, optimizer)
        if measured(model) > best:
            best = measured(model)
            kept = {"model": model.state_dict(), "epoch": epoch}
    torch.save(kept, "best.pt")
""",
            lines=(11,),
        ),
        Bad(
            """\
def fit(model, optimizer, loader, measured):
    best, kept = 0.0, None
    for _ in range(10):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).backward()
            optimizer.step()
        if measured(model) > best:
            best = measured(model)
            kept = {name: value.detach().cpu() for name, value in model.state_dict().items()}
    model.load_state_dict(kept)
    return model
""",
            lines=(10,),
        ),
        Bad(
            """\
def fit(model, loader, epochs):
    lowest, kept = 1e9, None
    for _ in range(epochs):
        loss = one_epoch(model, loader)
        if loss < lowest:
            lowest = loss
            kept = model.state_dict()
    model.load_state_dict(kept)
""",
            lines=(7,),
        ),
        Bad(
            """\
class Trainer:
    def fit(self, loader, epochs):
        lowest, kept = 1e9, None
        for _ in range(epochs):
            loss = self.epoch(loader)
            if loss < lowest:
                lowest = loss
                kept = {"model": self.model.state_dict()}
        self.model.load_state_dict(kept["model"])
""",
            lines=(8,),
        ),
        Bad(
            """\
def fit(model, optimizer, loader, measured):
    best, kept = 0.0, None
    for batch in loader:
        optimizer.zero_grad()
        model(batch).backward()
        optimizer.step()
        score = measured(model)
        if score > best:
            best, kept = score, model.state_dict()
    model.load_state_dict(kept)
""",
            lines=(9,),
        ),
        Bad(
            """\
import torch

def fit(model, x, y):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    lowest, best = float("inf"), None
    for _ in range(10):
        loss = (model(x) - y).pow(2).mean()
        if loss.item() < lowest:
            lowest, best = loss.item(), model
        loss.backward()
        optimizer.step()
    return best
""",
            lines=(9,),
        ),
    )
    good = (
        Good(
            """\
def fit(model, loader, epochs):
    lowest, kept = 1e9, None
    for _ in range(epochs):
        loss = one_epoch(model, loader)
        if loss < lowest:
            lowest = loss
            kept = model.state_dict()
    return Model.restored(kept)
"""
        ),
        Good(
            """\
def fit(model, optimizer, loader, measured):
    best, kept = 0.0, None
    for _ in range(10):
        for batch in loader:
            model(batch).backward()
            optimizer.step()
        if measured(model) > best:
            best = measured(model)
            weights = model.state_dict()
            kept = {name: value.clone() for name, value in weights.items()}
    model.load_state_dict(kept)
"""
        ),
        Good(
            """\
def fit(model, optimizer, loader, measured):
    best, kept = 0.0, None
    for _ in range(10):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).backward()
            optimizer.step()
        if measured(model) > best:
            best = measured(model)
            kept = {name: value.cpu().clone() for name, value in model.state_dict().items()}
    model.load_state_dict(kept)
    return model
"""
        ),
        Good(
            """\
import torch


def folds(make, optimizer_of, loader, measured):
    best, kept = 0.0, None
    for _ in range(5):
        model = make()
        optimizer = optimizer_of(model)
        for batch in loader:
            model(batch).backward()
            optimizer.step()
        if measured(model) > best:
            best = measured(model)
            kept = model.state_dict()
    torch.save(kept, "best.pt")
"""
        ),
        Good(
            """\
import torch


def fit(model, optimizer, loader, measured):
    best = 0.0
    for _ in range(5):
        for batch in loader:
            model(batch).backward()
            optimizer.step()
        if measured(model) > best:
            best = measured(model)
            kept = model.state_dict()
            torch.save(kept, "best.pt")
    return best
"""
        ),
        Good(
            """\
import torch


def fit(model, optimizer, loader, measured):
    best = 0.0
    for _ in range(5):
        for batch in loader:
            model(batch).backward()
            optimizer.step()
        if measured(model) > best:
            best = measured(model)
            kept = model.state_dict()
            kept = {name: value.clone() for name, value in kept.items()}
    torch.save(kept, "best.pt")
"""
        ),
        Good(
            """\
def first_good(model, optimizer, loader, measured):
    for batch in loader:
        model(batch).backward()
        optimizer.step()
        if measured(model) > 0.9:
            kept = model.state_dict()
            break
    return kept
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for assign in module.nodes(ast.Assign):
            for target, value in pairs_of(assign):
                if isinstance(target, ast.Name):
                    yield from self._kept(module, assign, target.id, value)

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for load in (each for each in timeline.events(Did.HOOK) if "itself" in each.facts):
            taken, steps = _taken(load), load.facts.get("steps")
            yield self.finding_in_run(
                timeline,
                load,
                f"this load changes nothing: `state_dict()`{place(taken)} gave the tensors of "
                f"`{load.facts.get('module')}` themselves, and optimizers have made {steps} "
                f"step{'s' * (steps != 1)} since",
                fixes=[_copied(timeline, taken)],
            )
        for event in timeline.events(Did.HOOK):
            if event.op == STATE_DICT and "kept" in event.facts:
                yield self._all_one(timeline, event)

    def _all_one(self, timeline: Timeline, event: Event) -> Finding:
        return self.finding_in_run(
            timeline,
            event,
            f"{event.facts['kept']} state dicts of one `{event.facts.get('module')}` are kept, "
            "with steps of optimizers between them, but all hold its tensors themselves: each has "
            "the values of the last one",
            fixes=[_copied(timeline, event.site)],
        )

    def _kept(
        self, module: Module, assign: ast.Assign, name: str, value: ast.expr
    ) -> Iterator[Finding]:
        kept = kept_state(module, value)
        found = round_kept(module, assign, name, kept.owner) if kept else None
        if kept is None or found is None or is_filled(module, assign, name):
            return
        training, use = found
        yield self.finding(
            module,
            assign,
            f"`{name}` should keep the weights of `{kept.owner}` from this round, but holds its "
            f"tensors themselves{kept.when}: line {training.lineno} changes them, and line "
            f"{use.lineno} uses the values of the last round",
            severity=_weight(module, use, kept.by_device),
            trail=[(training, "trained on here"), (use, "used here")],
        )


def _weight(module: Module, use: ast.Name, by_device: bool) -> Severity | None:
    """Of what is a copy with a GPU: a warning, unless it is given back to callers, who may drop
    it."""
    if isinstance(module.statement_of(use), ast.Return):
        dropped = is_dropped_by_all(module, module.function_of(use))
        return Severity.NOTE if by_device or dropped else None
    return Severity.WARNING if by_device else None


def _taken(load: Event) -> Site | None:
    match load.facts.get("itself"):
        case [str(file), int(line), *_] if file:
            return Site(file, line)
    return None


def _copied(timeline: Timeline, taken: Site | None) -> Fix:
    text = "copy the values when they are taken"
    call = timeline.call(taken, "state_dict") if taken else None
    if call is not None:
        copy = f"{{key: value.clone() for key, value in {call.source}.items()}}"
        fix = timeline.fix(f"{text}: `{copy}`", Safety.UNSAFE, Edit(call, copy))
        if fix is not None:
            return fix
    return Fix(f"{text}: `copy.deepcopy(model.state_dict())`", Safety.DISPLAY, ())
