from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import partial

from tensortrail.findings import Finding, Severity, Site
from tensortrail.rules import Bad, Did, Event, Good, Module, Rule, Timeline
from tensortrail.rules.shards._loaded_again import (
    Load,
    is_read_without_prefix,
    is_resumed,
    loads,
    loads_by_helper,
)
from tensortrail.rules.shards._loaded_without_prefix import Bare, loaded_without_prefix
from tensortrail.rules.shards._prefixed_keys import (
    Prefix,
    cut_behind,
    fits_at_load,
    prefix_of,
    refused,
)
from tensortrail.rules.shards._prefixed_saves import (
    how_it_was_saved,
    save_with_prefix,
    saved_from_inside,
    saved_of_the_module,
)
from tensortrail.rules.shards._wrapped import (
    PREFIXES,
    prefix_by,
    renames_keys,
    wrapped_by,
    writer_of,
)
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, given, is_false, receiver
from tensortrail.rules.shared.prepared import is_prepared

LOAD = "Module.load_state_dict"


class WrapperPrefix(Rule):
    """The keys of a state dict carry a wrapper's prefix and do not fit the module inside.

    ## What it does
    In a recorded run, reports:

    - a `load_state_dict` that failed because every key begins with the name under which a wrapper
      or another module holds the model (`_orig_mod.` of `torch.compile`, `module.` of data
      parallelism);
    - the same failure in reverse: keys without the prefix, loaded into a wrapper;
    - a load with `strict=False` that left the weights as they were for that reason;
    - a `KeyError` for a key that is present with such a prefix.

    In code, reports a wrapper's state dict that is given to `torch.save` or `save_file`, directly,
    in a dict or variable, or by a function of the project, if nothing renames the keys. The wrapper
    was made by `torch.compile`, `DataParallel` or `DistributedDataParallel` in the same function,
    is kept in an attribute, or was returned by accelerate's `prepare`, which wraps in a run of
    several processes.

    In code, reports too a load into such a wrapper if the prefix was cut off the names before, or
    if the file is written with the state dict of the module inside.

    Reported as a note: such a save, unless a load of that file into an unwrapped model is seen.
    Other readers may remove the prefix. By default the note is of `torch.compile` alone.

    ## Why is this bad?
    `load_state_dict` raises. With `strict=False` it succeeds and leaves all weights as they were.
    Only a module that is wrapped in the same way can load the checkpoint.

    ## What you may see
    ```
    Missing key(s) in state_dict: "0.weight". Unexpected key(s): "_orig_mod.0.weight"
    ```

    ## Fix safety
    Unsafe: checkpoints that were written before keep the old keys.

    ## References
    - pytorch/pytorch documentation of `torch.compile` and `torch.nn.Module.compile`
    """

    code = "SHD409"
    name = "wrapper-prefix"
    since = "0.2.0"
    severity = Severity.ERROR
    warns = False
    notes = False
    triggers = (("torch", "compile"), ("torch", "DataParallel"), ("Accelerator", "prepare"))

    bad = (
        Bad(
            """\
import torch

def train(model, path):
    model = torch.compile(model)
    model.fit()
    torch.save(model.state_dict(), path)
""",
            lines=(6,),
            fixed="""\
import torch

def train(model, path):
    model = torch.compile(model)
    model.fit()
    torch.save(model._orig_mod.state_dict(), path)
""",
        ),
        Bad(
            """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def train(model, path):
    wrapped = DDP(model)
    weights = wrapped.state_dict()
    torch.save({"model": weights}, path)
""",
            lines=(6,),
            fixed="""\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def train(model, path):
    wrapped = DDP(model)
    weights = wrapped.module.state_dict()
    torch.save({"model": weights}, path)
""",
        ),
        Bad(
            """\
import torch
from tasks import build

model = torch.compile(build()).to("cuda")
model.fit()
torch.save({"model": model.state_dict(), "step": 3}, "model.pt")
""",
            lines=(6,),
            fixed="""\
import torch
from tasks import build

model = torch.compile(build()).to("cuda")
model.fit()
torch.save({"model": model._orig_mod.state_dict(), "step": 3}, "model.pt")
""",
        ),
        Bad(
            """\
import torch

class Trainer:
    def __init__(self, net):
        self.model = torch.compile(net)

    def save(self, path):
        state = {"model": self.model.state_dict(), "epoch": 3}
        torch.save(state, path)
""",
            lines=(8,),
            fixed="""\
import torch

class Trainer:
    def __init__(self, net):
        self.model = torch.compile(net)

    def save(self, path):
        state = {"model": self.model._orig_mod.state_dict(), "epoch": 3}
        torch.save(state, path)
""",
        ),
        Bad(
            """\
from torch.nn.parallel import DistributedDataParallel

from files import save_checkpoint

def train(net, optimizer, rank):
    model = DistributedDataParallel(net, device_ids=[rank])
    save_checkpoint(model, optimizer, "last.pt")
""",
            lines=(7,),
            files={
                "files.py": """\
import torch

def save_checkpoint(model, optimizer, path):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
"""
            },
            fixed="""\
from torch.nn.parallel import DistributedDataParallel

from files import save_checkpoint

def train(net, optimizer, rank):
    model = DistributedDataParallel(net, device_ids=[rank])
    save_checkpoint(model.module, optimizer, "last.pt")
""",
        ),
        Bad(
            """\
import torch

def resume(net, path):
    model = torch.nn.DataParallel(net)
    state = torch.load(path, map_location="cpu", weights_only=True)
    state = {name.replace("module.", ""): value for name, value in state.items()}
    model.load_state_dict(state, strict=False)
    return model
""",
            lines=(7,),
        ),
    )
    good = (
        Good(
            """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP

def train(model, path):
    wrapped = DDP(model)
    torch.save(wrapped.module.state_dict(), path)
"""
        ),
        Good(
            """\
from torch.nn.parallel import DistributedDataParallel

from files import save_checkpoint

def train(net, optimizer, rank):
    model = DistributedDataParallel(net, device_ids=[rank])
    save_checkpoint(model, optimizer, "last.pt")
""",
            files={
                "files.py": """\
import torch

def save_checkpoint(model, optimizer, path):
    inner = model.module if hasattr(model, "module") else model
    torch.save({"model": inner.state_dict(), "optimizer": optimizer.state_dict()}, path)
"""
            },
        ),
        Good(
            """\
import torch

def train(model, path):
    model = torch.compile(model)
    weights = {k.replace("_orig_mod.", ""): v for k, v in model.state_dict().items()}
    torch.save(weights, path)
"""
        ),
        Good(
            """\
import torch

def resume(net, path):
    model = torch.nn.DataParallel(net)
    state = torch.load(path, map_location="cpu", weights_only=True)
    state = {name.replace("module.", ""): value for name, value in state.items()}
    model.module.load_state_dict(state)
    return model
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.calls("state_dict"):
            owner = receiver(call)
            made = wrapped_by(module, owner) if owner is not None else None
            writer = writer_of(module, call)
            if made is None or owner is None or writer is None or renames_keys(module, call):
                continue
            prefix = prefix_by(module, made)
            again = list(loads(module, writer, call, prefix))
            cut = is_read_without_prefix(module, writer, prefix)
            yield self._written(module, call, owner, made, again, cut)
        if next(module.calls(*PREFIXES, "prepare"), None) is not None:
            yield from self._by_helpers(module)
            yield from map(partial(self._bare, module), loaded_without_prefix(module))

    def _bare(self, module: Module, found: Bare) -> Finding:
        model, strict = module.text(found.model), module.argument(found.load, 1, "strict")
        effect = "no weight is loaded, and no error is raised" if is_false(strict) else "this fails"
        return self.finding(
            module,
            found.load,
            f"all names of `{model}` begin with `{found.prefix}`, and none of the state dict does, "
            f"as {found.why}: {effect}",
            severity=Severity.WARNING,
            trail=[(found.by, "names without the prefix"), (found.load, "loaded into the wrapper")],
            told=True,
        )

    def _by_helpers(self, module: Module) -> Iterator[Finding]:
        """`save_checkpoint(model, path)`, a function of the project that writes its state dict."""
        for call in module.nodes(ast.Call):
            wrapped = [each for each in given(call) if wrapped_by(module, each) is not None]
            written = module.states_written(call) if wrapped else ()
            for owner in wrapped:
                made = wrapped_by(module, owner)
                if owner in written and made is not None and not renames_keys(module, call):
                    prefix = prefix_by(module, made)
                    again = list(loads_by_helper(module, prefix))
                    yield self._written(module, call, owner, made, again)

    def _written(
        self,
        module: Module,
        call: ast.Call,
        owner: ast.expr,
        made: ast.Call,
        again: Sequence[Load],
        is_cut: bool = False,
    ) -> Finding:
        prefix = prefix_by(module, made)
        odd = next((each.call for each in again if not each.fits), None)
        fits = odd is None and (bool(again) or is_resumed(module, owner, prefix))
        fits = fits or is_cut or (odd is None and is_prepared(module, made))  # of one process
        which = "this state dict" if called(call) == "state_dict" else "what is written here"
        where = "in a run of several processes, " if is_prepared(module, made) else ""
        return self.finding(
            module,
            call,
            f"{where}every key of {which} begins with `{prefix}`: a model that is not "
            "wrapped the same way finds none of its weights",
            severity=Severity.NOTE if fits or odd is None else Severity.WARNING,
            trail=[(made, "wrapped here"), (odd, "loaded here into a model without this wrapper")],
            fixes=[] if fits else [saved_from_inside(module, owner, prefix)],
            told=not fits and prefix == PREFIXES["torch.compile"],
        )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in timeline.events(Did.ERROR):
            if event.op == LOAD and (prefix := refused(str(event.facts.get("message", "")))):
                yield self._found(timeline, event, prefix)
        for event in timeline.events(Did.HOOK):
            left, unused = event.facts.get("left"), event.facts.get("unused")
            if event.op == LOAD and left and unused and (prefix := prefix_of(left, unused)):
                weights = f"{event.facts.get('count')} weights stay as they were, and "
                hidden = f"{weights}`strict=False` hides it: "
                yield self._found(timeline, event, prefix, hidden)
            if "lacks key" in event.facts:
                yield self._lacking(timeline, event)

    def _found(self, timeline: Timeline, event: Event, prefix: Prefix, effect: str = "") -> Finding:
        saved = save_with_prefix(timeline, event, prefix.name) if prefix.is_given else None
        fix = saved_of_the_module(timeline, saved, prefix.name) if saved else None
        by = how_it_was_saved(saved, fix)
        whose = "the keys" if prefix.is_given else "the model's keys"
        kind = "a wrapper" if prefix.wrappers else "the outer module"
        inner = "the state dict is that of the module inside"
        why = by or (f"the state dict is that of {kind}" if prefix.is_given else inner)
        return self.finding_in_run(
            timeline,
            event,
            f"{effect}{whose} begin with `{prefix.name}.`, {prefix.words}: {why}",
            about=saved.storage if saved else None,
            fixes=[fix or fits_at_load(timeline, event.site, prefix)],
        )

    def _lacking(self, timeline: Timeline, event: Event) -> Finding:
        """A key was asked for, and it is there with the prefix."""
        key, name = str(event.facts["lacks key"]), str(event.facts.get("of"))
        prefix = Prefix(str(event.facts.get("prefix")), True)
        saved, made = save_with_prefix(timeline, event, prefix.name), None
        match event.facts.get("made"):
            case [str(file), int(line)]:
                made = Site(file, line)
        fix = saved_of_the_module(timeline, saved, prefix.name) if saved else None
        by = f": {how_it_was_saved(saved, fix)}" if saved else ""
        return self.finding_in_run(
            timeline,
            event,
            f"`{name}` has `{prefix.name}.{key}` and no `{key}`: `{prefix.name}.` is "
            f"{prefix.words}{by}",
            fixes=[fix or cut_behind(timeline, made, name, prefix.name)],
        )
