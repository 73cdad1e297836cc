from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.named.named_gpus import is_cuda_literal
from tensortrail.rules.shared.imports import imported_packages
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, keyword
from tensortrail.rules.shared.origins import text_behind
from tensortrail.rules.shared.sentences import one_line

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_ASKS = (
    "is_available", "init", "current_device", "get_device_name", "get_device_properties",
    "get_device_capability", "set_device", "synchronize", "mem_get_info",
    "is_bf16_supported",
)  # fmt: skip
_FOR_OTHERS = re.compile(r"subprocess|Popen|Process|os\.system|spawn|execv|launch|ray\.|restart")
"""The variable may be meant for processes that are started after it."""
_OTHER_LIBRARIES = ("tensorflow", "jax", "cupy", "paddle", "numba", "vllm")


class VisibleDevicesTooLate(Rule):
    """`CUDA_VISIBLE_DEVICES` is set after the program has begun to use CUDA.

    ## What it does
    Reports, as a note, `os.environ["CUDA_VISIBLE_DEVICES"] = ...`, if the same function, or the top
    of the file above it, has used CUDA before: `torch.cuda.is_available()` and the like, `.cuda()`,
    `.to("cuda")` or `device="cuda"`.

    Not reported: a variable that may be meant for processes started later, code that reads the old
    value to restore it, and files that import other libraries that use CUDA.

    ## Why is this bad?
    The program runs on the first GPU, together with all others that were started the same way: CUDA
    reads the variable once, at its first use. Later values change nothing, and no message says so.

    ## Fix safety
    No fix is offered: the line belongs before `import torch`, or in the shell.

    ## References
    - pytorch documentation, "CUDA environment variables"
    """

    code = "DEV597"
    name = "visible-devices-too-late"
    severity = Severity.WARNING
    warns = False
    triggers = ((_VARIABLE, "cuda"),)

    bad = (
        Bad(
            """\
import argparse
import os

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", default="0")
    os.environ["CUDA_VISIBLE_DEVICES"] = parser.parse_args().gpu
    return torch.zeros(2, device=device)
""",
            lines=(12,),
            instead="""\
import argparse
import os

import torch


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu", default="0")
    os.environ["CUDA_VISIBLE_DEVICES"] = parser.parse_args().gpu
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.zeros(2, device=device)
""",
        ),
        Bad(
            """\
import os
import torch


def prepared(model, gpu):
    model = model.to("cuda")
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    return model
""",
            lines=(7,),
        ),
    )
    good = (
        Good(
            """\
import os
import torch


def prepared(model, gpu):
    os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
    return model.to("cuda")
"""
        ),
        Good(
            """\
import os
import subprocess
import torch


def started(script):
    for gpu in range(torch.cuda.device_count()):
        print(torch.cuda.get_device_name(gpu))
        os.environ["CUDA_VISIBLE_DEVICES"] = str(gpu)
        subprocess.Popen(["python", script])
"""
        ),
        Good(
            """\
import os
import torch


def hidden(work):
    old = os.environ.get("CUDA_VISIBLE_DEVICES")
    if torch.cuda.is_available():
        work()
    os.environ["CUDA_VISIBLE_DEVICES"] = old or ""


def cpu_only():
    if not torch.cuda.is_available():
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
"""
        ),
        Good(
            """\
import os
import torch

def measured(load, count):
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(count)))
    load()
    return torch.cuda.memory_allocated() - before
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module) or not imported_packages(module).isdisjoint(_OTHER_LIBRARIES):
            return
        for assign in module.nodes(ast.Assign):
            if not _sets(module, assign) or _is_meant_for_others(module, assign):
                continue
            asked = next(_asked_before(module, assign), None)
            if asked is not None:
                yield self.finding(
                    module,
                    assign,
                    f"the assignment comes too late to change anything: CUDA read the variable "
                    f"when line {asked.lineno} asked for the GPUs",
                    severity=None if _is_always_asked(module, asked, assign) else Severity.NOTE,
                    trail=[(asked, f"`{one_line(module, asked)}` comes first")],
                )


def _sets(module: Module, assign: ast.Assign) -> bool:
    match assign.targets:
        case [ast.Subscript(value=where, slice=name)]:
            known = module.value_of(name).constant == _VARIABLE
            return known and module.qualified(where) == "os.environ"
    return False


def _is_meant_for_others(module: Module, assign: ast.Assign) -> bool:
    """Processes that start later read it, it is put back to what it was, or nothing is there."""
    around = module.function_of(assign)
    told = [text_behind(module, each.test) for each in module.guards_of(assign)]
    if any("is_available" in each or "device_count" in each for each in told):
        return True
    scope = around if around is not None else module.top
    asked = module.calls("get", "pop", "getenv", inside=scope)
    if any(_reads_it(module, each) for each in asked):
        return True
    return any(
        _FOR_OTHERS.search(f"{module.qualified(each.func)} {module.text(each.func)}")
        for each in module.nodes(ast.Call, scope)
    )


def _reads_it(module: Module, call: ast.Call) -> bool:
    """Of the environment, the variable or what a name stands for."""
    said = next(iter(call.args), None)
    of_system = module.qualified(call.func).startswith(("os.environ.", "os.getenv"))
    known = module.value_of(said).constant if said is not None else None
    return known == _VARIABLE or (of_system and not isinstance(known, str))


def _asked_before(module: Module, assign: ast.Assign) -> Iterator[ast.Call]:
    for call in module.earlier(assign, ast.Call):
        if _asks(module, call) and module.function_of(call) is module.function_of(assign):
            yield call
    around = module.function_of(assign)
    while around is not None and module.function_of(around) is not None:
        around = module.function_of(around)
    if around is None:
        return
    for call in module.calls(*_ASKS, "cuda", "to", inside=module.top):
        at_top = module.function_of(call) is None and module.class_of(call) is None
        if at_top and call.lineno < around.lineno and _asks(module, call):
            yield call


def _is_always_asked(module: Module, asked: ast.Call, assign: ast.Assign) -> bool:
    """No condition stands between the two."""
    here = {(each.text, each.holds) for each in module.guards_of(assign)}
    return all((each.text, each.holds) in here for each in module.guards_of(asked))


def _asks(module: Module, call: ast.Call) -> bool:
    name = module.qualified(call.func)
    if name.startswith("torch.cuda."):
        return name.rpartition(".")[2] in _ASKS
    if called(call) == "cuda" and isinstance(call.func, ast.Attribute):
        return True
    moves = called(call) == "to"
    said = keyword(call, "device") if moves or name.startswith("torch.") else None
    if moves and call.args:
        said = call.args[0]
    return said is not None and is_cuda_literal(module, said) and name != "torch.device"
