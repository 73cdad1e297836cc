from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule, Timeline
from tensortrail.rules.devices.shared.moves.dropped_on_purpose import is_provoked
from tensortrail.rules.devices.shared.moves.lost_names import WRAPPERS
from tensortrail.rules.shared.hook_events import hooks_telling
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.lines import place_told
from tensortrail.rules.shared.objects import called, receiver, resolved_name
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.shared.prepared import is_prepared
from tensortrail.rules.shared.sentences import one_line

_MAKE_ANOTHER = WRAPPERS | frozenset(
    "torch.jit.trace torch.jit.freeze torch.quantization.quantize_dynamic "
    "torch.ao.quantization.quantize_dynamic torch.fx.symbolic_trace".split()
)
_METHODS = ("merge_and_unload",)
OF_RESULT = "save what it returned: `model = model.merge_and_unload()`"
_SAVE = ("save_pretrained", "state_dict", "push_to_hub", "save_model", "save")
_ONE = "a new model, which is"


class WrappedModelDropped(Rule):
    """A function makes a compiled, wrapped or merged model, and its result is dropped.

    ## What it does
    Reports as a statement of its own

    - `torch.compile(model)`, `torch.jit.script(model)`, `torch.jit.trace(...)`,
      `torch.nn.DataParallel(model)`, `DistributedDataParallel(model)`, `quantize_dynamic(model)`;
    - `model.merge_and_unload()` of peft;
    - `accelerator.prepare(model, optimizer, loader)` of accelerate.

    In a recorded run, reports the save of a model of peft whose adapter was merged before.

    Not reported: a call that is expected to raise.

    ## Why is this bad?
    Nothing happens to `model` itself: it runs uncompiled or on one GPU, without an error. A model
    of peft is merged, but `model` is still the wrapper around it, and its checkpoints have the keys
    of the wrapper (a note). A loader that is not prepared gives the same batches to every process,
    on the CPU.

    ## Fix safety
    Unsafe, and only offered if the model has a plain name: the name then stands for the new model.

    ## References
    - huggingface/peft pull request 2871
    - google-research/timesfm issue 457
    """

    code = "DEV629"
    name = "wrapped-model-dropped"
    severity = Severity.WARNING
    proven = False
    triggers = ("compile(", "torch.jit", "jit.", "DataParallel(", "quantize_dynamic(",
                "symbolic_trace(", "merge_and_unload(", "prepare(")  # fmt: skip

    bad = (
        Bad(
            """\
import torch

def prepare(model):
    model.eval()
    torch.compile(model, mode="reduce-overhead")
    return model
""",
            lines=(5,),
            fixed="""\
import torch

def prepare(model):
    model.eval()
    model = torch.compile(model, mode="reduce-overhead")
    return model
""",
        ),
        Bad(
            """\
import torch
from peft import PeftModel

def merged(base, folder):
    model = PeftModel.from_pretrained(base, folder)
    model.merge_and_unload()
    model.save_pretrained("merged")
    torch.nn.DataParallel(base)
""",
            lines=(6, 8),
            fixed="""\
import torch
from peft import PeftModel

def merged(base, folder):
    model = PeftModel.from_pretrained(base, folder)
    model = model.merge_and_unload()
    model.save_pretrained("merged")
    base = torch.nn.DataParallel(base)
""",
        ),
        Bad(
            """\
from accelerate import Accelerator
from torch.utils.data import DataLoader

def train(net, optimizer, data):
    accelerator = Accelerator()
    loader = DataLoader(data, batch_size=4)
    accelerator.prepare(net, optimizer, loader)
    for batch in loader:
        accelerator.backward(net(batch).mean())
        optimizer.step()
""",
            lines=(7,),
            fixed="""\
from accelerate import Accelerator
from torch.utils.data import DataLoader

def train(net, optimizer, data):
    accelerator = Accelerator()
    loader = DataLoader(data, batch_size=4)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    for batch in loader:
        accelerator.backward(net(batch).mean())
        optimizer.step()
""",
        ),
    )
    good = (
        Good(
            """\
import pytest
import torch

def prepare(model, x):
    torch.compile(model)(x)
    model.compile()
    fast = torch.compile(model)
    with pytest.raises(RuntimeError):
        torch.jit.script(model)
    return fast

def can_be_scripted(model):
    try:
        torch.jit.script(model)
    except RuntimeError:
        return False
    return True

def base(model):
    merged = model.merge_and_unload()
    return merged
"""
        ),
        Good(
            """\
from accelerate import Accelerator
from torch.utils.data import DataLoader

def train(net, optimizer, data, pipeline):
    accelerator = Accelerator()
    loader = DataLoader(data, batch_size=4)
    net, optimizer, loader = accelerator.prepare(net, optimizer, loader)
    accelerator.prepare(net)
    pipeline.prepare(net, loader)
    return net, optimizer, loader
"""
        ),
    )

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for event in hooks_telling(timeline, "merged away"):
            at = place_told(event.facts["merged away"])
            yield self.finding_in_run(
                timeline,
                event,
                f"the call saves an adapter without weights: `merge_and_unload()`{at} merged them "
                "into the model that it returned, but this is the old wrapper",
                fixes=[Fix(OF_RESULT, Safety.DISPLAY, ())],
            )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for statement in module.nodes(ast.Expr):
            call = statement.value
            if not isinstance(call, ast.Call) or is_provoked(module, statement):
                continue
            model = _wrapped(module, call)
            if model is not None:
                is_merged = called(call) in _METHODS
                quiet = Severity.WARNING if _is_saved(module, call, model) else Severity.NOTE
                after = "is still the wrapper around it" if is_merged else "stays as it is"
                gives = "new objects, which are" if _is_prepared(module, call) else _ONE
                yield self.finding(
                    module,
                    call,
                    f"`{one_line(module, call.func)}` returns {gives} not used: "
                    f"`{one_line(module, model)}` {after}",
                    severity=quiet if is_merged else None,
                    fixes=[_kept(module, call, model)],
                )


