from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.places import Held, Place, What, Where
from tensortrail.rules.shared.annotations import names_said
from tensortrail.rules.shared.functions import called_here, matched, parameters
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, receiver
from tensortrail.rules.shared.sentences import one_line

_MAY_SEND = re.compile(r"obj|gather|broadcast|sync|collect|scatter|send", re.IGNORECASE)
_OTHER_BACKENDS = ("gloo", "mpi")
_ON_GPU = frozenset({Where.SELF.value, Where.DEVICE.value, "cuda"})
_ON_CPU = frozenset({Where.HOST.value, Where.DEFAULT.value, "cpu"})
_DEPTH = 3
_TEXTS_AND_NUMBERS = frozenset({"str", "bytes", "int", "float", "bool"})
_OF_THEM = _TEXTS_AND_NUMBERS.union(
    ("list", "List", "tuple", "Tuple", "set", "Set", "Sequence", "dict", "Dict", "Optional")
)
"""Names in an annotation of values that are no tensors, and hold none."""


class _Sent(NamedTuple):
    tensor: ast.expr
    is_on_gpu: bool
    """The code says that it is where the model is, or on a device of the program."""


class TensorSentAsObject(Rule):
    """A tensor on a GPU is pickled for other processes and arrives on the sender's GPU.

    ## What it does
    Reports `all_gather_object`, `gather_object`, `broadcast_object_list`, `scatter_object_list` and
    `send_object_list` of `torch.distributed`, and project functions that pass their argument on to
    one of these, if a tensor is sent, or a list, tuple or dict with one, and nothing has brought it
    to the CPU.

    Reported as a note if nothing shows that the tensor is on a GPU.

    Not reported: files that name another backend than NCCL, or read it from elsewhere.

    ## Why is this bad?
    `torch.cat` or `sum` over the gathered tensors raises, and every process takes memory of every
    GPU of the machine: a pickled tensor keeps the number of its device, so rank 0 gets the tensor
    of rank 3 on `cuda:3`.

    ## Fix safety
    Unsafe: the received tensor is on the CPU.

    ## References
    - pytorch/pytorch documentation of `torch.distributed.all_gather_object`
    - NVIDIA/Model-Optimizer: scores of layers were summed over ranks as objects
    """

    code = "DEV596"
    name = "tensor-sent-as-object"
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    triggers = (("gather", "_object"), ("_object_list",), ("_obj(", "ist"))

    bad = (
        Bad(
            """\
import torch
import torch.distributed as dist

def evaluate(model, loader, device):
    model.to(device)
    found = []
    for rows in loader:
        found.append(model(rows.to(device)).argmax(-1))
    answers = torch.cat(found)
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, answers)
    return torch.cat(gathered)
""",
            lines=(11,),
            fixed="""\
import torch
import torch.distributed as dist

def evaluate(model, loader, device):
    model.to(device)
    found = []
    for rows in loader:
        found.append(model(rows.to(device)).argmax(-1))
    answers = torch.cat(found)
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, answers.cpu())
    return torch.cat(gathered)
""",
        ),
        Bad(
            """\
import torch
import torch.distributed as dist
from torch import nn

class Scored(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def summary(self, step):
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, {"step": step, "norm": self.weight.norm()})
        return everyone
""",
            lines=(12,),
            fixed="""\
import torch
import torch.distributed as dist
from torch import nn

class Scored(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def summary(self, step):
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, {"step": step, "norm": self.weight.norm().cpu()})
        return everyone
""",
        ),
        Bad(
            """\
import torch
import torch.distributed as dist

def of_all(obj, reduce):
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, obj)
    return reduce(found)

def total(rows: torch.Tensor):
    score = of_all(rows.square().mean(), sum)
    return score.cpu().item()
""",
            lines=(10,),
            fixed="""\
import torch
import torch.distributed as dist

def of_all(obj, reduce):
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, obj)
    return reduce(found)

def total(rows: torch.Tensor):
    score = of_all(rows.square().mean().cpu(), sum)
    return score.cpu().item()
""",
        ),
        Bad(
            """\
import torch.distributed as dist

def total(scores, name):
    score = scores[name]
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, score)
    return score.cpu().item(), everyone
""",
            lines=(6,),
            fixed="""\
import torch.distributed as dist

def total(scores, name):
    score = scores[name]
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, score.cpu())
    return score.cpu().item(), everyone
""",
        ),
    )
    good = (
        Good(
            """\
import torch
import torch.distributed as dist

def evaluate(model, loader, device):
    model.to(device)
    found = []
    for rows in loader:
        found.append(model(rows.to(device)).argmax(-1).cpu())
    answers = torch.cat(found)
    gathered = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, answers)
    return torch.cat(gathered)
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist

def summary(rows: torch.Tensor, names):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, {"mean": rows.mean().item(), "rows": rows.tolist()})
    dist.broadcast_object_list([names, len(rows), rows.shape], src=0)
    return everyone
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist

dist.init_process_group("gloo")

def summary(rows: torch.Tensor):
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, rows.mean())
    return everyone
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist

def of_all(obj):
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, obj)
    return found

def total(rows: torch.Tensor):
    return sum(of_all(rows.square().mean().cpu()))
"""
        ),
        Good(
            """\
import torch.distributed as dist

def total(scores, name):
    score = scores[name]
    if score is None:
        return 0
    score = score.cpu()
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, score)
    return sum(everyone).item()
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist

def of_all(said: list[str]):
    found = [None] * dist.get_world_size()
    dist.all_gather_object(found, said)
    return found[0]

def summary(batch: dict[str, torch.Tensor]):
    batch["url"] = of_all(batch["url"])
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module) or _may_use_other_backend(module):
            return
        own = {each.name for each in module.nodes(ast.FunctionDef)}
        for call in module.nodes(ast.Call):
            if called(call) not in own and not _MAY_SEND.search(called(call)):
                continue
            sent = next(_sent(module, call), None)
            if sent is not None:
                yield self._reported(module, call, sent)

    def _reported(self, module: Module, call: ast.Call, sent: _Sent) -> Finding:
        shown = one_line(module, sent.tensor)
        return self.finding(
            module,
            call,
            f"`{shown}` is pickled with the number of its GPU: every process gets it on the GPU of "
            "the process that sent it",
            severity=Severity.WARNING if sent.is_on_gpu else Severity.NOTE,
            fixes=[_brought_to_cpu(module, sent.tensor)],
        )


def _sent(module: Module, call: ast.Call) -> Iterator[_Sent]:
    """The tensors that the call sends and that nothing has brought to the CPU."""
    for argument in module.sent_to_processes(call):
        if _is_no_tensor(module, call, argument):
            continue
        function = module.function_of(call)
        seen = module.places(function or module.top).seen
        for each in _parts(module, argument, _DEPTH):
            held = seen.get(each, Held())
            if held.what is What.TENSOR or _is_surely_a_tensor(module, each):
                where = {_device_or_sort(place) for place in held.places}
                if not held.places:
                    where = {module.placement_at(each).device}
                if where.isdisjoint(_ON_CPU):
                    yield _Sent(each, not where.isdisjoint(_ON_GPU))


def _is_no_tensor(module: Module, call: ast.Call, argument: ast.expr) -> bool:
    """The function of the file that sends it on takes texts or numbers there."""
    function = called_here(module, call)
    if function is None:
        return False
    names = {name for name, given in matched(function, call) if given is argument}
    said = {
        each.rpartition(".")[2]
        for parameter in parameters(function)
        if parameter.arg in names and parameter.annotation is not None
        for each in names_said(module, parameter.annotation)
    }
    return not said.isdisjoint(_TEXTS_AND_NUMBERS) and said <= _OF_THEM


def _device_or_sort(place: Place) -> str:
    return place.subject if place.where is Where.LITERAL else place.where.value


def _is_surely_a_tensor(module: Module, node: ast.expr) -> bool:
    value = module.value_of(node)
    return (value.is_tensor and value.sure) or (
        not value.kinds and _is_asked_for_a_copy(module, node)
    )


def _is_asked_for_a_copy(module: Module, node: ast.expr) -> bool:
    """`score.cpu()` stands elsewhere in the function: what has to be brought to the CPU."""
    if not isinstance(node, ast.Name):
        return False
    function = module.function_of(node)
    owners = (receiver(each) for each in module.calls("cpu", inside=function))
    return any(isinstance(each, ast.Name) and each.id == node.id for each in owners)


def _parts(module: Module, node: ast.expr, depth: int) -> Iterator[ast.expr]:
    """The object, or what a literal collects."""
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            pass
        case ast.Dict(values=parts):
            pass
        case _:
            yield node
            return
    if depth:
        for each in parts:
            yield from _parts(module, each, depth - 1)


def _may_use_other_backend(module: Module) -> bool:
    """The file names another backend, or starts the processes with one that is not written out."""
    named = [module.argument(each, 0, "backend") for each in module.calls("init_process_group")]
    if any(each is not None and not isinstance(each, ast.Constant) for each in named):
        return True
    return any(
        isinstance(each.value, str) and any(word in each.value for word in _OTHER_BACKENDS)
        for each in module.nodes(ast.Constant)
    )


def _brought_to_cpu(module: Module, tensor: ast.expr) -> Fix | None:
    if not isinstance(tensor, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
        return None
    edit = module.replace(tensor, f"{module.text(tensor)}.cpu()")
    return module.fix("send it from the CPU", Safety.UNSAFE, edit)
