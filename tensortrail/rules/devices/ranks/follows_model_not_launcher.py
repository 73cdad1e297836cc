from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.named.devices_said import devices_said
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_MODELS = re.compile(r"(?!unwrapped)(\w+_)?(model|transformer)")
_LAUNCHERS = frozenset({"accelerator", "fabric"})


class FollowsModelNotLauncher(Rule):
    """Inputs are moved to the device of a model, although the device of the launcher is at hand.

    ## What it does
    Reports, as a note, `x.to(self.model.device)` and the like in code run by Accelerate or Fabric:
    the class uses `self.accelerator` or `self.fabric`, or the function is given one.

    Not reported: a model that is put on the device of another model.

    ## Why is this bad?
    Inputs go to the CPU or to another GPU, and the model's first operation raises. A model reports
    the device of its first weight: with FSDP and offloading the CPU between steps, with a device
    map one of several GPUs. A wrapper such as DDP has no `device`. The launcher knows where the
    process computes.

    ## Fix safety
    Unsafe: inputs go to another device than before.

    ## References
    - modelscope/ms-swift pull request 9844
    - Lightning-AI/litgpt pull request 383
    """

    code = "DEV574"
    name = "follows-model-not-launcher"
    severity = Severity.NOTE
    triggers = (
        ("accelerator", "model.device"),
        ("accelerator", "transformer.device"),
        ("fabric", "model.device"),
        ("fabric", "transformer.device"),
    )
    bad = (
        Bad(
            """\
class Trainer:
    def prepare(self, batch):
        return {key: value.to(self.accelerator.device) for key, value in batch.items()}

    def teach(self, batch):
        ids = batch["ids"].to(self.model.device)
        return self.model(ids)
""",
            lines=(6,),
            fixed="""\
class Trainer:
    def prepare(self, batch):
        return {key: value.to(self.accelerator.device) for key, value in batch.items()}

    def teach(self, batch):
        ids = batch["ids"].to(self.accelerator.device)
        return self.model(ids)
""",
        ),
        Bad(
            """\
import torch

def validate(fabric, model, tokenizer):
    encoded = tokenizer.encode("once upon a time", device=model.device)
    return model(encoded)
""",
            lines=(4,),
            fixed="""\
import torch

def validate(fabric, model, tokenizer):
    encoded = tokenizer.encode("once upon a time", device=fabric.device)
    return model(encoded)
""",
        ),
    )
    good = (
        Good(
            """\
class Trainer:
    def prepare(self, batch):
        return batch.to(self.accelerator.device)

    def reload(self):
        self.ref_model = self.ref_model.to(self.model.device)
"""
        ),
        Good(
            """\
import torch

def answer(model, ids):
    return model(ids.to(model.device))

def mask(fabric, n):
    return torch.ones(n, device=fabric.device)
"""
        ),
        Good(
            """\
class Trainer:
    def teach(self, batch):
        return self.model(batch["ids"].to(self.model.device))
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            yield from self._of(module, function)

    def _of(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        launcher: str | None = None
        for call, said in devices_said(module, function):
            if module.function_of(call) is not function or not _is_of_a_model(module, said):
                continue
            moved = call.func.value if isinstance(call.func, ast.Attribute) else call
            if _MODELS.fullmatch(module.text(moved).rpartition(".")[2]):
                continue  # one model beside another
            launcher = _launcher(module, function) if launcher is None else launcher
            if launcher:
                edit = module.replace(said, launcher)
                yield self.finding(
                    module,
                    said,
                    f"`{one_line(module, said)}` is the device of the first weight: while weights "
                    f"are offloaded, it differs from `{launcher}`",
                    fixes=[module.fix(f"use `{launcher}`", Safety.UNSAFE, edit)],
                )


def _is_of_a_model(module: Module, said: ast.expr) -> bool:
    if not isinstance(said, ast.Attribute) or said.attr != "device":
        return False
    return bool(_MODELS.fullmatch(module.text(said.value).rpartition(".")[2]))


def _launcher(module: Module, function: FunctionNode) -> str:
    cls = module.class_of(function)
    own = module.once(_launcher_of_class, cls) if cls is not None else ""
    given = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
    named = next(iter(sorted(given & _LAUNCHERS)), "")
    return own or (f"{named}.device" if named else "")


def _launcher_of_class(module: Module, cls: ast.ClassDef) -> str:
    """The class asks its launcher for something."""
    for each in module.nodes(ast.Attribute, cls):
        text = module.text(each.value)
        if text in ("self.accelerator", "self.fabric"):
            return f"{text}.device"
    return ""
