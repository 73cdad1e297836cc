from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.named.zero_counts_as_none import zero_counts_as_none
from tensortrail.rules.shared.in_tests import in_tests


class FirstGpuAsCpu(Rule):
    """A GPU is only used if its number is above 0, so the first GPU becomes the CPU.

    ## What it does
    Reports `number if number > 0 else "cpu"` and `f"cuda:{number}" if number > 0 else "cpu"`,
    also with `torch.device(...)` on either side. Also reports `if rank:`, where `rank` is a number
    or None, and only this branch takes the GPU of that number.

    Not reported: the number of GPUs, as in `"cuda" if gpus > 0 else "cpu"`.

    ## Why is this bad?
    GPUs are counted from 0. A user who asks for the first one gets the CPU, without a message.

    ## Fix safety
    Unsafe: a caller may give 0 for the CPU.

    ## References
    - mlfoundations/open_flamingo, commit 6426107d87
    """

    code = "DEV666"
    name = "first-gpu-as-cpu"
    severity = Severity.WARNING
    proven = False
    triggers = (
        ("> 0 else", '"cpu"'),
        ("> 0 else", "'cpu'"),
        *(
            (word, "None", cuda)
            for word in ("if ", "else")
            for cuda in ("cuda:", '"cuda"', "'cuda'", "set_device", "cuda.device(")
        ),
    )

    bad = (
        Bad(
            """\
import torch

def run(model, device):
    model.to(device if device > 0 else "cpu")
    return model
""",
            lines=(4,),
            fixed="""\
import torch

def run(model, device):
    model.to(device if device >= 0 else "cpu")
    return model
""",
        ),
        Bad(
            """\
import torch

def chosen(args):
    return torch.device(f"cuda:{args.gpu}") if args.gpu > 0 else torch.device("cpu")
""",
            lines=(4,),
            fixed="""\
import torch

def chosen(args):
    return torch.device(f"cuda:{args.gpu}") if args.gpu >= 0 else torch.device("cpu")
""",
        ),
        Bad(
            """\
import torch

def score(batch, model, rank=None):
    if rank:
        model.to(f"cuda:{rank % torch.cuda.device_count()}")
    return model(batch)
""",
            lines=(4,),
            fixed="""\
import torch

def score(batch, model, rank=None):
    if rank is not None:
        model.to(f"cuda:{rank % torch.cuda.device_count()}")
    return model(batch)
""",
        ),
        Bad(
            """\
import torch

def chosen(gpu: int | None = None):
    return torch.device("cuda", gpu) if gpu else torch.device("cpu")
""",
            lines=(4,),
            fixed="""\
import torch

def chosen(gpu: int | None = None):
    return torch.device("cuda", gpu) if gpu is not None else torch.device("cpu")
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def run(model, device):
    model.to(device if device >= 0 else "cpu")
    return model
"""
        ),
        Good(
            """\
import torch

def chosen(gpus):
    return "cuda" if gpus > 0 else "cpu"

def one(device):
    return device if device == 0 or device > 0 else "cpu"
"""
        ),
        Good(
            """\
import torch

def score(batch, model, rank=None, debug=None):
    if rank is not None:
        model.to(f"cuda:{rank % torch.cuda.device_count()}")
    if debug:
        print(f"cuda:{rank}")
    return model(batch)

def placed(model, gpu: str | None = None):
    return model.to(f"cuda:{gpu}" if gpu else "cpu")

def on_a_gpu(model, gpu: int | None = None):
    return model.to(f"cuda:{gpu}" if gpu else "cuda:0")
"""
        ),
        Good(
            """\
import torch

def chosen(gpus, local_rank):
    return torch.device("cuda", local_rank) if gpus > 0 else torch.device("cpu")
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for name in zero_counts_as_none(module):
            edit = module.replace(name, f"{name.id} is not None")
            yield self.finding(
                module,
                name,
                f"`{name.id}` is 0 for the first GPU, and `if {name.id}` treats 0 like None",
                fixes=[module.fix("ask whether it is None", Safety.UNSAFE, edit)],
            )
        for chosen in module.nodes(ast.IfExp):
            number = _asked_above_zero(chosen.test)
            if number is None or _named(module, chosen.orelse) != "cpu":
                continue
            if _is_gpu(module, chosen.body, module.text(number)):
                yield self.finding(
                    module,
                    chosen,
                    f"`{module.text(number)}` is 0 for the first GPU, and then this chooses the "
                    "CPU",
                    fixes=[_fix(module, chosen.test)],
                )


def _asked_above_zero(test: ast.expr) -> ast.expr | None:
    """`n` of `n > 0`."""
    match test:
        case ast.Compare(left=number, ops=[ast.Gt()], comparators=[ast.Constant(value=0)]):
            return number
    return None


def _is_gpu(module: Module, node: ast.expr, number: str) -> bool:
    """The number as a device, and what makes one of it."""
    match node:
        case ast.Call(args=[*_, last], keywords=[]) if _is_device(module, node):
            return _is_gpu(module, last, number)
        case ast.JoinedStr(values=[ast.Constant(value="cuda:"), ast.FormattedValue(value=said)]):
            return module.text(said) == number
    return module.text(node) == number


def _named(module: Module, node: ast.expr) -> object:
    if isinstance(node, ast.Call) and _is_device(module, node) and node.args:
        node = node.args[0]
    return node.value if isinstance(node, ast.Constant) else None


def _is_device(module: Module, call: ast.Call) -> bool:
    return module.qualified(call.func) == "torch.device"


def _fix(module: Module, test: ast.expr) -> Fix | None:
    number = _asked_above_zero(test)
    if number is None:
        return None
    edit = module.replace(test, f"{module.text(number)} >= 0")
    return module.fix("include 0", Safety.UNSAFE, edit)
