from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import is_name, is_self, keyword
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.shared.sentences import one_line

_OLD = frozenset(
    f"torch.{kind}Tensor"
    for kind in ("", "Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Byte", "Bool")
)


class DeviceNotTaken(Rule):
    """A function that takes devices of one kind only is given one of another kind.

    ## What it does
    Reports

    - `torch.FloatTensor(values, device=device)`, `torch.Tensor(..., device=device)` and the other
      old constructors, unless the device is the CPU. A note where nothing says that a GPU is used,
      for the device of another tensor, and for an argument that is the CPU by default;
    - `x.cuda(device)` where `device` is `"cpu"` or a choice of which one is the CPU, unless a
      condition around it asks for a GPU.

    ## Why is this bad?
    The first raises as soon as the device is a GPU, the second as soon as it is not.

    ## What you may see
    ```
    RuntimeError: legacy constructor expects device type: cpu but device type: cuda was passed
    RuntimeError: Invalid device, must be cuda device
    ```

    ## Fix safety
    Unsafe: `.to(device)` instead of `.cuda(device)`. None is offered for old constructors, which
    take sizes as well as values.

    ## References
    - vwxyzjn/cleanrl pull request 302
    - hakuhodo-technologies/scope-rl issue 31
    - cjx96/UniCDR issue 5
    """

    code = "DEV630"
    name = "device-not-taken"
    severity = Severity.ERROR
    proven = False
    triggers = (("Tensor(", "device="), (".cuda(", "cpu"))

    bad = (
        Bad(
            """\
import torch

class Agent:
    def __init__(self, net, device):
        self.device = device
        self.net = net.to(device)

    def act(self, obs):
        state = torch.FloatTensor(obs, device=self.device)
        return self.net(state)

if torch.cuda.is_available():
    agent = Agent(torch.nn.Linear(4, 2), torch.device("cuda"))
""",
            lines=(9,),
            instead="""\
import torch

class Agent:
    def __init__(self, net, device):
        self.device = device
        self.net = net.to(device)

    def act(self, obs):
        state = torch.tensor(obs, dtype=torch.float32, device=self.device)
        return self.net(state)

if torch.cuda.is_available():
    agent = Agent(torch.nn.Linear(4, 2), torch.device("cuda"))
""",
        ),
        Bad(
            """\
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = torch.nn.Linear(4, 2).cuda(device)
""",
            lines=(4,),
            fixed="""\
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = torch.nn.Linear(4, 2).to(device)
""",
        ),
    )
    good = (
        Good(
            """\
import torch

def make(values, rank):
    x = torch.FloatTensor(values, device="cpu").cuda(rank)
    device = torch.device("cpu")
    device = torch.device("cuda", rank)
    return x.cuda(device), torch.tensor(values, device=device)
"""
        ),
        Good(
            """\
import torch

class Engine:
    def __init__(self, net, gpus):
        self.device = torch.device("cpu") if gpus is None else torch.device("cuda", gpus[0])
        if self.device.type == "cuda":
            net = net.cuda(self.device)
        self.net = net
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.nodes(ast.Call):
            device = keyword(call, "device")
            if device is None or module.qualified(call.func) not in _OLD:
                continue
            if not _may_be_cpu(module, device, only=True):
                yield self._old(module, call, device)
        for call in module.calls("cuda"):
            given = keyword(call, "device") or (call.args[0] if call.args else None)
            if given is None or _is_asked_before(module, call):
                continue
            if _may_be_cpu(module, given, only=False):
                yield self.finding(
                    module,
                    call,
                    f"`cuda({one_line(module, given)})` takes GPUs only, and "
                    f"`{one_line(module, given)}` may be the CPU",
                    confidence=Confidence.MEDIUM,
                    fixes=[_to(module, call)],
                )

    def _old(self, module: Module, call: ast.Call, device: ast.expr) -> Finding:
        used = _is_chosen(module, device) and module.may_use_gpu()
        return self.finding(
            module,
            call,
            f"`{one_line(module, call.func)}` makes tensors on the CPU only, and refuses "
            f"`device={one_line(module, device)}` if it is a GPU",
            severity=Severity.WARNING if used else Severity.NOTE,
        )


def _is_asked_before(module: Module, call: ast.Call) -> bool:
    """`if device.type == "cuda":` is around it, or another question about what is there."""
    return any(each.mentions("cuda", "gpu", "cpu", "device") for each in module.guards_of(call))


def _to(module: Module, call: ast.Call) -> Fix | None:
    if not isinstance(call.func, ast.Attribute):
        return None
    text = module.text(call)
    start = len(module.text(call.func)) - len("cuda")
    return module.fix(
        "move to any device",
        Safety.UNSAFE,
        module.replace(call, f"{text[:start]}to{text[start + len('cuda') :]}"),
    )


def _is_chosen(module: Module, device: ast.expr) -> bool:
    """Not that of another tensor, nor an argument that is the CPU by default: neither may ever be
    a GPU."""
    if isinstance(device, ast.Attribute):
        return is_self(device.value)
    function = module.function_of(device)
    given = with_defaults(function.args) if function is not None else ()
    return not any(
        is_name(device, each.arg) and isinstance(default, ast.Constant) and default.value == "cpu"
        for each, default in given
    )


def _may_be_cpu(module: Module, device: ast.expr, only: bool) -> bool:
    """It is the CPU on every way, or on one, by what is written where it is made."""
    value = module.value_of(device)
    said = [behind(module, device), *value.origins]
    found = {each for node in said for each in _written(module, node)}
    if isinstance(value.constant, str):
        found.add(value.constant.partition(":")[0])
    return found == {"cpu"} if only else "cpu" in found


def _written(module: Module, node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.IfExp):
        yield from _written(module, node.body)
        yield from _written(module, node.orelse)
    elif isinstance(node, ast.Call) and module.qualified(node.func) == "torch.device":
        for each in node.args[:1]:
            yield from _written(module, each)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value.partition(":")[0]
