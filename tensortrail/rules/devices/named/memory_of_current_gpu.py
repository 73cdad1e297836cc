from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.named.at_hand import shown_device
from tensortrail.rules.devices.shared.named.memory_asked import asks_current_memory
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line


class MemoryOfCurrentGpu(Rule):
    """The memory of the current GPU is read, although the work is on another device.

    ## What it does
    Reports `torch.cuda.mem_get_info()`, `memory_allocated()`, `reset_peak_memory_stats()` and the
    like without a device, in a class that passes `self.device` to such functions elsewhere.

    Reported as a note: `mem_get_info()` in a function that is given a device, or has just chosen
    `self.device`.

    Not reported: a class or file that sets the current device.

    ## Why is this bad?
    The numbers are those of another GPU, and a decision made by them, such as what to offload, is
    wrong. Without a device, these functions ask the current GPU, usually the first one.

    ## Fix safety
    No fix is offered: `torch.cuda.set_device` may be what is missing.

    ## References
    - AUTOMATIC1111/stable-diffusion-webui, the memory monitor with several GPUs
    - hao-ai-lab/FastVideo #912
    """

    code = "DEV590"
    name = "memory-of-current-gpu"
    severity = Severity.WARNING
    warns = False
    triggers = (("torch", "mem_get_info"), ("torch", "memory_"), ("torch", "peak_memory"))
    bad = (
        Bad(
            """\
import torch

class Monitor:
    def __init__(self, device):
        self.device = device

    def total(self):
        return torch.cuda.memory_stats(self.device)

    def free(self):
        return torch.cuda.mem_get_info()[0]
""",
            lines=(11,),
            instead="""\
import torch

class Monitor:
    def __init__(self, device):
        self.device = device

    def total(self):
        return torch.cuda.memory_stats(self.device)

    def free(self):
        return torch.cuda.mem_get_info(self.device)[0]
""",
        ),
        Bad(
            """\
import torch

class Worker:
    def start(self, choose):
        self.device = choose()
        self.free = torch.cuda.mem_get_info()[0]
""",
            lines=(6,),
        ),
        Bad(
            """\
import torch

def fits(model, size, device: torch.device):
    model.to(device)
    free, total = torch.cuda.mem_get_info()
    return free > size
""",
            lines=(5,),
        ),
    )
    good = (
        Good(
            """\
import torch

class Worker:
    def start(self, choose):
        self.device = choose()
        torch.cuda.set_device(self.device)
        self.free = torch.cuda.mem_get_info()[0]
"""
        ),
        Good(
            """\
import torch

def train(model, device: torch.device):
    model.to(device)
    print(torch.cuda.max_memory_allocated())
"""
        ),
        Good("import torch\n\n\ndef free():\n    return torch.cuda.mem_get_info()[0]\n"),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            for asked in asks_current_memory(module, function):
                shown = shown_device(module, asked.at_hand)
                yield self.finding(
                    module,
                    asked.call,
                    f"`{one_line(module, asked.call.func)}` reads the memory of the current GPU, "
                    f"but the work is on `{shown}`, which may be another GPU",
                    severity=None if asked.by_siblings else Severity.NOTE,
                    confidence=Confidence.MEDIUM,
                    trail=[(asked.at_hand, f"`{shown}` is at hand")],
                )
