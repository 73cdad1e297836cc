from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.given_devices import said_device
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_self, keyword
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.shared.ranks import number, variable_read

_OF_ALL = frozenset({"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"})
"""Variables with the number of the process among those of all machines."""
_ONE = pattern(r"[=<>] 1\b")
_TAKES_NUMBER = frozenset({"cuda", "set_device"})


class GlobalRankAsGpu(Rule):
    """The global rank, counted over all machines, is used as the number of a GPU.

    ## What it does
    Reports `torch.distributed.get_rank()`, or the variable `RANK`, where the number of a GPU
    belongs: `torch.cuda.set_device(rank)`, `x.to(rank)`, `x.cuda(rank)`, `device=rank`,
    `device_ids=[rank]`, `torch.device("cuda", rank)` and `f"cuda:{rank}"`, directly, through a
    variable, or as an attribute that the class sets to it.

    Not reported: `rank % torch.cuda.device_count()`, the rank in a group, and code under a
    condition about the number of machines.

    ## Why is this bad?
    It works on one machine. On the second one the ranks begin with 8, and torch raises "invalid
    device ordinal": each machine counts its own GPUs from 0.

    ## Fix safety
    No fix is offered: the launcher decides where the local rank is found, usually in `LOCAL_RANK`.

    ## References
    - axolotl-ai-cloud/axolotl, commit 2fe95cdcc1, values gathered from all ranks
    - pytorch documentation of `torchrun`, `LOCAL_RANK`
    """

    code = "DEV655"
    name = "global-rank-as-gpu"
    severity = Severity.NOTE
    triggers = tuple(
        (word, used)
        for word in ("get_rank", *(f"{quote}{name}" for name in sorted(_OF_ALL) for quote in "'\""))
        for used in ("cuda", "device", ".to(")
    )

    bad = (
        Bad(
            """\
import torch
import torch.distributed as dist

def started(model):
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    return model.cuda()
""",
            lines=(6,),
            instead="""\
import os

import torch
import torch.distributed as dist

def started(model):
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    return model.cuda()
""",
        ),
        Bad(
            """\
import torch
import torch.distributed as dist

def gathered(value):
    rank = dist.get_rank()
    found = torch.tensor(value, device=rank)
    place = torch.device(f"cuda:{rank}")
    dist.all_reduce(found)
    return found.to(place)
""",
            lines=(6, 7),
        ),
        Bad(
            """\
import os

import torch

def placed(model):
    rank = int(os.environ["RANK"])
    return model.to(rank)
""",
            lines=(7,),
        ),
        Bad(
            """\
import torch.distributed as dist

class Checkpoints:
    def __init__(self):
        self._rank = None

    @property
    def rank(self):
        if self._rank is None:
            self._rank = dist.get_rank()
        return self._rank

    def saved(self):
        dist.barrier(device_ids=[self.rank])
""",
            lines=(14,),
        ),
    )
    good = (
        Good(
            """\
import torch
import torch.distributed as dist

def started(model):
    torch.cuda.set_device(dist.get_rank() % torch.cuda.device_count())
    return model.cuda()
"""
        ),
        Good(
            """\
import os
import torch.distributed as dist

class Checkpoints:
    def __init__(self):
        self.rank = dist.get_rank()
        self.gpu = int(os.environ["LOCAL_RANK"])

    def saved(self):
        dist.barrier(device_ids=[self.gpu])
"""
        ),
        Good(
            """\
import os

import torch
import torch.distributed as dist

def placed(model, group):
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(dist.get_rank(group))
    return model.to(rank), torch.tensor(dist.get_rank(), device="cuda")
"""
        ),
        Good(
            """\
import torch
import torch.distributed as dist

def placed(model, nodes):
    if nodes == 1:
        torch.cuda.set_device(dist.get_rank())
    return model
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for said in _numbers_of_gpus(module):
            if _is_global_rank(module, _made(module, said)) and not _asks_for_nodes(module, said):
                yield self.finding(
                    module,
                    said,
                    f"`{module.text(said)}` counts the processes of all machines: from the second "
                    "machine on, it is not the number of a GPU",
                )


def _numbers_of_gpus(module: Module) -> Iterator[ast.expr]:
    """Expressions that choose a GPU by their value."""
    for call in module.nodes(ast.Call):
        said = said_device(module, call)
        if said is not None:
            yield said
        elif called(call) in _TAKES_NUMBER and call.args:
            yield call.args[0]
        elif isinstance(listed := keyword(call, "device_ids"), ast.List) and len(listed.elts) == 1:
            yield listed.elts[0]
        elif module.qualified(call.func) == "torch.device" and call.args:
            yield call.args[-1]
    for text in module.nodes(ast.JoinedStr):
        for before, value in zip(text.values, text.values[1:], strict=False):
            named = isinstance(before, ast.Constant) and str(before.value).endswith("cuda:")
            if named and isinstance(value, ast.FormattedValue):
                yield value.value


def _made(module: Module, node: ast.expr) -> ast.expr:
    """What the variable was bound to, or the attribute in its class, also behind a property."""
    cls = module.class_of(node)
    if not isinstance(node, ast.Attribute) or not is_self(node.value) or cls is None:
        return behind(module, node)
    name = _behind_property(module, cls, node.attr)
    stored = [
        above.value
        for each in module.members(name, cls)
        if isinstance(each.ctx, ast.Store) and isinstance(above := module.parent(each), ast.Assign)
    ]
    told = [each for each in stored if not isinstance(each, ast.Constant)]
    return told[0] if len(told) == 1 else node


def _behind_property(module: Module, cls: ast.ClassDef, name: str) -> str:
    """`_rank` of a property `rank` that returns `self._rank` in the end."""
    for each in cls.body:
        if isinstance(each, ast.FunctionDef) and each.name == name and each.decorator_list:
            returned = [one.value for one in module.nodes(ast.Return, each)]
            if len(returned) == 1 and isinstance(returned[0], ast.Attribute):
                return returned[0].attr
    return name


def _is_global_rank(module: Module, made: ast.expr) -> bool:
    made = number(module, made)
    if isinstance(made, ast.Call) and module.qualified(made.func) == "torch.distributed.get_rank":
        return not (made.args or made.keywords)
    return variable_read(module, made) in _OF_ALL


def _asks_for_nodes(module: Module, node: ast.AST) -> bool:
    """A number is compared with one, as that of the machines is, or the condition names them."""
    return any("node" in each.text or _ONE.search(each.text) for each in module.guards_of(node))
