from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_before, names_in
from tensortrail.rules.shared.origins import names_behind
from tensortrail.rules.shared.sentences import one_line

_SAVES = {"torch.save": 1, "safetensors.torch.save_file": 1}
_LOADS = ("torch.load", "safetensors.torch.load_file")
_RANK = re.compile(r"rank|is_(?:local_|world_)?(?:main|master|zero)", re.IGNORECASE)
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
            path = module.argument(save, _SAVES[module.qualified(save.func)], "f")
            path = path or module.argument(save, 1, "filename")
            branch = _of_one_rank(module, save)
            if path is None or branch is None:
                continue
            load = _read(module, branch, module.text(path))
            if load is not None:
                yield self.finding(
                    module,
                    load,
                    f"line {save.lineno} writes `{one_line(module, path)}` on one process, and "
                    "nothing lets the others wait for it before they read it here",
                    trail=[(branch.test, "one process"), (save, "written"), (load, "read by all")],
                )


def _of_one_rank(module: Module, save: ast.Call) -> ast.If | None:
    """The `if rank == 0:` that the write stands in, and nothing else that asks."""
    for up in module.ancestors(save):
        if isinstance(up, (ast.FunctionDef, ast.AsyncFunctionDef, ast.For, ast.While)):
            return None
        if isinstance(up, ast.If):
            return up if _is_of_rank(module, up) and not up.orelse else None
    return None


def _is_of_rank(module: Module, branch: ast.If) -> bool:
    said = " ".join([module.text(branch.test), *sorted(names_behind(module, branch.test))])
    return bool(_RANK.search(said))


def _read(module: Module, branch: ast.If, path: str) -> ast.Call | None:
    """The load of the same file that every process runs, if nothing waits before it."""
    if any(isinstance(each, (ast.Return, ast.Raise)) for each in ast.walk(branch)):
        return None
    inside = {id(each) for each in ast.walk(branch)}
    for call in module.later(branch, ast.Call):
        if id(call) in inside or module.function_of(call) is not module.function_of(branch):
            continue
        if _WAITS.search(called(call)):
            return None
        given = call.args[0] if call.args else None
        is_load = module.qualified(call.func) in _LOADS and given is not None
        if is_load and given is not None and module.text(given) == path:
            asked = any(isinstance(up, (ast.If, ast.IfExp)) for up in module.ancestors(call))
            return None if asked or _is_rebound(module, branch, call, given) else call
    return None


def _is_rebound(module: Module, branch: ast.If, load: ast.Call, path: ast.expr) -> bool:
    function = module.function_of(load)
    names = names_in(path)
    return any(
        isinstance(each.ctx, ast.Store) and is_before(branch, each) and is_before(each, load)
        for name in names
        for each in module.uses(name, function)
    )
