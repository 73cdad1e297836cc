from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_before, names_in
from tensortrail.rules.shared.ranks import asks_for_rank, mentions_rank
from tensortrail.rules.shared.sentences import one_line

_SAVES = {"torch.save": "f", "safetensors.torch.save_file": "filename"}
_LOADS = {"torch.load": "f", "safetensors.torch.load_file": "filename"}
"""What they call the file."""
_WAITS = re.compile(
    r"barrier|wait|sync|broadcast|all_reduce|all_gather|reduce|gather|scatter|first|exists|sleep",
    re.IGNORECASE,
)


class ReadBeforeWritten(Rule):
    """One process writes a file, and the others read it without waiting.

    ## What it does
    Reports `torch.load(path)` on every process after `if rank == 0: torch.save(..., path)` in the
    same function, if nothing between the two lets the processes wait for each other.

    Not reported: a load that only the writing process runs, and a collective of any sort between
    the two.

    ## Why is this bad?
    The others find no file, an old one, or half of the new one, depending on how fast they are: an
    error in some runs, and other weights on other processes in the rest.

    ## Fix safety
    No fix is offered: `torch.distributed.barrier()` belongs between the two, on all processes.

    ## References
    - pytorch tutorial "Getting Started with Distributed Data Parallel": save and load checkpoints
    """

    code = "SHD462"
    name = "read-before-written"
    severity = Severity.ERROR
    proven = False
    confidence = Confidence.MEDIUM
    triggers = (("save", "load", "rank"), ("save", "load", "is_"))

    bad = (
        Bad(
            """\
import torch
import torch.distributed as dist

def share(net, path):
    if dist.get_rank() == 0:
        torch.save(net.state_dict(), path)
    net.load_state_dict(torch.load(path, map_location="cuda"))
""",
            lines=(7,),
            instead="""\
import torch
import torch.distributed as dist

def share(net, path):
    if dist.get_rank() == 0:
        torch.save(net.state_dict(), path)
    dist.barrier()
    net.load_state_dict(torch.load(path, map_location="cuda"))
""",
        ),
    )
    good = (
        Good(
            """\
import torch
import torch.distributed as dist

def own(net, path):
    if dist.get_rank() == 0:
        torch.save(net.state_dict(), path)
        net.load_state_dict(torch.load(path, map_location="cuda"))

def averaged(net, path):
    if dist.get_rank() == 0:
        torch.save(net.state_dict(), path)
    dist.all_reduce(net.weight)
    net.load_state_dict(torch.load(path, map_location="cuda"))

def other(net, path, start):
    if dist.get_rank() == 0:
        torch.save(net.state_dict(), path)
    net.load_state_dict(torch.load(start, map_location="cuda"))

def returned(net, path, rank):
    if rank == 0:
        torch.save(net.state_dict(), path)
        return
    if rank == 1:
        print(torch.load(path))

def plain(net, path, last):
    if last:
        torch.save(net.state_dict(), path)
    return torch.load(path)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for save in module.calls(*_SAVES):
            path = module.argument(save, 1, _SAVES[module.qualified(save.func)])
            rank = _of_one_rank(module, save)
            if path is None or rank is None:
                continue
            load = _read(module, save, path, rank)
            if load is not None:
                yield self.finding(
                    module,
                    load,
                    f"line {save.lineno} writes `{one_line(module, path)}` on one process, and "
                    "nothing lets the others wait for it before they read it here",
                    trail=[(save, "written by one process"), (load, "read by all")],
                )


def _of_one_rank(module: Module, save: ast.Call) -> frozenset[str] | None:
    """The other conditions of a write that only one process comes to."""
    guards = module.guards_of(save)
    ranks = [e for e in guards if asks_for_rank(module, e.test) or mentions_rank(module, e.test)]
    return frozenset(e.text for e in guards if e not in ranks) if ranks else None


def _read(
    module: Module, save: ast.Call, path: ast.expr, others: frozenset[str]
) -> ast.Call | None:
    """The load of the same file that every process runs, if nothing waits before it."""
    function = module.function_of(save)
    for call in module.later(save, ast.Call):
        if module.function_of(call) is not function:
            continue
        if _WAITS.search(called(call)):
            return None
        name = _LOADS.get(module.qualified(call.func))
        given = module.argument(call, 0, name) if name is not None else None
        if given is None or module.text(given) != module.text(path) or not is_before(save, call):
            continue
        by_all = {each.text for each in module.guards_of(call)} <= others
        return call if by_all and not _is_rebound(module, save, call, given) else None
    return None


def _is_rebound(module: Module, save: ast.Call, load: ast.Call, path: ast.expr) -> bool:
    function = module.function_of(load)
    return any(
        isinstance(each.ctx, ast.Store) and is_before(save, each) and is_before(each, load)
        for name in names_in(path)
        for each in module.uses(name, function)
    )
