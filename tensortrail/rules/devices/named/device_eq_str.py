from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Kind, Module, Rule
from tensortrail.rules.devices.shared.named.compared_names import (
    DISPLAYS,
    binds_lists,
    is_a_name,
    links,
    listed_names,
    may_say_a_device,
    names_in_pattern,
)
from tensortrail.rules.devices.shared.named.compared_sides import (
    asked_as_a_device_too,
    how_bad,
    is_told_a_device,
    only_decides_words,
    refuses_every_device,
)
from tensortrail.rules.devices.shared.named.device_values import (
    is_chain,
    is_device,
    source_of_device,
)
from tensortrail.rules.devices.shared.named.given_by_callers import is_given_a_device, is_given_text
from tensortrail.rules.shared.imports import imports_torch

_NAME = rb"[\"'](?:cpu|cuda|meta|mps|xpu|npu|hpu|xla|mlu|musa)\b"
_OR_TEXT = (Kind.DEVICE, Kind.DEVICE_STRING, Kind.OTHER)


class DeviceEqStr(Rule):
    """A `torch.device` is compared with a string, and the two are never equal.

    ## What it does
    Reports, of a value that is a `torch.device` or may be one (`torch.device | str`, or a parameter
    without a type that a call of the project gives one, or an attribute that keeps it):

    - `t.device == "cuda"`, `!=`, and `a.device == b.device == "cuda"`;
    - `t.device in ("cpu", "meta")`, for a list, tuple or set of strings only;
    - `match t.device:` with `case "cuda":`.

    Reported as a note: a branch that only logs, and a parameter for which all callers pass a text,
    although it is annotated as a device.

    Only reported if the rule is selected (`--select DEV501`), because the wrong branch does little
    harm: a branch that only moves a tensor (`if x.device != "cpu": x = x.cpu()`) or empties a
    cache, a choice of where to load a state dict, a comparison next to a flag that depends on the
    type of the device, and `!= "meta"` before code that also runs on meta.

    ## Why is this bad?
    The branch is never taken, or always: a model that should stay on meta is built on the GPU.

    ## Fix safety
    Unsafe: a branch that never ran now runs. If the value may be a string, the fix makes it a
    device first.

    ## References
    - NVIDIA/TransformerEngine pull request 2519
    - vllm-project/compressed-tensors pull request 384; huggingface/peft pull request 2218
    """

    code = "DEV501"
    name = "device-eq-str"
    since = "0.2.0"
    severity = Severity.ERROR
    warns = False
    errors_as = Severity.WARNING
    notes = False
    triggers = (("device", "=="), ("device", "!="), ("device", " in "), ("device", "case "))
    shape = (
        re.compile(rb"==[\s\\(]*" + _NAME),
        re.compile(rb"!=[\s\\(]*" + _NAME),
        re.compile(_NAME + rb"[\s\\)]*[=!]="),
        re.compile(rb"in[\s\\]*[\[({][\s\\]*" + _NAME),
        re.compile(rb"case[\s\\(]*" + _NAME),
        re.compile(rb"device[\w.()\[\]]*[\s\\]*(?:[=!]=|\bin\b)[\s\\]*[A-Z][A-Z0-9_]+\b"),
    )

    bad = (
        Bad(
            """\
import torch

def init(weight: torch.Tensor):
    if weight.device == "meta":
        return None
    return weight.device != "cpu"
""",
            lines=(4, 6),
            fixed="""\
import torch

def init(weight: torch.Tensor):
    if weight.device.type == "meta":
        return None
    return weight.device.type != "cpu"
""",
        ),
        Bad(
            """\
import torch
from typing import Union

class Linear:
    def __init__(self, device: Union[torch.device, str] = "cuda"):
        if device == "meta":
            self.defer = True
""",
            lines=(6,),
            fixed="""\
import torch
from typing import Union

class Linear:
    def __init__(self, device: Union[torch.device, str] = "cuda"):
        if torch.device(device).type == "meta":
            self.defer = True
""",
        ),
        Bad(
            """\
def place(module):
    device = next(module.parameters()).device
    return device == "cuda:0"
""",
            lines=(3,),
        ),
        Bad(
            """\
import torch

def place(x: torch.Tensor):
    where = x.device
    if where == "cuda":
        return x
    return x.cuda()
""",
            lines=(5,),
            fixed="""\
import torch

def place(x: torch.Tensor):
    where = x.device
    if where.type == "cuda":
        return x
    return x.cuda()
""",
        ),
        Bad(
            """\
def place(module):
    return module.weight.device in ("cpu", "meta")
""",
            lines=(2,),
            fixed="""\
def place(module):
    return module.weight.device.type in ("cpu", "meta")
""",
        ),
        Bad(
            """\
import torch

def checked(device):
    if device != "cuda" or (isinstance(device, torch.device) and device.index):
        raise ValueError(device)
""",
            lines=(4,),
            fixed="""\
import torch

def checked(device):
    if torch.device(device).type != "cuda" or (isinstance(device, torch.device) and device.index):
        raise ValueError(device)
""",
        ),
        Bad(
            """\
import torch

def fused(scores, labels):
    if scores.device == labels.device == "cuda":
        return scores.softmax(-1)
    raise ValueError("both have to be on a GPU")
""",
            lines=(4,),
        ),
        Bad(
            """\
import torch

def moved(model, device):
    return model.cuda() if device == "cuda" else model

def all_moved(models, device: str | torch.device = "cpu"):
    return [moved(each, device) for each in models]
""",
            lines=(4,),
            fixed="""\
import torch

def moved(model, device):
    return model.cuda() if torch.device(device).type == "cuda" else model

def all_moved(models, device: str | torch.device = "cpu"):
    return [moved(each, device) for each in models]
""",
        ),
        Bad(
            """\
import torch

class Sampler:
    def __init__(self, model, place):
        self.model, self.place = model, place

    def width(self):
        return 8 if self.place == "cuda" else 4

def started(model):
    return Sampler(model, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
""",
            lines=(8,),
            fixed="""\
import torch

class Sampler:
    def __init__(self, model, place):
        self.model, self.place = model, place

    def width(self):
        return 8 if torch.device(self.place).type == "cuda" else 4

def started(model):
    return Sampler(model, torch.device("cuda" if torch.cuda.is_available() else "cpu"))
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def moved(model, device):
    return model.cuda() if device == "cuda" else model

def all_moved(models, device: str = "cpu"):
    return [moved(each, device) for each in models]
"""
        ),
        Good("def f(a, b):\n    return a.device == b.device == a.weight.device\n"),
        Good("def f(device: str):\n    return device == 'cuda'\n"),
        Good("def f(t):\n    return t.device.type == 'cuda'\n"),
        Good("def f(args):\n    return args.device == 'cuda'\n"),
        Good("import torch\ndef f(t):\n    return t.device in (torch.device('cpu'), 'cpu')\n"),
        Good("def f(device='cpu'):\n    return device == 'cpu'\n"),
        Good("def f(t):\n    device = str(t.device)\n    return device == 'cuda:0'\n"),
        Good("def f(config):\n    device = config.get('device')\n    return device == 'cpu'\n"),
        Good(
            """\
import torch

def f(device: torch.device | str):
    if isinstance(device, torch.device):
        device = device.type
    return device == "cuda"
"""
        ),
        Good("def f(device):\n    return device == 'cuda'\n"),
        Good(
            """\
import torch

def f(device):
    return device == "cuda" or (isinstance(device, torch.device) and device.type == "cuda")
"""
        ),
        Good(
            """\
import torch

def f(device: torch.device | str):
    return device != "cpu" and device != torch.device("cpu")
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        by_name = binds_lists(module)
        for compare in module.nodes(ast.Compare):
            for left, comparison, right in links(module, compare):
                if not may_say_a_device(left):
                    continue
                if isinstance(comparison, (ast.Eq, ast.NotEq)):
                    if not may_say_a_device(right):
                        continue
                    if is_a_name(module, right):
                        yield from self._compared(module, compare, left, [right])
                    elif is_a_name(module, left):
                        yield from self._compared(module, compare, right, [left])
                elif isinstance(comparison, (ast.In, ast.NotIn)):
                    listed = by_name or isinstance(right, DISPLAYS)
                    names = listed_names(module, right) if listed else []
                    if names and all(is_a_name(module, each) for each in names):
                        yield from self._compared(module, compare, left, names)
        for choice in module.nodes(ast.Match):
            named = [
                each for case in choice.cases for each in names_in_pattern(module, case.pattern)
            ]
            if named:
                yield from self._compared(module, choice.subject, choice.subject, named)

    def _compared(
        self, module: Module, node: ast.expr, device: ast.expr, names: list[ast.expr]
    ) -> Iterator[Finding]:
        value = module.value_of(device)
        certain = is_device(module, device)
        either = not certain and value.is_only(*_OR_TEXT) and is_told_a_device(module, value)
        either = either or refuses_every_device(module, node, device)
        by_callers = not (certain or either) and is_given_a_device(module, device)
        if not (certain or either or by_callers) or asked_as_a_device_too(module, node, device):
            return
        if is_given_text(module, device):
            if not module.is_for_users(device):
                return
            certain, by_callers = False, True  # as the annotation asks for one
        shown = module.text(device)
        negated = isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.NotEq, ast.NotIn))
        always = "always true" if negated else "always false"
        if certain:
            message = f"`{shown}` is a torch.device: comparing it with a string is {always}"
        else:
            message = (
                f"`{shown}` may be a torch.device, and comparing that with a string is {always}"
            )
        yield self.finding(
            module,
            node,
            message,
            confidence=Confidence.HIGH if certain else Confidence.MEDIUM,
            severity=Severity.NOTE if by_callers else how_bad(module, node, device, names, certain),
            told=by_callers or only_decides_words(module, node),
            trail=[(source_of_device(module, device), f"`{shown}` comes from here")],
            fixes=[None if is_chain(node) else self._by_type(module, device, names, not certain)],
        )

    def _by_type(
        self, module: Module, device: ast.expr, names: list[ast.expr], either: bool
    ) -> Fix | None:
        if any(":" in str(module.value_of(each).constant) for each in names):
            return None  # an index is asked for too
        shown = module.text(device)
        if either:
            if not imports_torch(module):
                return None
            shown = f"torch.device({shown})"
        edit = module.replace(device, f"{shown}.type")
        return module.fix("compare the type", Safety.UNSAFE, edit)
