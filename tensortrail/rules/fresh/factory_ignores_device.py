from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Kind, Module, Rule
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.operations import Operation, operations
from tensortrail.rules.shared.tensor_origin import Decides, Origin, is_factory, origin_of
from tensortrail.rules.view import FunctionNode

_BUILDING = frozenset({"__init__", "__new__", "__post_init__", "reset_parameters", "init_weights"})


class FactoryIgnoresDevice(Rule):
    """A tensor is made on the default device and meets one that is wherever the caller put it.

    ## What it does
    Flags `torch.arange(n)`, `torch.zeros(n)`, `torch.tensor([...])`, `torch.LongTensor(...)` and
    the like without a device, in two cases: the result meets a tensor of an argument in an
    operation, in a module's method or in a function that asks for the device of a tensor
    elsewhere; or a function with a `device` parameter returns it without having moved it.
    Tensors without dimensions go with every device and are not flagged.

    ## Why is this bad?
    It works on the CPU. With the model on a GPU the operation finds its operands on two devices
    and raises.

    ## Example
    ```python
    def forward(self, x: torch.Tensor):
        positions = torch.arange(x.shape[1])
        return x + positions
    ```
    Use instead:
    ```python
    def forward(self, x: torch.Tensor):
        positions = torch.arange(x.shape[1], device=x.device)
        return x + positions
    ```

    ## Fix safety
    Unsafe: a caller may rely on the tensor being on the CPU.

    ## References
    - deepspeedai/DeepSpeed, the capacity of a gate compared with a CPU tensor
    - pytorch/TensorRT, decompositions that drop `device=`
    """

    code = "NEW305"
    name = "factory-ignores-device"
    severity = Severity.ERROR
    triggers = (
        "arange(", "zeros(", "ones(", "tensor(", "Tensor(", "full(", "linspace(", "randn(",
        "rand(", "empty(", "eye(", "randint(", "randperm(", "tri",
    )  # fmt: skip

    bad = (
        Bad(
            """\
import torch
from torch import nn

class Rotary(nn.Module):
    def forward(self, x: torch.Tensor):
        positions = torch.arange(x.shape[1])
        return x * positions.float().unsqueeze(-1)
""",
            lines=(6,),
            fixed="""\
import torch
from torch import nn

class Rotary(nn.Module):
    def forward(self, x: torch.Tensor):
        positions = torch.arange(x.shape[1], device=x.device)
        return x * positions.float().unsqueeze(-1)
""",
        ),
        Bad(
            """\
import torch

def pad(hidden: torch.Tensor, length: int):
    mask = torch.ones(length, device=hidden.device)
    gap = torch.zeros(length, hidden.shape[1])
    return torch.cat([hidden, gap], dim=0), mask
""",
            lines=(5,),
            fixed="""\
import torch

def pad(hidden: torch.Tensor, length: int):
    mask = torch.ones(length, device=hidden.device)
    gap = torch.zeros(length, hidden.shape[1], device=hidden.device)
    return torch.cat([hidden, gap], dim=0), mask
""",
        ),
        Bad(
            """\
import torch

def table(size: int, device: torch.device):
    start = torch.zeros(1, device=device)
    rest = torch.linspace(0, 1, size)
    return start, rest
""",
            lines=(5,),
            fixed="""\
import torch

def table(size: int, device: torch.device):
    start = torch.zeros(1, device=device)
    rest = torch.linspace(0, 1, size, device=device)
    return start, rest
""",
        ),
    )
    good = (
        Good(
            """\
import torch
from torch import nn

class Scale(nn.Module):
    def forward(self, x: torch.Tensor):
        factor = torch.tensor(0.5)
        return x * factor
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Gather(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor):
        rows = torch.arange(x.shape[0])
        return x[rows, index]
"""
        ),
        Good(
            """\
import torch

def noise(size: int, generator: torch.Generator, device: torch.device):
    made = torch.randn(size, generator=generator)
    made = made.to(device)
    return made
"""
        ),
        Good(
            """\
import torch

def positions(x: torch.Tensor):
    with torch.device(x.device):
        return x + torch.arange(x.shape[0])
"""
        ),
        Good(
            """\
import torch

def total(mask):
    return mask + torch.ones(3)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for function in functions(module):
            yield from self._function(module, function)

    def _function(self, module: Module, function: FunctionNode) -> Iterator[Finding]:
        if function.name in _BUILDING or not _has_candidate(module, function):
            return
        parameter = _device_parameter(module, function)
        in_forward = _is_method_of_module(module, function)
        said: set[ast.AST] = set()
        if in_forward or _asks_for_device(module, function):
            for operation in operations(module, function):
                if module.function_of(operation.node) is not function:
                    continue
                met = _met(module, operation)
                if met is None or met[0] in said:
                    continue
                if in_forward or _asks_for_device(module, function, module.text(met[1])):
                    said.add(met[0])
                    yield self._meets(module, *met, operation.node, in_forward)
        if parameter is not None:
            for made in _returned(module, function):
                if made not in said and not _under_device(module, made):
                    said.add(made)
                    yield self._comes_back(module, made, parameter)

    def _meets(
        self, module: Module, made: ast.Call, given: ast.expr, where: ast.AST, in_forward: bool
    ) -> Finding:
        shown = module.text(given)
        return self.finding(
            module,
            made,
            f"`{_short(module, made)}` is made on the default device and meets `{shown}`, "
            "which is where the caller put it",
            severity=Severity.ERROR if in_forward else Severity.WARNING,
            trail=[(where, f"it meets `{shown}` here")],
            fixes=[_with_device(module, made, f"{shown}.device")],
        )

    def _comes_back(self, module: Module, made: ast.Call, parameter: str) -> Finding:
        return self.finding(
            module,
            made,
            f"`{_short(module, made)}` is made on the default device, not on the `{parameter}` "
            "this function was given, and returned",
            severity=Severity.WARNING,
            confidence=Confidence.MEDIUM,
            fixes=[_with_device(module, made, parameter)],
        )


def _has_candidate(module: Module, function: FunctionNode) -> bool:
    """A look at the calls alone, before anything is asked that costs more."""
    return any(
        is_factory(module, call) and not any(each.arg == "device" for each in call.keywords)
        for call in module.nodes(ast.Call, function)
    )


def _met(module: Module, operation: Operation) -> tuple[ast.Call, ast.expr] | None:
    """The factory call and the argument whose tensors meet in the operation."""
    origins = [origin_of(module, each) for each in operation.tensors]
    made = _first(origins, Decides.DEFAULT)
    given = _first(origins, Decides.GIVEN)
    if not isinstance(made, ast.Call) or given is None or _under_device(module, made):
        return None
    if _is_on_cpu(module, made, given):
        return None
    return made, given


def _first(origins: list[Origin], decides: Decides) -> ast.expr | None:
    return next((each.node for each in origins if each.decides is decides), None)


def _is_on_cpu(module: Module, made: ast.AST, given: ast.expr) -> bool:
    """A condition says that what was given is on the CPU."""
    return any(guard.holds and guard.mentions("cpu") for guard in module.guards_of(made))


def _device_parameter(module: Module, function: FunctionNode) -> str | None:
    """A parameter of the function that is a device."""
    given = function.args
    for each in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        said = module.text(each.annotation) if each.annotation is not None else ""
        if "torch.device" in said or each.arg == "device":
            return each.arg
    return None


def _asks_for_device(module: Module, function: FunctionNode, of: str = "") -> bool:
    """The function asks where a tensor is: it may be anywhere."""
    return any(
        node.attr == "device" and module.qualified(node) != "torch.device"
        for node in module.nodes(ast.Attribute, function)
        if not of or module.text(node.value) == of
    )


def _is_method_of_module(module: Module, function: FunctionNode) -> bool:
    cls = module.class_of(function)
    if cls is None or module.parent(function) is not cls:
        return False
    facts = module.class_facts(cls)
    return facts is not None and facts.is_module


def _returned(module: Module, function: FunctionNode) -> Iterator[ast.Call]:
    for statement in module.nodes(ast.Return, function):
        if statement.value is None or module.function_of(statement) is not function:
            continue
        value = statement.value
        for each in value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]:
            origin = origin_of(module, each)
            if origin.decides is Decides.DEFAULT and isinstance(origin.node, ast.Call):
                yield origin.node


def _under_device(module: Module, made: ast.AST) -> bool:
    """Inside `with torch.device(...)` or another block that may set the default device."""
    return any("device" in module.text(each) for each in module.contexts_of(made))


def _with_device(module: Module, made: ast.Call, device: str) -> Fix | None:
    if module.qualified(made.func).rpartition(".")[2][:1].isupper():
        return None  # torch.LongTensor takes no device worth having
    if module.kind_of(made) is Kind.MODULE or not (made.args or made.keywords):
        return None
    given = next((each for each in made.keywords if each.arg == "device"), None)
    if given is not None:
        edit = module.replace(given.value, device)
    else:
        last = made.keywords[-1].value if made.keywords else made.args[-1]
        edit = module.insert_after(last, f", device={device}")
    return module.fix("make it where it is needed", Safety.UNSAFE, edit)


def _short(module: Module, node: ast.AST) -> str:
    text = " ".join(module.text(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
