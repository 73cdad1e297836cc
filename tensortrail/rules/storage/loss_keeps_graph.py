from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule, Timeline
from tensortrail.rules.shared.functions import called_here
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.storage._kept_in_run import kept_in_run
from tensortrail.rules.storage._losses import has_no_graph, trained_on
from tensortrail.rules.storage._losses_kept import kept_in_loop


class LossKeepsGraph(Rule):
    """The losses of a training loop are collected together with their graphs.

    ## What it does
    Reports `total += loss` and `losses.append(loss)` without `.item()` or `.detach()` in a loop
    that runs a backward pass from `loss` and steps an optimizer, if what is kept outlives the
    iteration. Also reports a list of the training object to which each training step adds its loss,
    a meter that sums what it is given, wherever its class is written, and a loss that a function of
    the file goes back through and returns.

    In a recorded run, checks the variables after 12 optimizer steps, after 24, after 48 and so on.
    Reports a total or a list that keeps at least ten more graphs than at the check before.

    Not reported: a total that a backward pass starts from, or of one step or turn only.

    ## Why is this bad?
    Memory grows with every step until a long run fails with "out of memory". Each loss holds the
    graph that made it. `backward()` frees what the graph saved, but not the graph itself, nor what
    it holds in other ways, such as the context of a custom autograd function.

    ## Fix safety
    Unsafe: the values that are kept no longer require a gradient.

    ## References
    - pytorch documentation, "My model reports cuda runtime error: out of memory"
    """

    code = "STO212"
    name = "loss-keeps-graph"
    severity = Severity.WARNING
    triggers = (("backward(", "step("),)
    bad = (
        Bad(
            "def train(model, batches, optimizer):\n    total = 0\n    for x, y in batches:\n"
            "        optimizer.zero_grad()\n        loss = model(x, y)\n"
            "        loss.backward()\n        optimizer.step()\n        total += loss\n"
            "    return total / len(batches)\n",
            lines=(8,),
            fixed="def train(model, batches, optimizer):\n    total = 0\n    for x, y in batches:\n"
            "        optimizer.zero_grad()\n        loss = model(x, y)\n"
            "        loss.backward()\n        optimizer.step()\n        total += loss.detach()\n"
            "    return total / len(batches)\n",
        ),
        Bad(
            "class Trainer:\n    def fit(self, model, accelerator, optimizer, loader):\n"
            "        for batch in loader:\n            loss = model(**batch).loss\n"
            "            self.losses.append(loss)\n            accelerator.backward(loss)\n"
            "            optimizer.step()\n",
            lines=(5,),
            fixed="class Trainer:\n    def fit(self, model, accelerator, optimizer, loader):\n"
            "        for batch in loader:\n            loss = model(**batch).loss\n"
            "            self.losses.append(loss.detach())\n"
            "            accelerator.backward(loss)\n            optimizer.step()\n",
        ),
        Bad(
            "def train(model, batches, scaler, optimizer):\n    seen, total = 0, 0.0\n"
            "    for x, y in batches:\n        error = model(x, y)\n"
            "        scaler.scale(error).backward()\n        scaler.step(optimizer)\n"
            "        total = total + error * x.size(0)\n        seen += x.size(0)\n"
            "    return total / seen\n",
            lines=(7,),
            fixed="def train(model, batches, scaler, optimizer):\n    seen, total = 0, 0.0\n"
            "    for x, y in batches:\n        error = model(x, y)\n"
            "        scaler.scale(error).backward()\n        scaler.step(optimizer)\n"
            "        total = total + error.detach() * x.size(0)\n        seen += x.size(0)\n"
            "    return total / seen\n",
        ),
        Bad(
            "class Trainer:\n    def __init__(self, model, optimizer):\n"
            "        self.model, self.optimizer = model, optimizer\n        self.losses = []\n\n"
            "    def step(self, x, y):\n        loss = self.model(x, y)\n"
            "        loss.backward()\n        self.optimizer.step()\n"
            "        self.losses.append(loss)\n",
            lines=(10,),
            fixed="class Trainer:\n    def __init__(self, model, optimizer):\n"
            "        self.model, self.optimizer = model, optimizer\n        self.losses = []\n\n"
            "    def step(self, x, y):\n        loss = self.model(x, y)\n"
            "        loss.backward()\n        self.optimizer.step()\n"
            "        self.losses.append(loss.detach())\n",
        ),
        Bad(
            "class Mean:\n    def __init__(self):\n        self.sum, self.seen = 0, 0\n\n"
            "    def update(self, value, n=1):\n        self.sum += value * n\n"
            "        self.seen += n\n\n\n"
            "def train(model, batches, optimizer):\n    mean = Mean()\n"
            "    for x, y in batches:\n        loss = model(x, y)\n        loss.backward()\n"
            "        optimizer.step()\n        mean.update(loss, len(x))\n    return mean\n",
            lines=(16,),
            fixed="class Mean:\n    def __init__(self):\n        self.sum, self.seen = 0, 0\n\n"
            "    def update(self, value, n=1):\n        self.sum += value * n\n"
            "        self.seen += n\n\n\n"
            "def train(model, batches, optimizer):\n    mean = Mean()\n"
            "    for x, y in batches:\n        loss = model(x, y)\n        loss.backward()\n"
            "        optimizer.step()\n        mean.update(loss.detach(), len(x))\n"
            "    return mean\n",
        ),
        Bad(
            "def stepped(model, optimizer, x, y, parts):\n    loss = model(x, y)\n"
            "    share = loss / parts\n    share.backward()\n    optimizer.step()\n"
            "    return loss\n\n\n"
            "def train(model, batches, optimizer):\n    total = 0\n    for x, y in batches:\n"
            "        loss = stepped(model, optimizer, x, y, 2)\n        total += loss\n"
            "    return total / len(batches)\n",
            lines=(13,),
            fixed="def stepped(model, optimizer, x, y, parts):\n    loss = model(x, y)\n"
            "    share = loss / parts\n    share.backward()\n    optimizer.step()\n"
            "    return loss\n\n\n"
            "def train(model, batches, optimizer):\n    total = 0\n    for x, y in batches:\n"
            "        loss = stepped(model, optimizer, x, y, 2)\n        total += loss.detach()\n"
            "    return total / len(batches)\n",
        ),
    )
    good = (
        Good(
            "class Trainer:\n    def __init__(self, model, optimizer):\n"
            "        self.model, self.optimizer = model, optimizer\n        self.losses = []\n"
            "        self.all = []\n\n"
            "    def step(self, x, y):\n        loss = self.model(x, y)\n"
            "        loss.backward()\n        self.optimizer.step()\n"
            "        self.losses.append(loss)\n        self.all.append(loss.item())\n\n"
            "    def log(self):\n        print(sum(self.losses).item())\n"
            "        self.losses = []\n"
        ),
        Good(
            "def stepped(model, optimizer, x, y):\n    loss = model(x, y)\n"
            "    loss.backward()\n    optimizer.step()\n    loss = loss.item()\n"
            "    return loss\n\n\n"
            "def train(model, batches, optimizer):\n    total = 0\n    for x, y in batches:\n"
            "        loss = stepped(model, optimizer, x, y)\n        total += loss\n"
            "    return total / len(batches)\n"
        ),
        Good(
            "class Mean:\n    def __init__(self):\n        self.sum, self.seen = 0, 0\n\n"
            "    def update(self, value, n=1):\n        self.sum += float(value) * n\n"
            "        self.seen += n\n\n\n"
            "def train(model, batches, optimizer):\n    mean = Mean()\n"
            "    for x, y in batches:\n        loss = model(x, y)\n        loss.backward()\n"
            "        optimizer.step()\n        mean.update(loss, len(x))\n    return mean\n"
        ),
        Good(
            "def train(model, batches, optimizer):\n    total = 0\n    for x, y in batches:\n"
            "        loss = model(x, y)\n        loss.backward()\n        optimizer.step()\n"
            "        total += loss.item()\n    return total / len(batches)\n"
        ),
        Good(
            "def train(model, batches, optimizer):\n    losses = []\n    for x, y in batches:\n"
            "        loss = model(x, y)\n        loss.backward()\n        optimizer.step()\n"
            "        loss = loss.detach()\n        losses.append(loss)\n    return losses\n"
        ),
        Good(
            "def train(model, batches, optimizer):\n    for parts in batches:\n"
            "        total = 0\n        for part in parts:\n            loss = model(part)\n"
            "            total += loss\n        total.backward()\n        optimizer.step()\n"
        ),
        Good(
            "def accumulate(model, parts):\n    losses = []\n    for part in parts:\n"
            "        loss = model(part)\n        loss.backward()\n        losses.append(loss)\n"
            "    return sum(losses)\n"
        ),
        Good(
            "import torch\n\n\ndef train(model, batches, optimizer):\n    total = 0\n"
            "    for x, y in batches:\n        loss = model(x, y)\n        loss.backward()\n"
            "        optimizer.step()\n        with torch.no_grad():\n            total += loss\n"
            "    return total\n"
        ),
        Good(
            "def train(model, batches, optimizer):\n    running = 0\n"
            "    for step, (x, y) in enumerate(batches):\n        loss = model(x, y)\n"
            "        loss.backward()\n        optimizer.step()\n        running += loss\n"
            "        if step % 100 == 0:\n            print(float(running))\n"
            "            running = 0\n"
        ),
        Good(
            """\
from collections import defaultdict

def train(model, batches, optimizer, accelerator):
    info = defaultdict(list)
    for x, y in batches:
        loss = model(x, y)
        info["loss"].append(loss)
        accelerator.backward(loss)
        optimizer.step()
        if accelerator.sync_gradients:
            accelerator.log(info)
            info = defaultdict(list)
"""
        ),
        Good(
            """\
def train(model, loader, loss_of, optimizer):
    total = 0.0
    for x, y in loader:
        loss = loss_of(model(x), y)
        total += loss / len(loader)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
        ),
    )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event, said, fix in kept_in_run(timeline):
            yield self.finding_in_run(timeline, event, said, fixes=[fix])

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        reported: set[ast.AST] = set()
        for loss, back, around in trained_on(module):
            for used, keeper in kept_in_loop(module, back, around, loss):
                if used in reported or has_no_graph(module, around, used, back):
                    continue
                reported.add(used)
                yield self._reported(module, used, back, keeper)

    def _reported(self, module: Module, used: ast.expr, back: ast.AST, keeper: str) -> Finding:
        said = module.text(used)
        return self.finding(
            module,
            module.statement_of(used),
            f"`{keeper}` keeps `{said}` with its graph at each step: `{said}.detach()` is enough",
            trail=[(back, "the backward pass goes through this graph"), *_summed_by(module, used)],
            fixes=[
                module.fix(
                    "keep the value only", Safety.UNSAFE, module.insert_after(used, ".detach()")
                )
            ],
        )


def _summed_by(module: Module, used: ast.expr) -> Iterator[tuple[ast.AST, str]]:
    """The method of the meter that is given the loss, if it is one of this file."""
    call = module.parent(used)
    method = called_here(module, call) if isinstance(call, ast.Call) else None
    if method is not None:
        yield method, "the loss is added up here"
