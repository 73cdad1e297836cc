from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.findings import Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.defaults import with_defaults
from tensortrail.rules.devices.shared.named.only_with_cuda import asked_of_cuda, needs_cuda
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import file_around
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.view import FunctionNode


class CudaWhereCpuIsChosen(Rule):
    """A program chooses the CPU where there is no GPU, and calls a CUDA function all the same.

    ## What it does
    Reports `torch.cuda.synchronize()`, `torch.cuda.Stream()`, `get_device_name()` and others that
    raise without a GPU, in code that works with the result of
    `"cuda" if torch.cuda.is_available() else "cpu"`. The choice is made

    - earlier in the same function; or
    - at the top of the file or in the class, and the function uses it.

    As a note: in projects that call `torch.cuda.set_device`, whose programs run on GPUs.

    Not reported: a call under a condition about devices, in a `try`, or after a `return` for
    machines without a GPU.

    ## Why is this bad?
    On a machine without a GPU, the program raises at this call, after it has loaded and moved the
    model. It was written to run there.

    ## What you may see
    ```
    AssertionError: Torch not compiled with CUDA enabled
    ```

    ## Fix safety
    Unsafe: the call is put under `if torch.cuda.is_available()`. Only offered if nothing uses its
    result.

    ## References
    - facebookresearch/detectron2 pull request 530
    - black-forest-labs/flux, `cli_kontext.py`
    """

    code = "DEV622"
    name = "cuda-where-cpu-is-chosen"
    severity = Severity.WARNING
    explains = ("DEV510",)
    triggers = tuple(("is_available", f"cuda.{each}(") for each in needs_cuda())
    bad = (
        Bad(
            """\
import time
import torch

def timed(model, x):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device)
    start = time.time()
    model(x.to(device))
    torch.cuda.synchronize()
    return time.time() - start
""",
            lines=(9,),
            fixed="""\
import time
import torch

def timed(model, x):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device)
    start = time.time()
    model(x.to(device))
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.time() - start
""",
        ),
        Bad(
            """\
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"

def fed(batches):
    side = torch.cuda.Stream()
    for each in batches:
        with torch.cuda.stream(side):
            yield each.to(device)
""",
            lines=(6,),
            instead="""\
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"

def fed(batches):
    side = torch.cuda.Stream() if device == "cuda" else None
    for each in batches:
        with torch.cuda.stream(side):
            yield each.to(device)
""",
        ),
        Bad(
            """\
import torch

class Renderer:
    def __init__(self):
        if torch.cuda.is_available():
            self.where = torch.device("cuda")
        else:
            self.where = torch.device("cpu")

    def render(self, x):
        y = self.net(x.to(self.where))
        torch.cuda.current_stream().synchronize()
        return y
""",
            lines=(12,),
        ),
    )
    good = (
        Good(
            """\
import torch

def timed(model, x):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model(x.to(device))
    if device.type == "cuda":
        torch.cuda.synchronize()
"""
        ),
        Good(
            """\
import torch

def fed(batches):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type != "cuda":
        return [each.to(device) for each in batches]
    torch.cuda.synchronize()
    return [each.to(device) for each in batches]
"""
        ),
        Good(
            """\
import torch

def where(local_rank):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    torch.cuda.empty_cache()
    return device, name
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in asked_of_cuda(module):
            choice = _chosen_for(module, call)
            if choice is not None:
                yield self._reported(module, call, choice)

    def _reported(self, module: Module, call: ast.Call, choice: _Choice) -> Finding:
        statement = module.statement_of(call)
        alone = isinstance(statement, ast.Expr) and statement.value is call
        fix = module.wrap_in_if(statement, "torch.cuda.is_available()", Safety.UNSAFE)
        return self.finding(
            module,
            call,
            f"`{one_line(module, call.func)}` raises without a GPU, and line "
            f"{choice.node.lineno} chooses the CPU in that case",
            severity=Severity.NOTE if module.sets_current_gpu() else None,
            trail=[(choice.node, f"`{choice.name}` is the CPU without a GPU")],
            fixes=[fix] if alone and _names_torch(module) else [],
        )


class _Choice(NamedTuple):
    node: ast.expr | ast.stmt
    name: str
    """What holds the device that was chosen."""


def _chosen_for(module: Module, call: ast.Call) -> _Choice | None:
    """The choice of a device that the code around the call works with."""
    function = module.function_of(call)
    for choice in module.once(_choices, file_around(module, call)):
        around = _function_of(module, choice.node)
        before = (choice.node.lineno, choice.node.col_offset) < (call.lineno, call.col_offset)
        here = around is function and before
        beside = around is not function and (around is None or _is_kept(module, choice, call))
        if here or (function is not None and beside and _uses(module, function, choice.name)):
            return choice
    return None


def _function_of(module: Module, node: ast.AST) -> FunctionNode | None:
    """The function around it; of a default, the one that has it."""
    for up in module.ancestors(node):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return up
        if isinstance(up, ast.Lambda):
            return None
    return None


def _choices(module: Module, file: ast.AST) -> list[_Choice]:
    found = []
    for chosen in module.nodes(ast.IfExp, file):
        if _asks(module, chosen.test) and _is_cpu(chosen.orelse) and not _is_cpu(chosen.body):
            name = _bound_to(module, module.statement_of(chosen)) or _default_of(module, chosen)
            if name and "cuda" in module.text(chosen.body):
                found.append(_Choice(chosen, name))
    found.extend(_by_branch(module, file))
    return found


def _by_branch(module: Module, file: ast.AST) -> Iterator[_Choice]:
    """The names that get a GPU in a branch for machines that have one, and the CPU in another."""
    of_a_gpu, of_the_cpu = set[str](), dict[str, ast.stmt]()
    for branch in module.branches(file):
        holds = [each.holds for each in branch.guards if _asks(module, each.test)]
        for statement in branch.body if holds else ():
            name = _bound_to(module, statement)
            if isinstance(statement, ast.Assign) and name:
                if holds[0] and "cuda" in module.text(statement.value):
                    of_a_gpu.add(name)
                elif not holds[0] and _is_cpu(statement.value):
                    of_the_cpu[name] = statement
    yield from (_Choice(of_the_cpu[each], each) for each in sorted(of_a_gpu & of_the_cpu.keys()))


def _asks(module: Module, test: ast.expr) -> bool:
    """`torch.cuda.is_available()`, alone or with others that have to hold too."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_asks(module, each) for each in test.values)
    return isinstance(test, ast.Call) and module.qualified(test.func) == "torch.cuda.is_available"


def _is_cpu(value: ast.expr) -> bool:
    if isinstance(value, ast.IfExp):
        return _is_cpu(value.orelse)
    said = value.args[0] if isinstance(value, ast.Call) and value.args else value
    return isinstance(said, ast.Constant) and said.value == "cpu"


def _bound_to(module: Module, statement: ast.stmt) -> str:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return ""
    target = statement.targets[0]
    is_kept = isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name)
    return module.text(target) if is_kept or isinstance(target, ast.Name) else ""


def _default_of(module: Module, chosen: ast.IfExp) -> str:
    """The parameter whose default it is."""
    for function in module.nodes(ast.FunctionDef):
        for each, default in with_defaults(function.args):
            if default is chosen:
                return each.arg
    return ""


def _is_kept(module: Module, choice: _Choice, call: ast.Call) -> bool:
    """`self.device` of the same class."""
    cls = module.class_of(call)
    return (
        choice.name.startswith("self.") and cls is not None and cls is module.class_of(choice.node)
    )


def _uses(module: Module, function: FunctionNode, name: str) -> bool:
    if "." in name and not name.startswith("self."):
        return False
    if name.startswith("self."):
        return any(module.text(each) == name for each in module.members(name[5:], function))
    own = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
    uses = module.uses(name, function)
    return name not in own and bool(uses) and all(isinstance(e.ctx, ast.Load) for e in uses)


def _names_torch(module: Module) -> bool:
    return any(each.name == "torch" for each in module.nodes(ast.alias) if each.asname is None)
