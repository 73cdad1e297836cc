from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.calls.accepted import accepts
from tensortrail.rules.devices.shared.calls.answers_kept import answered_as_kept, other_devices_kept
from tensortrail.rules.devices.shared.calls.called_in_place import (
    stands_in_for_others,
)
from tensortrail.rules.devices.shared.calls.passed_on import (
    OTHER_OF_PAIR,
    is_half_a_pair,
    moved_without,
    passing_on,
    unread_parameters,
)
from tensortrail.rules.devices.shared.meetings.takers import does_no_harm, is_free, takers_of
from tensortrail.rules.shared import mends
from tensortrail.rules.shared.functions import functions, parameters
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode


class ArgumentDropped(Rule):
    """A function accepts a `device`, `dtype` or similar argument and never reads it.

    ## What it does
    Reports, as a note, an unread parameter about a device, a dtype, `map_location` or offloading,
    or an unread variable such as `target_device`, if the function contains

    - a call that accepts this argument and does not get it: a factory of torch, or a function,
      class or method of the project;
    - `x.to(device=device)` without the `dtype` that the function has too, or the other way round;
    - a call of unknown code that is passed two of the other parameters by their names;
    - `self.device = x.device`, which keeps another device than the one that was given;
    - a `return` of a stored value, where the same method of a sibling class reads the parameter.

    Not reported: a `dtype` if the result is cast, a device if the result is only an index.

    ## Why is this bad?
    The caller asks for a device or dtype and gets a result on another device or of another type. No
    error is raised until that result is combined with other tensors.

    ## Fix safety
    Unsafe: it passes the argument on, which changes what callers get.

    ## References
    - pytorch documentation, "Tensor attributes", `torch.device`
    """

    code = "DEV527"
    name = "argument-dropped"
    severity = Severity.WARNING
    warns = False
    notes = False
    triggers = (
        ("torch", "device"),
        ("torch", "dtype"),
        ("torch", "generator"),
        ("torch", "offload"),
    )
    bad = (
        Bad(
            "import blocks\nfrom torch import nn\n\n\nclass Wide(blocks.Linear):\n"
            "    def __init__(self, n, bias, device=None, dtype=None):\n"
            "        super().__init__(n, bias=bias, dtype=dtype)\n"
            "        self.act = nn.GELU()\n",
            lines=(7,),
            fixed="import blocks\nfrom torch import nn\n\n\nclass Wide(blocks.Linear):\n"
            "    def __init__(self, n, bias, device=None, dtype=None):\n"
            "        super().__init__(n, bias=bias, dtype=dtype, device=device)\n"
            "        self.act = nn.GELU()\n",
        ),
        Bad(
            "import torch\n\n\ndef table(n, device=None):\n    return torch.arange(n).outer(2)\n",
            lines=(5,),
            fixed="import torch\n\n\ndef table(n, device=None):\n"
            "    return torch.arange(n, device=device).outer(2)\n",
        ),
        Bad(
            "import torch\n\n\ndef made(base, n, bias, device=None, dtype=None):\n"
            "    return base.layer(torch.Size([n]), bias=bias, device=device)\n",
            lines=(5,),
            fixed="import torch\n\n\ndef made(base, n, bias, device=None, dtype=None):\n"
            "    return base.layer(torch.Size([n]), bias=bias, device=device, dtype=dtype)\n",
        ),
        Bad(
            "import torch\n\n\ndef sigmas_at(schedule, steps, device, dtype=torch.float32):\n"
            "    sigmas = schedule.sigmas.to(device=device)\n    return sigmas[steps]\n",
            lines=(5,),
            fixed="import torch\n\n\ndef sigmas_at(schedule, steps, device, dtype=torch.float32):\n"
            "    sigmas = schedule.sigmas.to(device=device, dtype=dtype)\n"
            "    return sigmas[steps]\n",
        ),
        Bad(
            "import torch\nimport tasks\n\n\nclass Ranked(tasks.Task):\n"
            "    def loss(self, batch, model):\n        logits = model(batch.rows)\n"
            "        device = logits.device\n"
            "        chosen = torch.as_tensor(batch.labels, dtype=torch.bool)\n"
            "        return logits[chosen].mean() - logits[~chosen].mean()\n",
            lines=(9,),
            fixed="import torch\nimport tasks\n\n\nclass Ranked(tasks.Task):\n"
            "    def loss(self, batch, model):\n        logits = model(batch.rows)\n"
            "        device = logits.device\n"
            "        chosen = torch.as_tensor(batch.labels, dtype=torch.bool, device=device)\n"
            "        return logits[chosen].mean() - logits[~chosen].mean()\n",
        ),
        Bad(
            "import torch\nfrom torch import nn\n\n\nclass Steps(nn.Module):\n"
            "    def forward(self, steps, hidden_dtype=None):\n"
            "        return steps.to(hidden_dtype)\n\n\n"
            "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.steps = Steps()\n\n"
            "    def forward(self, x, steps, hidden_dtype=None):\n"
            "        return x + self.steps(steps)\n",
            lines=(16,),
            fixed="import torch\nfrom torch import nn\n\n\nclass Steps(nn.Module):\n"
            "    def forward(self, steps, hidden_dtype=None):\n"
            "        return steps.to(hidden_dtype)\n\n\n"
            "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.steps = Steps()\n\n"
            "    def forward(self, x, steps, hidden_dtype=None):\n"
            "        return x + self.steps(steps, hidden_dtype=hidden_dtype)\n",
        ),
        Bad(
            """\
import torch

class Inputs:
    def batch(self, device=None):
        raise NotImplementedError

class Filled(Inputs):
    def batch(self, device=None):
        return torch.zeros(2, 8, device=device)

class Exact(Inputs):
    def batch(self, device=None):
        return self.args, self.rest
""",
            lines=(13,),
        ),
        Bad(
            """\
import torch

class Shown:
    def __init__(self, model, device):
        self.model = model.eval()
        self.device = next(self.model.parameters()).device

    def shown(self, image):
        return self.model(image.to(self.device))
""",
            lines=(6,),
            instead="""\
import torch

class Shown:
    def __init__(self, model, device):
        self.model = model.eval().to(device)
        self.device = device

    def shown(self, image):
        return self.model(image.to(self.device))
""",
        ),
    )
    good = (
        Good(
            "import torch\n\n\ndef split(rows, parts, offload_device, keep):\n"
            "    storage_device = keep.place\n"
            "    return torch.arange(parts) + rows.shape[0], offload_device\n"
        ),
        Good(
            "import torch\n\n\nclass Grid(torch.nn.Module):\n"
            "    def steps(self, n, device):\n        raise NotImplementedError\n\n"
            "    def forward(self, x):\n        return x * self.steps(len(x), x.device)\n"
        ),
        Good(
            "import torch\n\n\ndef loaded(path, device=None, dtype=None, offload=False):\n"
            "    return torch.hub.load(path, device=device, dtype=dtype).take(offload)\n"
        ),
        Good(
            "import torch\n\n\ndef table(n, device=None):\n"
            "    return torch.arange(n, device=device).outer(2)\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            reported: set[ast.Call] = set()
            for name in unread_parameters(module, function):
                yield from self._dropped(module, function, name, reported)

    def _dropped(
        self, module: Module, function: FunctionNode, name: str, reported: set[ast.Call]
    ) -> Iterator[Finding]:
        asked_for = any(each.arg == name for each in parameters(function))
        calls = takers_of(module, function, name, asked_for)
        if calls:
            if calls[0] not in reported:
                reported.add(calls[0])
                is_note = does_no_harm(module, function, calls[0], name, asked_for)
                yield self._reported(module, calls[0], name, "accepts it", is_note)
            return
        halves = moved_without(module, function, name)
        if halves is not None:
            is_note = not asked_for or stands_in_for_others(module, function, name)
            is_note = is_note or is_free(module, halves, name)
            yield self._reported(
                module, halves, name, f"passes `{OTHER_OF_PAIR[name]}` on", is_note
            )
            return
        if asked_for:
            yield from self._kept(module, function, name)
            yield from self._replaced(module, function, name)
        for call, others in passing_on(module, function, name):
            given = ", ".join(f"`{each}`" for each in others)
            is_note = not is_half_a_pair(function, call, name)
            yield self._reported(module, call, name, f"passes {given} on", is_note)
            break

    def _kept(self, module: Module, function: FunctionNode, name: str) -> Iterator[Finding]:
        for kept, sibling in answered_as_kept(module, function, name):
            yield self.finding(
                module,
                kept,
                f"`{name}` is never read in this method; the one in line {sibling.lineno}, "
                "of a class with the same base, uses it for its result",
                severity=Severity.NOTE,
                trail=[(sibling, f"reads `{name}`"), (kept, "returned as it was stored")],
            )

    def _replaced(self, module: Module, function: FunctionNode, name: str) -> Iterator[Finding]:
        for kept in other_devices_kept(module, function) if name == "device" else ():
            is_note = stands_in_for_others(module, function, name)
            yield self.finding(
                module,
                kept,
                f"`{name}` is never read in this function, which stores "
                f"`{one_line(module, kept.value)}` instead",
                severity=Severity.NOTE if is_note else None,
            )
            return

    def _reported(
        self, module: Module, call: ast.Call, name: str, what: str, is_note: bool
    ) -> Finding:
        return self.finding(
            module,
            call,
            f"`{name}` is never read in this function, although this call {what}",
            severity=Severity.NOTE if is_note else None,
            fixes=(_fix(module, call, name),),
        )


def _fix(module: Module, call: ast.Call, name: str) -> Fix | None:
    wanted = (
        name if accepts(module, call, name) or not accepts(module, call, "device") else "device"
    )
    edit = mends.keyword_given(module, call, wanted, name)
    return module.fix(f"pass `{name}` on", Safety.UNSAFE, edit) if edit is not None else None
