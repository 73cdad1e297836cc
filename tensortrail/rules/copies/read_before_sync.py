from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Setting, Severity
from tensortrail.rules import Bad, Did, Event, Good, Module, Rule, Timeline
from tensortrail.rules.copies._host_lists import early_reads_of_elements
from tensortrail.rules.copies._host_reads import (
    early_reads,
    early_reads_of_pinned,
    kept_keys,
    lookups,
    read_in,
    unfinished,
    waits_in,
)
from tensortrail.rules.shared.calls import carrier, gives
from tensortrail.rules.shared.lines import by_line, doer
from tensortrail.rules.shared.operands import called_there
from tensortrail.rules.shared.sizes import size

_COPIES = (Did.MOVE, Did.COPY)


class ReadBeforeSync(Rule):
    """A copy from a GPU is read on the host before it is finished.

    ## What it does
    Follows copies to pinned host memory with `non_blocking=True`, and reports a read on the CPU
    before any stream, event or device was waited for.

    In code: reads of the result of `.to("cpu", non_blocking=True)`, of elements of a list or dict
    that it was put into, and of pinned memory after `copy_(x, non_blocking=True)`.

    In rehearsed runs (`tensortrail trace --rehearse`): the copy is always finished there, and the
    race is still detected.

    ## Why is this bad?
    The host reads zeros, or values of an earlier step, and no error is raised: usually the copy is
    finished in time, under load it is not. `x.to("cpu", non_blocking=True)` gives pinned memory and
    races as well. The other direction is safe: kernels wait for the copies before them on their
    stream.

    ## Fix safety
    No fix is offered: wait after the work that the copy was to overlap with. Where there is none,
    leave out `non_blocking=True`.

    ## References
    - pytorch/pytorch tutorial on `pin_memory` and `non_blocking`
    """

    code = "XFR601"
    name = "read-before-sync"
    since = "0.2.0"
    severity = Severity.ERROR
    errors_as = Severity.WARNING

    triggers = ("non_blocking",)

    bad = (
        Bad(
            """\
import torch

def best(logits):
    chosen = logits.argmax(-1).to("cpu", non_blocking=True)
    return chosen.tolist()
""",
            lines=(5,),
            instead="""\
import torch

def best(logits):
    chosen = logits.argmax(-1).to("cpu", non_blocking=True)
    torch.cuda.current_stream().synchronize()
    return chosen.tolist()
""",
        ),
        Bad(
            """\
import torch

class Log:
    def add(self, scores):
        kept = scores.detach().to("cpu", torch.float32, non_blocking=True)
        self.rows.append(self._row(kept))

    def _row(self, values):
        return {"values": values}

    def write(self, out):
        for row in self.rows:
            values = row.pop("values")
            out.write(values.tolist())
""",
            lines=(14,),
        ),
        Bad(
            """\
import torch

def norms(model):
    kept = []
    for weight in model.parameters():
        kept.append(weight.grad.norm().to("cpu", non_blocking=True))
    return [each.item() for each in kept]
""",
            lines=(7,),
            instead="""\
import torch

def norms(model):
    kept = []
    for weight in model.parameters():
        kept.append(weight.grad.norm().to("cpu", non_blocking=True))
    torch.cuda.current_stream().synchronize()
    return [each.item() for each in kept]
""",
        ),
        Bad(
            """\
import torch

def fingerprints(state):
    host = {name: value.to("cpu", non_blocking=True) for name, value in state.items()}
    for name, value in host.items():
        print(name, value.sum())
""",
            lines=(6,),
        ),
        Bad(
            """\
import torch

def total(values):
    host = torch.empty(values.shape, pin_memory=True)
    host.copy_(values, non_blocking=True)
    return host.numpy().sum()
""",
            lines=(6,),
            instead="""\
import torch

def total(values):
    host = torch.empty(values.shape, pin_memory=True)
    host.copy_(values, non_blocking=True)
    torch.cuda.synchronize()
    return host.numpy().sum()
""",
        ),
        Bad(
            """\
import torch

def sent_to(counts):
    return counts.sum(dim=1).to(torch.device("cpu"), non_blocking=True).numpy()
""",
            lines=(4,),
            instead="""\
import torch

def sent_to(counts):
    return counts.sum(dim=1).to(torch.device("cpu")).numpy()
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def total(values):
    host = torch.empty(values.shape)
    host.copy_(values, non_blocking=True)
    return host.numpy().sum()
"""
        ),
        Good(
            """\
import torch

def sizes(steps, model):
    kept = {}
    for name, batch in steps:
        kept[name] = model(batch.cuda()).norm().to("cpu", non_blocking=True)
        torch.cuda.synchronize()
    return {name: each.item() for name, each in kept.items()}
"""
        ),
        Good(
            """\
import torch

def norms(model):
    kept = []
    for weight in model.parameters():
        kept.append(weight.grad.norm().to("cpu", non_blocking=True))
    torch.cuda.synchronize()
    return [each.item() for each in kept]
"""
        ),
        Good(
            """\
import torch

def shapes(model):
    kept = [weight.detach().to("cpu", non_blocking=True) for weight in model.parameters()]
    return [each.shape for each in kept], len(kept)
"""
        ),
        Good(
            """\
import torch

def counts(sent, received):
    sent = sent.to("cpu", non_blocking=True)
    received = received.to("cpu")
    return sent.tolist(), received.tolist()
"""
        ),
        Good(
            """\
import torch

def there_and_back(x):
    kept = x.to("cpu", non_blocking=True)
    return kept.to("cuda", non_blocking=True), kept.shape
"""
        ),
        Good(
            """\
import torch

def upload(rows):
    rows = rows.to("cuda", non_blocking=True)
    return rows.sum().item()
"""
        ),
        Good(
            """\
import torch

def collect(buff):
    buff["dones"] = buff["dones"].cuda().to("cpu", non_blocking=True)
    return buff["valids"].sum().item()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for copy in module.calls("to"):
            if unfinished(module, copy) is not None:
                for read in early_reads(module, copy):
                    yield self._early(module, copy, read)
                for read in early_reads_of_elements(module, copy):
                    yield self._early(module, copy, read)
        for copy in module.calls("copy_"):
            for read in early_reads_of_pinned(module, copy):
                yield self._early(module, copy, read)
        for cls in module.nodes(ast.ClassDef):
            yield from self._kept(module, cls)

    def _kept(self, module: Module, cls: ast.ClassDef) -> Iterator[Finding]:
        """Copies that one method puts into a dict, and another one reads."""
        keys = kept_keys(module, cls)
        for key, found in lookups(module, cls) if keys else ():
            copy, function = keys.get(key), module.function_of(found)
            if copy is None or function is None or waits_in(module, function, copy):
                continue
            read = _read_of(module, found)
            if read is not None:
                yield self._early(module, copy, read)

    def _early(self, module: Module, copy: ast.Call, read: ast.expr) -> Finding:
        return self.finding(
            module,
            read,
            f"`{module.text(read)}` reads a copy that line {copy.lineno} only started "
            "(`non_blocking=True`): nothing waits for it, and the CPU may read the old contents",
            trail=[(copy, "started here")],
        )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        reads = (each for each in timeline.events(Did.EARLY) if "writes" not in each.facts)
        for events in by_line(reads):
            event = events[0]
            storage = event.storage
            many = f" ({size(storage.nbytes)})" if storage else ""
            copies = _copies(timeline, event)
            copied = f", made by {doer(copies[-1])}," if copies else ""
            source = event.facts.get("device", "the device")
            yield self.finding_in_run(
                timeline,
                event,
                f"{called_there(timeline, event)}{many} is read by {event.op} before its copy from "
                f"{source}{copied} is finished: on a GPU, the host may still read the old contents",
                confidence=Confidence.HIGH,
                settings=_waited_for(timeline, event),
                evidence={"reads": str(len(events))},
            )


def _read_of(module: Module, found: ast.expr) -> ast.expr | None:
    """Where a looked-up value is read: at once, or through a variable."""
    direct = read_in(module, found)
    assign = module.parent(found)
    if direct is not None or not isinstance(assign, ast.Assign):
        return direct
    target = assign.targets[0]
    for use in module.later(assign, ast.Name):
        if isinstance(target, ast.Name) and use.id == target.id:
            return read_in(module, use)
    return None


def _copies(timeline: Timeline, read: Event) -> list[Event]:
    history = timeline.history(read.storage, read) if read.storage else ()
    return [each for each in history if each.storage == read.storage and each.did in _COPIES]


def _waited_for(timeline: Timeline, read: Event) -> Iterator[Setting]:
    """The copy that is read, as one that is waited for."""
    copies = _copies(timeline, read)
    if not copies or copies[-1].by is not None:
        return
    function = copies[-1].op.rpartition(".")[2]
    at = carrier(timeline, copies[-1].site, function)
    if at is not None and gives(at, "non_blocking"):
        device = read.facts.get("device", "the device")
        yield Setting(
            library="torch",
            name="non_blocking",
            value="False",
            why=f"waits until the copy from {device} is done, before the host goes on and reads it",
            where=f"Tensor.{function}",
            call=function,
            at=at,
        )
