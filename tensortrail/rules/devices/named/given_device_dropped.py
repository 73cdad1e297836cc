from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.named.options import unread_options
from tensortrail.rules.devices.shared.named.written import written_literals
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import is_constant


class GivenDeviceDropped(Rule):
    """A device that was chosen is ignored, and another one is used.

    ## What it does
    Reports `device or "cuda" if available else "cpu"`: `or` binds closer than `if`, so `device` is
    used only if `available` is true. Also reports an option of the command line such as `--device`
    that the program never reads, if the program writes out a GPU.

    Not reported: conditions that test the device, and options of a program that passes all of them
    on to other files.

    ## Why is this bad?
    A user who chooses `"mps"`, `"xpu"` or another device gets the CPU or the current GPU, without a
    message.

    ## Fix safety
    Unsafe: the chosen device is then used on every machine.

    ## References
    - huggingface/setfit, commit 6c8d739b0d
    - autogluon/autogluon pull request 5764
    """

    code = "DEV667"
    name = "given-device-dropped"
    severity = Severity.WARNING
    proven = False
    triggers = (
        ("else", '"cpu"', "or "),
        ("else", "'cpu'", "or "),
        ("add_argument", "device", "cuda"),
    )

    bad = (
        Bad(
            """\
import torch

def load(path, device=None):
    device = device or "cuda" if torch.cuda.is_available() else "cpu"
    return torch.load(path, map_location=device)
""",
            lines=(4,),
            fixed="""\
import torch

def load(path, device=None):
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return torch.load(path, map_location=device)
""",
        ),
        Bad(
            """\
import torch

class Model:
    def load(self, gpu):
        return torch.ones(2, device=(self.device or "cuda") if gpu else "cpu")
""",
            lines=(5,),
            fixed="""\
import torch

class Model:
    def load(self, gpu):
        return torch.ones(2, device=self.device or ("cuda" if gpu else "cpu"))
""",
        ),
        Bad(
            """\
import argparse
import models

def main(args):
    model = models.Net(args.size)
    model.cuda().eval()
    return model

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int)
parser.add_argument("--device", default="cuda:0")
args = parser.parse_args()
main(args)
""",
            lines=(11,),
        ),
    )
    good = (
        Good(
            """\
import argparse
import models

def main(args):
    model = models.Net(args.size)
    model.to(args.device).eval()
    return model

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int)
parser.add_argument("--device", default="cuda:0")
args = parser.parse_args()
main(args)
"""
        ),
        Good(
            """\
import torch

def load(path, device=None):
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return torch.load(path, map_location=device)
"""
        ),
        Good(
            """\
import torch

def load(path, device=None):
    device = device or "cuda" if device or torch.cuda.is_available() else "cpu"
    return torch.load(path, map_location=device)
"""
        ),
        Good('def load(path, name):\n    return name or "auto" if path else "cpu"\n'),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for chosen in module.nodes(ast.IfExp):
            given = _given(chosen)
            if given is not None and module.text(given) not in module.text(chosen.test):
                yield self._found(module, chosen, given)
        for option in unread_options(module):
            gpu = next(_written_gpus(module), None)
            if gpu is not None:
                said = f"`{module.text(option.args[-1])}` is never read"
                message = f"{said}, and line {gpu.lineno} writes a GPU"
                yield self.finding(module, option, message, trail=[(gpu, "a GPU is written here")])

    def _found(self, module: Module, chosen: ast.IfExp, given: ast.expr) -> Finding:
        shown = module.text(given)
        test, cpu = module.text(chosen.test), module.text(chosen.orelse)
        edit = module.replace(chosen, f'{shown} or ("cuda" if {test} else {cpu})')
        return self.finding(
            module,
            chosen,
            f"if `{test}` is false, this is the CPU, whatever `{shown}` is",
            fixes=[module.fix("keep what is given", Safety.UNSAFE, edit)],
        )


def _written_gpus(module: Module) -> Iterator[ast.Call]:
    for function in (*functions(module), module.top):
        yield from (call for call, _ in written_literals(module, function))


def _given(chosen: ast.IfExp) -> ast.expr | None:
    """`device` of `device or "cuda" if available else "cpu"`."""
    match chosen:
        case ast.IfExp(body=ast.BoolOp(op=ast.Or(), values=[given, gpu]), orelse=cpu):
            return given if is_constant(gpu, "cuda") and is_constant(cpu, "cpu") else None
    return None
