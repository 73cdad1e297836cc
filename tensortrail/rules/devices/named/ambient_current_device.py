from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.loads.saved_here import is_of_its_rank
from tensortrail.rules.devices.shared.named import (
    chosen_by_availability,
    current_gpu_asked,
    decided_by,
    written,
)
from tensortrail.rules.devices.shared.named.at_hand import at_hand_in, is_setting, shown_device
from tensortrail.rules.devices.shared.named.named_gpus import is_for_cuda, names_cuda
from tensortrail.rules.devices.shared.named.process_groups import groups_before_devices
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode

_NEEDS_A_GPU = frozenset(
    f"torch.cuda.{name}" for name in ("current_device", "get_rng_state", "synchronize")
)
"""Functions that raise where there is no GPU; `seed`, `set_rng_state`, `empty_cache` do not."""


class AmbientCurrentDevice(Rule):
    """A function uses the current GPU, or picks a device itself, although a device is at hand.

    ## What it does
    Looks at functions in which a device is available: a `device` parameter, `self.device`, an
    `Accelerator`, a `device_map` or the like. Reports in such a function, as notes:

    - `"cuda"` and `.cuda()`, beside `self.device` only if the function puts something there or the
      rule is selected; and `torch.autocast("cuda")` if the rule is selected;
    - `"cuda" if torch.cuda.is_available() else "cpu"`, unless it replaces a missing device;
    - `current_device()`, `synchronize()` and `get_rng_state()`, if nothing tests for a GPU.

    Also reports an NCCL process group that is made before `set_device`, if the chosen GPU is not
    that of the rank, or if something is sent in between. A default value that asks for the current
    device is reported by DEV637.

    ## Why is this bad?
    Without a GPU the call raises. With several, a tensor is on the current one instead of the given
    device, and the next operation mixes the two. A process group created before `set_device` takes
    memory of the first GPU in every process.

    ## Fix safety
    Unsafe: the work moves to the device that was given.

    ## References
    - huggingface/diffusers, training examples with `.to("cuda")`
    - kohya-ss/sd-scripts, samples on machines without a GPU
    """

    code = "DEV510"
    name = "ambient-current-device"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    notes = False
    needs_callers = True
    triggers = (
        ("cuda", "device"),
        ("cuda(", "Accelerator("),
        ("current_device", "def "),
        ("init_process_group", "set_device"),
    )

    bad = (
        Bad(
            """\
import torch

def sample(pipe, accelerator):
    pipe = accelerator.unwrap_model(pipe).to("cuda")
    generator = torch.Generator(device=accelerator.device)
    return pipe(generator=generator)
""",
            lines=(4,),
            fixed="""\
import torch

def sample(pipe, accelerator):
    pipe = accelerator.unwrap_model(pipe).to(accelerator.device)
    generator = torch.Generator(device=accelerator.device)
    return pipe(generator=generator)
""",
        ),
        Bad(
            """\
import torch

def pad(x, device):
    first = torch.zeros(2, device=device)
    second = torch.zeros(2, device="cuda")
    third = torch.zeros(2).cuda()
    return x.to(device), first, second, third
""",
            lines=(5, 6),
            fixed="""\
import torch

def pad(x, device):
    first = torch.zeros(2, device=device)
    second = torch.zeros(2, device=device)
    third = torch.zeros(2).to(device)
    return x.to(device), first, second, third
""",
        ),
        Bad(
            "import torch\n\ndef sample(model, device: torch.device):\n"
            "    state = torch.cuda.get_rng_state()\n    out = model.to(device)()\n"
            "    torch.cuda.set_rng_state(state)\n    return out\n",
            lines=(4,),
        ),
        Bad(
            """\
from transformers import AutoModelForCausalLM

def measure(name, ids):
    model = AutoModelForCausalLM.from_pretrained(name, device_map="auto")
    return model(ids.cuda()).logits
""",
            lines=(5,),
            fixed="""\
from transformers import AutoModelForCausalLM

def measure(name, ids):
    model = AutoModelForCausalLM.from_pretrained(name, device_map="auto")
    return model(ids.to(model.device)).logits
""",
        ),
        Bad(
            "import torch\nimport torch.distributed as dist\n\ndef start(rank, device):\n"
            '    dist.init_process_group("nccl", rank=rank)\n    torch.cuda.set_device(device)\n',
            lines=(5,),
        ),
        Bad(
            """\
import torch

class Runner:
    def __init__(self, device):
        self.device = device

    def run(self, batch):
        return batch.to(self.device)

    def blank(self, n):
        return torch.zeros(n, device="cuda")
""",
            lines=(11,),
            fixed="""\
import torch

class Runner:
    def __init__(self, device):
        self.device = device

    def run(self, batch):
        return batch.to(self.device)

    def blank(self, n):
        return torch.zeros(n, device=self.device)
""",
        ),
        Bad(
            """\
import torch

def train(model, batches, device: torch.device):
    model.to(device)
    for batch in batches:
        if torch.cuda.is_available():
            batch = batch.cuda()
        with torch.autocast("cuda"):
            model(batch)
""",
            lines=(7, 8),
            fixed="""\
import torch

def train(model, batches, device: torch.device):
    model.to(device)
    for batch in batches:
        if torch.cuda.is_available():
            batch = batch.to(device)
        with torch.autocast("cuda"):
            model(batch)
""",
        ),
        Bad(
            """\
import torch

class Mixed:
    def __init__(self, device):
        self.device = device

    def to_device(self, batch):
        return batch.to(self.device)

    def context(self):
        kind = "cuda" if torch.cuda.is_available() else "cpu"
        return torch.autocast(kind)
""",
            lines=(11,),
        ),
        Bad(
            """\
import torch

class Sampler:
    def __init__(self, model):
        self.model = model
        self.steps = torch.arange(9).to(model.device)

    def keep(self, name, value):
        if value.device != torch.device("cuda"):
            value = value.to(torch.device("cuda"))
        setattr(self, name, value)
""",
            lines=(10,),
            fixed="""\
import torch

class Sampler:
    def __init__(self, model):
        self.model = model
        self.steps = torch.arange(9).to(model.device)

    def keep(self, name, value):
        if value.device != torch.device("cuda"):
            value = value.to(self.model.device)
        setattr(self, name, value)
""",
        ),
    )
    good = (
        Good(
            """\
import torch

class Runner:
    def __init__(self):
        self.device = torch.device("cuda")

    def run(self, batch):
        return batch.to(self.device) + batch.to("cuda")
"""
        ),
        Good(
            "import torch\n\ndef choose(device=None):\n    if device is None:\n"
            '        device = "cuda" if torch.cuda.is_available() else "cpu"\n'
            "    return torch.zeros(2, device=device)\n"
        ),
        Good(
            """\
import torch

def graph(x, device: torch.device):
    if device.type == "cuda":
        state = torch.cuda.get_rng_state()
        return x.to("cuda"), state
    return x.to(device), None
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist

class Trainer:
    def __init__(self, model):
        dist.init_process_group("nccl")
        self.device = torch.cuda.current_device()
        self.model = model.to(self.device)
        self.weights = torch.ones(2).cuda()

    def step(self, batch):
        torch.cuda.synchronize()
        return self.model(batch.to(self.device))
"""
        ),
        Good("def f(x):\n    return x.to('cuda')\n"),
        Good(
            "import torch\n\ndef restore(state, device: torch.device):\n"
            "    number = device.index\n    if number is None:\n"
            "        number = torch.cuda.current_device()\n    return number\n"
        ),
        Good(
            "import torch\nimport torch.distributed as dist\n\ndef start(rank, device):\n"
            "    torch.cuda.set_device(device)\n"
            '    dist.init_process_group("nccl", rank=rank)\n'
        ),
        Good(
            """\
import torch

def sample(model, device):
    state = torch.cuda.get_rng_state() if torch.cuda.is_available() else None
    return model.to(device), state

def both(x, device):
    reference = x.to("cuda")
    there = reference.to(device)
    return there
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            yield from self._group_first(module, function)
            at_hand = at_hand_in(module, function)
            if at_hand is not None and not is_for_cuda(module, function, at_hand):
                yield from self._written(module, function, at_hand)
                yield from self._needs_a_gpu(module, function, at_hand)
                yield from self._chosen(module, function, at_hand)

    def _written(
        self, module: Module, function: FunctionNode, at_hand: ast.AST
    ) -> Iterator[Finding]:
        shown = shown_device(module, at_hand)
        for call, said in written.written_literals(module, function):
            meant = decided_by.moves(module, call, shown) or decided_by.decided(module, call, shown)
            if not meant and not decided_by.meets_given(module, call, shown):
                yield self.finding(
                    module,
                    call if said is None else said,
                    f"`{one_line(module, call if said is None else said)}` names a GPU, although "
                    f"`{shown}` is available and may be another GPU or the CPU",
                    severity=Severity.NOTE,
                    trail=[(at_hand, f"`{shown}` is at hand")],
                    fixes=[written.given_instead(module, call, said, shown)],
                    told=not is_setting(module, function, at_hand, call)
                    and not decided_by.switches(module, function, call),
                )

    def _needs_a_gpu(
        self, module: Module, function: FunctionNode, at_hand: ast.AST
    ) -> Iterator[Finding]:
        shown = shown_device(module, at_hand)
        if names_cuda(module, function):
            return
        for call in current_gpu_asked.bare_calls(module, function, _NEEDS_A_GPU):
            if not decided_by.decided(module, call, shown, by_availability=True):
                yield self.finding(
                    module,
                    call,
                    f"`{one_line(module, call.func)}` raises on a machine without a GPU, and "
                    f"`{shown}` may be the CPU: test for a GPU first",
                    severity=Severity.NOTE,
                    confidence=Confidence.MEDIUM,
                    trail=[(at_hand, f"`{shown}` is at hand")],
                    told=True,
                )

    def _chosen(
        self, module: Module, function: FunctionNode, at_hand: ast.AST
    ) -> Iterator[Finding]:
        shown = shown_device(module, at_hand)
        for choice in chosen_by_availability.chosen_by_availability(module, function):
            if not chosen_by_availability.is_default_of(module, choice, shown):
                yield self.finding(
                    module,
                    choice,
                    f"`{one_line(module, choice)}` chooses a GPU whenever the machine has one, "
                    f"although `{shown}` is available: a caller that asks for the CPU gets a GPU",
                    severity=Severity.NOTE,
                    told=True,
                    trail=[(at_hand, f"`{shown}` is at hand")],
                )
        for call, said in current_gpu_asked.autocasts(module, function):
            if not decided_by.decided(module, call, shown):
                yield self.finding(
                    module,
                    call if said is None else said,
                    f"`{one_line(module, call)}` only affects CUDA, but the work is on `{shown}`: "
                    "on another kind of device it has no effect",
                    severity=Severity.NOTE,
                    trail=[(at_hand, f"`{shown}` is at hand")],
                )

    def _group_first(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        for group, device, used in groups_before_devices(module, function):
            yield self.finding(
                module,
                group,
                "the process group is made before the GPU is chosen: until then NCCL uses the "
                "first GPU in every process, so call `set_device` first",
                severity=Severity.WARNING if used else Severity.NOTE,
                told=not is_of_its_rank(module, device),
                trail=[(used, "it is used here"), (device, "the device is set here")],
            )
