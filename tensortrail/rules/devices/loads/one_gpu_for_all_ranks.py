from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.ranks import asks_for_rank, mentions_rank
from tensortrail.rules.shared.sentences import one_line

_JOINS = ("torch.distributed.init_process_group",)


class OneGpuForAllRanks(Rule):
    """Every process of a distributed run loads a checkpoint onto one GPU, whatever its own is.

    ## What it does
    Reports `torch.load(..., map_location="cuda:0")`, or another GPU by its number, in a function
    that joins a process group, or in a function of the same file that it calls.

    Not reported: a load under a condition about the rank.

    ## Why is this bad?
    Each process keeps a copy of the checkpoint, and a CUDA context, on that GPU as well as on its
    own: with eight processes GPU 0 holds eight copies and is the first to be full.

    ## Fix safety
    No fix is offered: `map_location="cpu"`, or the device of the process.

    ## References
    - pytorch tutorial "Getting Started with Distributed Data Parallel", save and load checkpoints
    """

    code = "DEV631"
    name = "one-gpu-for-all-ranks"
    severity = Severity.WARNING
    proven = False
    triggers = (("init_process_group", "map_location"),)

    bad = (
        Bad(
            """\
import os

import torch
import torch.distributed as dist

def main(model):
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    model.load_state_dict(torch.load("init.pt", map_location="cuda:0"))
    return model.to(rank)
""",
            lines=(9,),
            instead="""\
import os

import torch
import torch.distributed as dist

def main(model):
    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    model.load_state_dict(torch.load("init.pt", map_location="cpu"))
    return model.to(rank)
""",
        ),
    )
    good = (
        Good(
            """\
import torch
import torch.distributed as dist

def main(model, rank):
    dist.init_process_group("nccl")
    model.load_state_dict(torch.load("init.pt", map_location=f"cuda:{rank}"))
    if rank == 0:
        state = torch.load("init.pt", map_location="cuda:0")
    where = "cuda:0"
    where = "cpu"
    return torch.load("init.pt", map_location=where)

def alone(model):
    return torch.load("init.pt", map_location="cuda:0")
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        joins = {module.function_of(each): each for each in module.calls(*_JOINS)}
        called = {
            each.func.id: joins[function]
            for function in joins
            for each in module.nodes(ast.Call, function)
            if isinstance(each.func, ast.Name)
        }
        for load in module.calls("torch.load"):
            place = next((e.value for e in load.keywords if e.arg == "map_location"), None)
            function = module.function_of(load)
            name = function.name if function is not None else ""
            join = joins.get(function) or called.get(name)
            if place is None or join is None or not _is_numbered(module, place):
                continue
            if not _is_of_one_rank(module, load):
                yield self.finding(
                    module,
                    load,
                    f"every process loads the checkpoint onto `{one_line(module, place)}`, even if "
                    "its own GPU is another one: that GPU runs out of memory first",
                    trail=[(join, "the processes form their group here")],
                )


def _is_numbered(module: Module, place: ast.expr) -> bool:
    said = module.value_of(place).constant
    if isinstance(place, ast.Call) and module.qualified(place.func) == "torch.device":
        said = module.value_of(place.args[0]).constant if len(place.args) == 1 else None
    return isinstance(said, str) and said.startswith("cuda:") and said[5:].isdigit()


def _is_of_one_rank(module: Module, load: ast.Call) -> bool:
    """`if rank == 0`, `if is_main_process`: under a comparison with a number, or a question for the
    rank."""
    for guard in module.guards_of(load):
        compared = guard.test.comparators if isinstance(guard.test, ast.Compare) else []
        if any(isinstance(e, ast.Constant) and type(e.value) is int for e in compared):
            return True
        if asks_for_rank(module, guard.test) or mentions_rank(module, guard.test):
            return True
    return False
