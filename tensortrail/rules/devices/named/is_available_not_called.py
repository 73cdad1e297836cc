from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Near, Rule
from tensortrail.rules.devices.shared.moves.uncalled import (
    STEPS,
    devices_not_asked_for,
    is_answered_beside,
    is_compared_with_bool,
    moves_not_made,
    questions_taken_for_answers,
)
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.sentences import one_line

_QUESTIONS = (
    "is_available is_initialized is_built is_bf16_supported is_nccl_available is_gloo_available "
    "is_scripting is_tracing is_compiling is_grad_enabled"
).split()
_JOBS = ("empty_cache", "synchronize", "_stats", "ipc_collect", *sorted(STEPS))


def _uncalled(word: str) -> re.Pattern[bytes]:
    return re.compile(rb"[^\n#]*\b" + word.encode() + rb"(?![\w(\"'])")


def _statement(word: str) -> re.Pattern[bytes]:
    return re.compile(
        rb"(?!\s*(?:from|import)\b)[^\n#]*[\w.]" + word.encode() + rb"[ \t]*(?:[\r\n;#]|$)"
    )


def _move(word: str) -> re.Pattern[bytes]:
    return re.compile(rb"[^\n]*[\w)\]]\." + word.encode() + rb"[ \t]*(?:[\r\n;#)]|$|if\b|else\b)")


