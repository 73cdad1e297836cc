from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, given, is_none, keyword, receiver
from tensortrail.rules.shared.origins import behind

_SETS = (
    "torch.set_rng_state",
    "torch.random.set_rng_state",
    "torch.cuda.set_rng_state",
    "torch.cuda.set_rng_state_all",
    "torch.cuda.random.set_rng_state",
    "torch.cuda.random.set_rng_state_all",
)


class RandomStateOnDevice(Rule):
    """The state of a random generator is loaded onto a GPU, but torch needs it on the CPU.

    ## What it does
    Reports `torch.set_rng_state(...)` and `torch.cuda.set_rng_state(...)` of a part of a checkpoint
    that `torch.load` read with a `map_location` that is, or may be, a GPU.

    ## Why is this bad?
    On a GPU, the program raises when it is resumed: `map_location` moves every tensor of the file,
    also the states of the generators. These are bytes on the CPU, even for a generator of a GPU. On
    the CPU it works.

    ## What you may see
    ```
    TypeError: RNG state must be a torch.ByteTensor
    ```

    ## Fix safety
    Unsafe: the state is moved to the CPU. Loading the whole file there may be better.

    ## References
    - pytorch/pytorch, `torch.Generator.set_state`
    """

    code = "DEV598"
    name = "random-state-on-device"
    severity = Severity.WARNING
    proven = False
    triggers = (("set_rng_state", "map_location"),)

    bad = (
        Bad(
            """\
import torch


def resume(model, path, device):
    state = torch.load(path, map_location=device)
    model.load_state_dict(state["model"])
    torch.set_rng_state(state["rng"])
""",
            lines=(7,),
            fixed="""\
import torch


def resume(model, path, device):
    state = torch.load(path, map_location=device)
    model.load_state_dict(state["model"])
    torch.set_rng_state(state["rng"].cpu())
""",
        ),
        Bad(
            """\
import torch


def resume(path):
    found = torch.load(path, map_location="cuda:0")
    states = found["random"]
    torch.cuda.set_rng_state_all(states["cuda"])
    torch.random.set_rng_state(states.get("cpu"))
""",
            lines=(7, 8),
        ),
    )
    good = (
        Good(
            """\
import torch


def resume(model, path, device):
    state = torch.load(path, map_location="cpu")
    torch.set_rng_state(state["rng"])
    there = torch.load(path, map_location=device)
    torch.set_rng_state(there["rng"].cpu())
    rng = there["rng"].to("cpu")
    torch.set_rng_state(rng)
    kept = torch.load(path, map_location=lambda storage, location: storage)
    torch.set_rng_state(kept["rng"])
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.calls(*_SETS):
            state = next(iter(given(call)), None)
            load = _loaded(module, state) if state is not None else None
            where = keyword(load, "map_location") if load is not None else None
            where = where or (load.args[1] if load is not None and load.args[1:] else None)
            if state is None or load is None or where is None or not _may_be_gpu(module, where):
                continue
            one = isinstance(state, (ast.Subscript, ast.Name)) and not called(call).endswith("all")
            edit = module.insert_after(state, ".cpu()") if one else None
            fix = module.fix("move it to the CPU", Safety.UNSAFE, edit) if edit else None
            yield self.finding(
                module,
                call,
                f"line {load.lineno} loads this random state onto `{module.text(where)}`, but "
                "torch needs it on the CPU",
                trail=[(load, "every tensor of the file is loaded there")],
                fixes=[fix],
            )


def _loaded(module: Module, state: ast.expr) -> ast.Call | None:
    """The `torch.load` that gave it: `state["rng"]`, `state.get("rng")`."""
    for _ in range(8):
        node = behind(module, state)
        if isinstance(node, ast.Call) and module.qualified(node.func) == "torch.load":
            return node
        inner: ast.expr | None = None
        if isinstance(node, ast.Subscript):
            inner = node.value
        elif isinstance(node, ast.Call) and called(node) in ("get", "pop"):
            inner = receiver(node)
        if inner is None:
            return None
        state = inner
    return None


def _leaves_the_cpu(where: ast.expr) -> bool:
    """`{"cuda:0": "cuda:1"}`, None or a function."""
    return isinstance(where, (ast.Dict, ast.Lambda)) or is_none(where)


def _may_be_gpu(module: Module, where: ast.expr) -> bool:
    node = behind(module, where)
    if isinstance(node, (ast.Lambda, ast.Dict)) or "storage" in module.text(node):
        return False
    value = module.value_of(where)
    if value.origins and all(map(_leaves_the_cpu, value.origins)):
        return False
    said = value.constant if isinstance(value.constant, str) else module.text(node)
    if isinstance(node, ast.Constant) and not isinstance(node.value, str):
        return False
    bare = said.removeprefix("torch.device(").strip("\"')")
    return bare not in ("cpu", "None") and not bare.startswith("cpu:")
