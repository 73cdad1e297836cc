from __future__ import annotations

import os
import re
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Did, Event, Good, Module, Rule, Timeline
from tensortrail.rules.shards._objects_kept import numpy_kept, saved_whole
from tensortrail.rules.shared.failures import was_handled
from tensortrail.rules.shared.lines import where
from tensortrail.rules.shared.saved_files import saves_before
from tensortrail.rules.shared.told_loads import load_told

_NAMED = re.compile(r"Unsupported (?:global: GLOBAL|class) ([\w.]+)")


class ObjectInCheckpoint(Rule):
    """A checkpoint holds an object of a class, which `torch.load` refuses by default.

    ## What it does
    In code, reports a number or an array of NumPy in the dict that `torch.save` writes, and a whole
    module or object (`torch.save(model, path)`), if the same file loads this checkpoint without
    `weights_only=False`.

    In a recorded run, reports a `torch.load` that refused a file because of a class in it: a whole
    module, an `argparse.Namespace`, a NumPy number. The finding names the line that saved it, if
    the run saw it.

    Not reported: a refusal that the program catches before it goes on.

    ## Why is this bad?
    The program ends. A file that only its own classes can read is also lost when they are renamed
    or moved, and reading it runs code.

    ## What you may see
    ```
    _pickle.UnpicklingError: Weights only load failed. ... Unsupported global: GLOBAL __main__.Net
    was not an allowed global by default.
    ```

    ## Fix safety
    Unsafe: `weights_only=False` runs what the file says. It is offered only for files that the same
    run has written.

    ## References
    - pytorch documentation "Serialization semantics", `torch.load` with `weights_only=True`
    """

    code = "SHD447"
    name = "object-in-checkpoint"
    severity = Severity.ERROR
    warns = False
    triggers = (("torch", "save(", "load("),)

    bad = (
        Bad(
            """\
import numpy as np
import torch

def fit(model, losses):
    lowest = np.mean(losses)
    torch.save({"model": model.state_dict(), "loss": lowest}, "best.pt")
    model.load_state_dict(torch.load("best.pt")["model"])
""",
            lines=(6,),
            instead="""\
import numpy as np
import torch

def fit(model, losses):
    lowest = float(np.mean(losses))
    torch.save({"model": model.state_dict(), "loss": lowest}, "best.pt")
    model.load_state_dict(torch.load("best.pt")["model"])
""",
        ),
        Bad(
            """\
import torch

class Network(torch.nn.Module):
    def save(self, name):
        torch.save(self, open(name, "wb"))

def loaded(name):
    network = torch.load(open(name, "rb"), map_location="cpu")
    return network.eval()

def fit(steps):
    net = torch.nn.Linear(3, 4)
    torch.save(net, "net.pt")
    return torch.load("net.pt")
""",
            lines=(8, 14),
            instead="""\
import torch

class Network(torch.nn.Module):
    def save(self, name):
        torch.save(self.state_dict(), open(name, "wb"))

def loaded(name):
    network = Network()
    network.load_state_dict(torch.load(open(name, "rb"), map_location="cpu"))
    return network.eval()

def fit(steps):
    net = torch.nn.Linear(3, 4)
    torch.save(net, "net.pt")
    return torch.load("net.pt", weights_only=False)
""",
        ),
    )
    good = (
        Good(
            """\
import dill
import torch

class Run:
    def save(self, name):
        torch.save(self, name, pickle_module=dill)

def loaded(name):
    return torch.load(name, pickle_module=dill)

def fit(net: torch.nn.Module):
    torch.save(net, "net.pt")
    return torch.load("net.pt", weights_only=False)
"""
        ),
        Good(
            """\
import numpy as np
import torch

def fit(model, losses):
    lowest = float(np.mean(losses))
    torch.save({"model": model.state_dict(), "loss": lowest}, "best.pt")
    model.load_state_dict(torch.load("best.pt")["model"])

def other(model, losses):
    torch.save({"model": model.state_dict(), "losses": np.array(losses)}, "all.pt")
    return torch.load("all.pt", weights_only=False)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for save in module.calls("torch.save"):
            kept = numpy_kept(module, save)
            if kept is not None:
                yield self.finding(
                    module,
                    save,
                    f"`{kept.key}` is an object of NumPy, and `torch.load` in line "
                    f"{kept.load.lineno} reads tensors and plain values only: it refuses the file",
                    severity=Severity.WARNING,
                    trail=[(kept.made, "made by NumPy"), (kept.load, "refused here")],
                )
            whole = saved_whole(module, save)
            if whole is not None:
                yield self.finding(
                    module,
                    whole.load,
                    f"line {save.lineno} saves `{whole.what}` as an object, and `torch.load` reads "
                    "tensors and plain values only: since 2.6 it refuses the file",
                    severity=Severity.WARNING,
                    trail=[(save, "saved whole"), (whole.load, "refused here")],
                )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in timeline.events(Did.HOOK):
            named = _NAMED.search(str(event.facts.get("no plain file", "")))
            if named and not was_handled(timeline, event):
                yield self._found(timeline, event, named[1])

    def _found(self, timeline: Timeline, event: Event, refused: str) -> Finding:
        saved = _saved(timeline, event)
        file = os.path.basename(str(event.facts.get("path"))) or "the file"
        held = _held(saved, refused)
        under = f" under `{held[1]!r}`" if held and held[1] else ""
        kind = held[0] if held else refused
        return self.finding_in_run(
            timeline,
            event,
            f"{file}{_by(saved)} holds an object of `{kind}`{under}, and `{event.op}` reads "
            "tensors and plain values only",
            fixes=[_fix(timeline, event, kind, saved)],
        )


def _by(saved: Event | None) -> str:
    return f", saved{where(saved)}," if saved is not None else ""


def _saved(timeline: Timeline, event: Event) -> Event | None:
    """The save of this file that came last, as a whole."""
    saves = saves_before(timeline, event) if event.facts.get("path") else ()
    return next((each for each in saves if "objects" in each.facts), None)


def _held(saved: Event | None, refused: str) -> tuple[str, str] | None:
    """The class that was saved, and its key. What is refused may be a helper of its package."""
    objects: dict[str, str] = saved.facts["objects"] if saved is not None else {}
    if refused in objects:
        return refused, objects[refused]
    package = refused.partition(".")[0]
    alike = [each for each in objects.items() if each[0].startswith(f"{package}.")]
    return alike[0] if len(alike) == 1 else None


def _fix(timeline: Timeline, event: Event, kind: str, saved: Event | None) -> Fix:
    plainly = _plainly(kind)
    edit = load_told(timeline, event.site, "weights_only", "False") if saved is not None else None
    anyway = f"read what this program wrote itself with `weights_only=False`, or, better, {plainly}"
    mended = timeline.fix(anyway, Safety.UNSAFE, edit) if edit is not None else None
    return mended or Fix(plainly, Safety.DISPLAY, ())


def _plainly(kind: str) -> str:
    if kind == "argparse.Namespace":
        return "save `vars(...)` of the options: a plain dict"
    if kind.startswith("numpy."):
        return "save a plain number, `.item()`, or a tensor, `torch.from_numpy(...)`"
    return (
        "save plain values: of a module its `state_dict()`, which is loaded into a new one; of "
        "other objects their fields"
    )