class IsAvailableNotCalled(Rule):
    """`torch.cuda.is_available` is used as a condition without being called, and is always true.

    ## What it does
    Reports

    - functions of torch that answer yes or no (`torch.cuda.is_available`,
      `torch.backends.mps.is_available`, `torch.distributed.is_initialized` and the like) that are
      used without a call as a condition, or as a flag such as `pin_memory`;
    - `torch.cuda.current_device` where a device is needed: as `device=`, in `.to(...)`, and as one
      of two choices of which the other is a device;
    - moves without a call: `model.cuda` as a statement, `x = x.cuda`;
    - `model.eval`, `optimizer.zero_grad`, `loss.backward` and the like as a statement;
    - `torch.cuda.empty_cache` and the like as a statement.

    Reported as a note: `is_initialized` of `torch.distributed` beside `isinstance` of what needs
    the process group, such as a `DistributedSampler`, in one `and`.

    Not reported: a function that is passed on, stored to be restored, or called later.

    ## Why is this bad?
    A machine without a GPU takes the branch for a GPU and raises at the first move: a function
    object is always true. A move without a call does nothing, and `x = x.cuda` makes `x` a method.

    ## What you may see
    ```
    RuntimeError: Found no NVIDIA driver on your system.
    ```

    ## Fix safety
    Safe for a condition that names the function directly. Unsafe for a variable that is a condition
    elsewhere, and for a move, which is then made.

    ## References
    - deepspeedai/DeepSpeed pull request 2661
    - Lightning-AI/lightning-thunder pull request 2602
    - masadcv/FastGeodis issue 7
    """

    code = "DEV546"
    name = "is-available-not-called"
    severity = Severity.ERROR
    triggers = (
        *((Near(word, _uncalled(word), ("torch",))) for word in _QUESTIONS),
        *((Near(word, _statement(word), ("torch",))) for word in _JOBS),
        *(Near(word, _uncalled(word), ("torch",)) for word in ("current_device", "default_device")),
        *((Near(f".{word}", _move(word), ("torch",))) for word in sorted(MOVES)),
    )

    bad = (
        Bad(
            """\
import torch

device = "cuda" if torch.cuda.is_available else "cpu"
""",
            lines=(3,),
            fixed="""\
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
""",
        ),
        Bad(
            """\
import torch
import torch.distributed as dist
from torch.backends import mps

def place(model, wanted):
    use_cuda = wanted and torch.cuda.is_available
    if use_cuda:
        return model.cuda()
    if not mps.is_available:
        return model
    if dist.is_available() and dist.is_initialized:
        dist.barrier()
    return model.to("mps")

def loader(data):
    return torch.utils.data.DataLoader(data, pin_memory=torch.cuda.is_available)
""",
            lines=(6, 9, 11, 16),
            fixed="""\
import torch
import torch.distributed as dist
from torch.backends import mps

def place(model, wanted):
    use_cuda = wanted and torch.cuda.is_available()
    if use_cuda:
        return model.cuda()
    if not mps.is_available():
        return model
    if dist.is_available() and dist.is_initialized():
        dist.barrier()
    return model.to("mps")

def loader(data):
    return torch.utils.data.DataLoader(data, pin_memory=torch.cuda.is_available())
""",
        ),
        Bad(
            """\
import unittest

import torch

class Steps(unittest.TestCase):
    @unittest.skipUnless(torch.cuda.is_available, "needs a GPU")
    def test_step(self):
        gpu = torch.cuda.is_available
        x = torch.ones(2)
        if gpu:
            x = x.cuda()
        while torch.cuda.is_available == True:
            break
""",
            lines=(6, 8, 12),
            fixed="""\
import unittest

import torch

class Steps(unittest.TestCase):
    @unittest.skipUnless(torch.cuda.is_available(), "needs a GPU")
    def test_step(self):
        gpu = torch.cuda.is_available()
        x = torch.ones(2)
        if gpu:
            x = x.cuda()
        while torch.cuda.is_available() == True:
            break
""",
        ),
        Bad(
            """\
import torch

def run(model, x, gpu):
    model.cuda
    x = x.cuda if gpu else x
    y = model(x)
    torch.cuda.empty_cache
    y = y.cpu
    return y
""",
            lines=(4, 5, 7, 8),
            fixed="""\
import torch

def run(model, x, gpu):
    model.cuda()
    x = x.cuda() if gpu else x
    y = model(x)
    torch.cuda.empty_cache()
    y = y.cpu()
    return y
""",
        ),
        Bad(
            """\
import torch

def evaluate(model: torch.nn.Module, loader):
    model.eval
    return [model(x) for x in loader]

def train(model, loader, optimizer):
    model.train()
    for x in loader:
        optimizer.zero_grad
        model(x).sum().backward()
        optimizer.step()
""",
            lines=(4, 10),
            fixed="""\
import torch

def evaluate(model: torch.nn.Module, loader):
    model.eval()
    return [model(x) for x in loader]

def train(model, loader, optimizer):
    model.train()
    for x in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
""",
        ),
        Bad(
            """\
import torch

def chosen():
    return torch.cuda.current_device if torch.cuda.is_available() else torch.device("cpu")

def blank(n):
    return torch.zeros(n, device=torch.cuda.current_device)
""",
            lines=(4, 7),
            fixed="""\
import torch

def chosen():
    return torch.cuda.current_device() if torch.cuda.is_available() else torch.device("cpu")

def blank(n):
    return torch.zeros(n, device=torch.cuda.current_device())
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def asked(number):
    ask = torch.cuda.current_device if number is None else (lambda: number)
    return ask()

def kept(factory=torch.cuda.current_device):
    return torch.zeros(2, device=factory())
"""
        ),
        Good("import torch\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'\n"),
        Good(
            """\
import torch

def ask(settings, model):
    try:
        model.eval
    except AttributeError:
        return False
    settings.train
    args.eval
    return model.eval
"""
        ),
        Good(
            """\
import torch

def test_without(monkeypatch, wait_for, skipif):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    kept = torch.cuda.is_available
    torch.cuda.is_available = lambda: True
    wait_for(torch.cuda.is_available)
    skipif(torch.cuda.is_available)
    torch.cuda.is_available = kept
"""
        ),
        Good(
            """\
import torch

def places(ask=None):
    ask = ask or torch.cuda.is_available
    asked = torch.cuda.is_available
    if asked and asked():
        return "cuda"
    if torch.xpu.is_available and torch.xpu.is_available():
        return "xpu"
    return "cuda" if ask() else "cpu"
"""
        ),
        Good(
            """\
class Pair:
    def __init__(self, cpu, npu):
        self.cpu = cpu
        self.kept = npu

    @property
    def npu(self):
        return self.kept

def parts(values):
    first = [each.cpu if isinstance(each, Pair) else each for each in values]
    return first, [each.npu if isinstance(each, Pair) else each for each in values]
"""
        ),
        Good(
            """\
import torch

def move(parameter, args, library):
    bring = parameter.cpu
    args = args.cuda
    version = torch.version.cuda
    try:
        torch.cuda
        library.cuda
    except AttributeError:
        return None
    return bring()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for node, place in questions_taken_for_answers(module):
            yield self._question(module, node, place)
        for device in devices_not_asked_for(module):
            yield self.finding(
                module,
                device,
                f"`{one_line(module, device)}` is a function that is not called, where a device "
                "is needed",
                fixes=[module.fix("call it", Safety.SAFE, module.insert_after(device, "()"))],
            )
        for move in moves_not_made(module):
            edit = module.insert_after(move, "()")
            yield self.finding(
                module,
                move,
                f"`{one_line(module, move)}` is not called, and so does nothing",
                fixes=[module.fix("call it", Safety.UNSAFE, edit)],
            )

    def _question(self, module: Module, node: ast.expr, place: ast.expr) -> Finding:
        up = module.parent(place)
        compared = isinstance(up, ast.Compare) and is_compared_with_bool(up)
        says = "is never equal to True or False" if compared else "is always true"
        where = "" if place is node else f", the condition in line {place.lineno}"
        safety = Safety.SAFE if place is node else Safety.UNSAFE
        return self.finding(
            module,
            node,
            f"`{one_line(module, node)}` is a function that is not called{where}: it {says}",
            severity=Severity.NOTE if is_answered_beside(module, node) else None,
            fixes=[module.fix("call it", safety, module.insert_after(node, "()"))],
        )
