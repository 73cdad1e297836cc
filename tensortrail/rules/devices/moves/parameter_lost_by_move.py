from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Kind, Module, Rule
from tensortrail.rules.devices.shared.moves.leaves import is_leaf, is_parameter, is_there
from tensortrail.rules.devices.shared.moves.taken_as_parameter import wanted_as_parameters
from tensortrail.rules.devices.shared.moves.what_is_moved import moves_bytes
from tensortrail.rules.shared.functions import parameters
from tensortrail.rules.shared.moves import CASTS, MOVES, named_device
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.shared.sentences import one_line

_GIVE_ANOTHER = MOVES | CASTS | {"type"}
_ATOMS = (ast.Call, ast.Name, ast.Attribute, ast.Subscript)


class ParameterLostByMove(Rule):
    """A parameter is moved before it is assigned, so the module gets a plain tensor.

    ## What it does
    Reports `self.weight = nn.Parameter(...).to(device)` in a module, also with `.cuda()`, `.half()`
    and the like, or if the parameter is first assigned to a name; also if it is an argument of
    `register_parameter`, or the result of a function that is annotated to return a Parameter. It is

    - an error if the device is a constant that is a GPU;
    - a warning if the device is a variable, if the dtype is a constant, or if the parameter is made
      with `requires_grad=False`;
    - a note if the device is that of a layer that the constructor makes, if the constructor has two
      device arguments, if the dtype is a setting, or if the file does not read the attribute before
      `forward` assigns it again.

    Not reported: methods that return the parameter itself, such as `requires_grad_()`, a tensor
    that was made on the same device, and moves to the CPU.

    ## Why is this bad?
    On a GPU, the weight is not in `parameters()`: no optimizer trains it, `.to()` does not move it,
    and `state_dict()` does not save it. `nn.Parameter(t).to(device)` returns a plain tensor, unless
    there is nothing to move. On the CPU it returns the parameter, and every test passes.

    ## Fix safety
    Unsafe: the tensor is moved before it becomes a parameter. Checkpoints written without the
    parameter lack it.

    ## References
    - pytorch documentation, `torch.nn.parameter.Parameter`
    - pytorch/pytorch issue 7844
    """

    code = "DEV545"
    name = "parameter-lost-by-move"
    explains = ("DEV547",)
    severity = Severity.ERROR
    triggers = tuple(("Parameter(", f".{name}(") for name in _GIVE_ANOTHER)

    bad = (
        Bad(
            """\
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self, n, device):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(n)).to(device)

    def forward(self, x):
        return x * self.scale
""",
            lines=(7,),
            fixed="""\
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self, n, device):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(n).to(device))

    def forward(self, x):
        return x * self.scale
""",
        ),
        Bad(
            """\
import torch
from torch import nn

class Shift(nn.Module):
    def __init__(self, n):
        super().__init__()
        shift = nn.Parameter(torch.zeros(n), requires_grad=True)
        self.shift = shift.cuda()
        self.rate = nn.Parameter(torch.ones(1)).half()

    def forward(self, x):
        return x + self.shift * self.rate
""",
            lines=(8, 9),
            fixed="""\
import torch
from torch import nn

class Shift(nn.Module):
    def __init__(self, n):
        super().__init__()
        shift = nn.Parameter(torch.zeros(n), requires_grad=True)
        self.shift = shift.cuda()
        self.rate = nn.Parameter(torch.ones(1).half())

    def forward(self, x):
        return x + self.shift * self.rate
""",
        ),
        Bad(
            """\
import torch
from torch import nn

def to_parameter(tensor: torch.Tensor, device: torch.device | None = None) -> nn.Parameter:
    return nn.Parameter(tensor).to(device=device)

def with_bias(layer, n):
    layer.register_parameter("bias", nn.Parameter(torch.zeros(n)).cuda())
""",
            lines=(5, 8),
            fixed="""\
import torch
from torch import nn

def to_parameter(tensor: torch.Tensor, device: torch.device | None = None) -> nn.Parameter:
    return nn.Parameter(tensor.to(device=device))

def with_bias(layer, n):
    layer.register_parameter("bias", nn.Parameter(torch.zeros(n).cuda()))
""",
        ),
    )
    good = (
        Good(
            """\
import torch
from torch import nn

class Scan(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.skip = nn.Parameter(torch.ones(n, dtype=torch.float32)).to(torch.float32)
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Scale(nn.Module):
    def __init__(self, n, device):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(n).to(device))
        self.shift = nn.Parameter(torch.zeros(n, device=device)).to(device)
        self.slope = nn.Parameter(torch.zeros(n).to(device), requires_grad=True).to(device)
        self.bias = nn.Parameter(torch.zeros(n).cuda()).cuda()
        self.frozen = nn.Parameter(torch.zeros(n)).requires_grad_(False)
        self.shape = nn.Parameter(torch.zeros(n)).to(device).shape
"""
        ),
        Good(
            """\
import torch
from torch import nn

def moved(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return nn.Parameter(tensor).to(device)

def to_parameter(tensor: torch.Tensor, device: torch.device) -> nn.Parameter:
    return nn.Parameter(tensor.to(device))
"""
        ),
        Good(
            """\
import torch

class Probe:
    def __init__(self, n, device):
        self.start = torch.nn.Parameter(torch.ones(n)).to(device)
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Rotated(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table = nn.Parameter(table).cpu()

    def forward(self, x):
        return x @ self.table.to(x.device)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for assign in module.nodes(ast.Assign):
            call = assign.value
            made = _moved_parameter(module, call) if _is_kept(module, assign) else None
            if made is None or not isinstance(call, ast.Call):
                continue
            device, trained = moves_bytes(module, call), is_leaf(module, made)
            severity = _where(module, call, trained) if device else _weight(module, call)
            yield self.finding(
                module,
                call,
                f"`{one_line(module, call)}` is a plain tensor instead of a parameter whenever the "
                f"call {'moves it to another device' if device else 'gives it another dtype'}: "
                f"`{module.text(assign.targets[0])}` is then "
                f"{'neither trained, nor' * trained}{'neither' * (not trained)} moved with the "
                f"module{',' * trained} nor saved",
                severity=severity if _is_read(module, assign) else Severity.NOTE,
                trail=[(made, "the parameter is made here"), (call, "and another tensor here")],
                fixes=[_moved_inside(module, call, made)],
            )
        for call, what in wanted_as_parameters(module):
            made = _moved_parameter(module, call)
            if made is not None:
                yield self.finding(
                    module,
                    call,
                    f"`{one_line(module, call)}` is a plain tensor instead of a parameter whenever "
                    f"the call moves or casts it: {what}",
                    severity=_where(module, call, True)
                    if moves_bytes(module, call)
                    else _weight(module, call),
                    trail=[(made, "the parameter is made here"), (call, "and another tensor here")],
                    fixes=[_moved_inside(module, call, made)],
                )


def _moved_parameter(module: Module, call: ast.expr) -> ast.Call | None:
    """The parameter that the call makes another tensor of."""
    if not isinstance(call, ast.Call) or called(call) not in _GIVE_ANOTHER or called(call) == "cpu":
        return None
    owner = receiver(call)
    made = _parameter(module, owner) if owner is not None else None
    return None if made is None or is_there(module, made, call) else made


def _where(module: Module, call: ast.Call, trained: bool) -> Severity:
    """A GPU that is written out is elsewhere; what somebody chooses may be the CPU."""
    said = module.argument(call, 0, "device")
    if said is None and called(call) != "cuda":
        return Severity.WARNING  # `**kwargs`
    if said is not None and _is_made_beside(module, call, said):
        return Severity.NOTE
    text = "cuda" if said is None else module.value_of(named_device(module, said)).constant
    if isinstance(text, str) and text.startswith("cuda"):
        return Severity.ERROR if trained else Severity.WARNING
    return Severity.NOTE if _is_one_of_two(module, call) else Severity.WARNING


def _is_made_beside(module: Module, call: ast.Call, said: ast.expr) -> bool:
    """`self.linear.weight`, of a layer that the constructor makes too: it is there already."""
    while isinstance(said, ast.Attribute) and isinstance(said.value, ast.Attribute):
        said = said.value
    function = module.function_of(call)
    stores = module.nodes(ast.Attribute, function) if function is not None else ()
    return (
        isinstance(said, ast.Attribute)
        and any(
            isinstance(each.ctx, ast.Store) and module.text(each) == module.text(said)
            for each in stores
        )
        and module.value_of(said).is_only(Kind.MODULE)
    )


def _is_read(module: Module, assign: ast.Assign) -> bool:
    """The file reads the attribute, and not only after `forward` assigned another tensor to it. A
    class without `forward` leaves that to others."""
    target = assign.targets[0]
    assert isinstance(target, ast.Attribute)
    uses = [each for each in module.nodes(ast.Attribute) if each.attr == target.attr]
    anew = [each for each in uses if _is_anew_in_forward(module, each)]
    read = [each for each in uses if isinstance(each.ctx, ast.Load)]
    if not anew:
        cls = module.class_of(assign)
        methods = module.nodes(ast.FunctionDef, cls) if cls is not None else ()
        return bool(read) or all(each.name != "forward" for each in methods)
    around = module.function_of(anew[0])
    return any(module.function_of(e) is around and e.lineno <= anew[0].lineno for e in read)


def _is_anew_in_forward(module: Module, use: ast.Attribute) -> bool:
    around, statement = module.function_of(use), module.statement_of(use)
    return (
        isinstance(use.ctx, ast.Store)
        and isinstance(around, ast.FunctionDef)
        and around.name == "forward"
        and isinstance(statement, ast.Assign)
        and statement in around.body
    )


def _is_one_of_two(module: Module, call: ast.Call) -> bool:
    """The constructor is given another device too: this one is for something that stays apart."""
    function = module.function_of(call)
    given = [each.arg for each in parameters(function)] if function is not None else []
    return sum("device" in each for each in given) > 1


def _weight(module: Module, call: ast.Call) -> Severity:
    """A type that is written here is mostly another one; a setting mostly leaves it as it is."""
    said = call.args[0] if call.args else None
    is_setting = said is not None and not module.qualified(said).startswith("torch.")
    return Severity.NOTE if is_setting else Severity.WARNING


def _parameter(module: Module, node: ast.expr) -> ast.Call | None:
    """The call of `nn.Parameter` that the expression is, or was bound to."""
    found = [node] if isinstance(node, ast.Call) else module.value_of(node).origins
    if len(found) != 1 or not isinstance(found[0], ast.Call):
        return None
    return found[0] if is_parameter(module, found[0]) else None


def _is_kept(module: Module, assign: ast.Assign) -> bool:
    """As an attribute of a module."""
    target = assign.targets[0]
    if not isinstance(target, ast.Attribute) or module.text(target.value) != "self":
        return False
    cls = module.class_of(assign)
    facts = module.class_facts(cls) if cls is not None else None
    return facts is not None and facts.is_module


def _moved_inside(module: Module, call: ast.Call, made: ast.Call) -> Fix | None:
    data = made.args[0] if made.args else None
    if receiver(call) is not made or not isinstance(data, _ATOMS):
        return None
    shown, inner = module.text(made), module.text(data)
    how = module.text(call)[len(shown) :]
    edit = module.replace(call, shown.replace(inner, inner + how, 1))
    return module.fix("move the tensor, then make it a parameter", Safety.UNSAFE, edit)