def _wrapped(module: Module, call: ast.Call) -> ast.expr | None:
    """The model, if the call does nothing to it."""
    if called(call) in _METHODS:
        return receiver(call)
    if _is_prepared(module, call):
        return next((each for each in call.args if _is_spared(module, each)), None)
    named = isinstance(call.func, (ast.Name, ast.Attribute))
    if not named or module.qualified(call.func) not in _MAKE_ANOTHER or not call.args:
        return None
    inplace = any(each.arg == "inplace" for each in call.keywords)
    return None if inplace else call.args[0]


def _is_saved(module: Module, merged: ast.Call, model: ast.expr) -> bool:
    """What is written of it has the keys of the wrapper. To compute with, it is as good."""
    name = module.text(model)
    return any(
        called(each) in _SAVE
        and name in (module.text(each.func.value), *map(module.text, each.args))
        for each in module.later(merged, ast.Call)
        if isinstance(each.func, ast.Attribute)
    )


def _is_prepared(module: Module, call: ast.Call) -> bool:
    return is_prepared(module, call) and bool(call.args) and not call.keywords


def _is_spared(module: Module, given: ast.expr) -> bool:
    """A loader, which `prepare` leaves as it is: a model is moved in place."""
    made = behind(module, given)
    return isinstance(made, ast.Call) and resolved_name(module, made) == "DataLoader"


def _kept(module: Module, call: ast.Call, model: ast.expr) -> Fix | None:
    if _is_prepared(module, call):
        names = [each.id for each in call.args if isinstance(each, ast.Name)]
        if len(names) != len(call.args):
            return None
        edit = module.insert_before(call, f"{', '.join(names)} = ")
        return module.fix("keep the results", Safety.UNSAFE, edit)
    if not isinstance(model, ast.Name):
        return None
    edit = module.insert_before(call, f"{model.id} = ")
    return module.fix("keep the result", Safety.UNSAFE, edit)
