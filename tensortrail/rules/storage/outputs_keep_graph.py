from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.storage._with_graph import Kept, kept_with_graph


class OutputsKeepGraph(Rule):
    """Outputs of a model in evaluation are collected together with their graphs.

    ## What it does
    Reports `outputs.append(model(x))` and `total += loss` in a loop of a function that calls
    `model.eval()`, runs no backward pass, and is outside of `torch.no_grad()`, if what is kept was
    computed by that model, is neither detached nor a plain number, and outlives the iteration.

    Not reported: files that turn gradients off, functions that a caller in the file runs without
    gradients, functions that train as well, and a model that is evaluated only if something else
    says so.

    ## Why is this bad?
    Memory grows with every batch until the run fails with "out of memory": each output holds the
    activations of all layers. `eval()` changes layers such as dropout; it does not turn gradients
    off.

    ## Fix safety
    Unsafe: the outputs that are kept no longer require a gradient. `@torch.no_grad()` on the
    function also saves time.

    ## References
    - pytorch documentation, "Autograd mechanics": evaluation mode is no gradient mode
    """

    code = "STO214"
    name = "outputs-keep-graph"
    severity = Severity.WARNING
    warns = False
    needs_callers = True
    triggers = ((".eval", "for ", "torch"),)

    bad = (
        Bad(
            """\
import torch

def validate(model, loader, device):
    model.eval()
    outputs = []
    for x, y in loader:
        out = model(x.to(device))
        outputs.append(out)
    return torch.cat(outputs)
""",
            lines=(8,),
            fixed="""\
import torch

def validate(model, loader, device):
    model.eval()
    outputs = []
    for x, y in loader:
        out = model(x.to(device))
        outputs.append(out.detach())
    return torch.cat(outputs)
""",
        ),
        Bad(
            """\
import torch.nn.functional as F

class Trainer:
    def validate(self, loader):
        self.model.eval()
        total = 0
        for x, y in loader:
            total += F.cross_entropy(self.model(x), y)
        self.model.train()
        return total / len(loader)
""",
            lines=(8,),
            fixed="""\
import torch.nn.functional as F

class Trainer:
    def validate(self, loader):
        self.model.eval()
        total = 0
        for x, y in loader:
            total += F.cross_entropy(self.model(x), y).detach()
        self.model.train()
        return total / len(loader)
""",
        ),
    )
    good = (
        Good(
            """\
import torch
import torch.nn.functional as F

@torch.no_grad()
def decorated(model, loader):
    model.eval()
    return_values = []
    for x, y in loader:
        return_values.append(model(x))
    return return_values

def within(model, loader):
    model.eval()
    outputs = []
    with torch.inference_mode():
        for x, y in loader:
            outputs.append(model(x))
    return outputs

def numbers(model, loader):
    model.eval()
    total, outputs, right = 0, [], 0
    for x, y in loader:
        out = model(x)
        total += F.cross_entropy(out, y).item()
        right += (out.argmax(1) == y).sum()
        outputs.append(out.detach().cpu())
        outputs.append(out.argmax(1))
    return total, outputs, right

def attacked(model, x, steps):
    model.eval()
    seen = []
    for _ in range(steps):
        seen.append(model(x))
        seen[-1].sum().backward()
    return seen
"""
        ),
        Good(
            """\
import torch

def collected(model, loader):
    model.eval()
    outputs = []
    for x in loader:
        outputs.append(model(x))
    return outputs

def main(model, loader):
    with torch.no_grad():
        return collected(model, loader)
"""
        ),
        Good(
            """\
import torch

class Slides(torch.nn.Module):
    def features(self, tiles, size):
        if not self.tunes_encoder:
            self.encoder.eval()
        found = []
        for tile in torch.split(tiles, size):
            found.append(self.encoder(tile))
        return torch.cat(found)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for kept in kept_with_graph(module):
            yield self._reported(module, kept)

    def _reported(self, module: Module, kept: Kept) -> Finding:
        shown = module.text(kept.value)
        edit = module.insert_after(kept.value, ".detach()")
        plain = isinstance(kept.value, (ast.Name, ast.Call, ast.Attribute, ast.Subscript))
        return self.finding(
            module,
            module.statement_of(kept.value),
            f"`{kept.keeper}` keeps `{shown}` with the graph that made it at each step: "
            f"`{module.text(kept.evaluated)}` does not turn gradients off",
            trail=[(kept.evaluated, "evaluation begins, and gradients are on")],
            fixes=[
                module.fix("keep the value only", Safety.UNSAFE, edit) if plain else None,
            ],
        )
