from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, given, receiver, resolved_name
from tensortrail.rules.shared.on_meta import meta_context
from tensortrail.rules.shared.optimizers import model_behind
from tensortrail.rules.shared.origins import text_behind
from tensortrail.rules.shared.sentences import one_line

_REPLACE = ("FullyShardedDataParallel", "fully_shard", "parallelize_module", "setup_module")
"""They give the model other parameters."""
_OF_MODELS = ("to_empty",)
"""Methods of a model on meta that do the same."""


class OptimizerBeforeSharding(Rule):
    """An optimizer is made before the model is sharded, and keeps the old parameters.

    ## What it does
    Reports `torch.optim.AdamW(model.parameters())`, if the same function passes the model to
    `FullyShardedDataParallel`, `fully_shard`, `parallelize_module` or Fabric's `setup_module`
    afterwards and makes no other optimizer after that. So does `to_empty` of a model that was made
    on meta.

    ## Why is this bad?
    The weights never change, and no error is raised. Sharding replaces the parameters of the model;
    the optimizer keeps the old ones, which get no gradients and hold the memory of the whole model.

    ## Fix safety
    No fix is offered: the optimizer belongs after the last line that wraps the model.

    ## References
    - pytorch documentation, `FullyShardedDataParallel`: the optimizer must be initialized after
    - pytorch documentation, `torch.distributed.fsdp.fully_shard`
    """

    code = "SHD432"
    name = "optimizer-before-sharding"
    severity = Severity.ERROR
    triggers = tuple(("parameters(", name) for name in (*_REPLACE, *_OF_MODELS))

    bad = (
        Bad(
            """\
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

def prepared(model):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model = FSDP(model)
    return model, optimizer
""",
            lines=(5,),
            instead="""\
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

def prepared(model):
    model = FSDP(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return model, optimizer
""",
        ),
        Bad(
            """\
import torch
from torch.distributed.fsdp import fully_shard

def prepared(model, mesh):
    groups = [{"params": [p for n, p in model.named_parameters() if "bias" not in n]}]
    optimizer = torch.optim.SGD(groups, lr=0.1)
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return optimizer
""",
            lines=(6,),
        ),
        Bad(
            """\
import torch
from torch import nn

def prepared(device):
    with torch.device("meta"):
        model = nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.to_empty(device=device)
    model.reset_parameters()
    return model, optimizer
""",
            lines=(7,),
        ),
        Bad(
            """\
import torch
from lightning.fabric import Fabric

fabric = Fabric(devices=2, strategy="fsdp")
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.Adam(model.parameters())
model = fabric.setup_module(model)
optimizer = fabric.setup_optimizers(optimizer)
""",
            lines=(6,),
        ),
    )
    good = (
        Good(
            """\
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, fully_shard

def again(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    warm_up(model, optimizer)
    model = FSDP(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    return model, optimizer

def other(model, teacher, whole):
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    fully_shard(teacher)
    if whole:
        return optimizer
    return None

def one_of_two(model, sharded):
    if sharded:
        model = FSDP(model)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        return model, optimizer
    return model, torch.optim.SGD(model.parameters(), lr=1.0)
"""
        ),
        Good(
            """\
import torch
from lightning.fabric import Fabric

fabric = Fabric(devices=2, strategy="ddp")
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.Adam(model.parameters())
model = fabric.setup_module(model)
model.to_empty(device="cuda")
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for assign in module.nodes(ast.Assign):
            made = assign.value
            model = _trained_by(module, assign, made) if isinstance(made, ast.Call) else ""
            wrap = _sharded_after(module, assign, model) if model else None
            if wrap is not None:
                yield self.finding(
                    module,
                    made,
                    f"line {wrap.lineno} replaces the parameters of `{model}`: this optimizer "
                    "keeps the old ones and trains nothing",
                    trail=[
                        (made, f"takes the parameters of `{model}`"),
                        (wrap, f"`{one_line(module, wrap)}` replaces them"),
                    ],
                )


def _trained_by(module: Module, assign: ast.Assign, made: ast.Call) -> str:
    """The model that an optimizer of torch trains, or whatever else makes steps."""
    model = model_behind(module, made)
    if not model or module.qualified(made.func).startswith("torch.optim."):
        return model
    name = module.text(assign.targets[0])
    steps = module.calls("step", inside=module.function_of(assign))
    return model if any(module.text(each.func) == f"{name}.step" for each in steps) else ""


def _sharded_after(module: Module, assign: ast.Assign, model: str) -> ast.Call | None:
    """The call that shards the model, if no other optimizer is made after it."""
    wraps = [
        call
        for call in module.later(assign, ast.Call)
        if _replaces(module, call, model) and module.function_of(call) is module.function_of(assign)
    ]
    if not wraps:
        return None
    target = module.text(assign.targets[0])
    again = any(
        target in map(module.text, each.targets) and not _goes_through(module, each, target)
        for each in module.later(wraps[0], ast.Assign)
    )
    return None if again else wraps[0]


def _goes_through(module: Module, assign: ast.Assign, name: str) -> bool:
    """`optimizer = fabric.setup_optimizers(optimizer)`: it keeps the same parameters."""
    call = assign.value
    return (
        isinstance(call, ast.Call)
        and called(call) == "setup_optimizers"
        and name in map(module.text, call.args)
    )


def _replaces(module: Module, call: ast.Call, model: str) -> bool:
    if called(call) in _OF_MODELS:
        owner = receiver(call)
        return owner is not None and module.text(owner) == model and _was_on_meta(module, call)
    name = module.qualified(call.func).rpartition(".")[2] or called(call)
    if name not in _REPLACE or not call.args or module.text(call.args[0]) != model:
        return False
    return name != "setup_module" or _is_of_fabric(module, call)


def _was_on_meta(module: Module, emptied: ast.Call) -> bool:
    """It was made on meta a few lines before."""
    owner = receiver(emptied)
    for made in module.earlier(emptied, ast.Assign):
        if owner is not None and module.text(owner) in map(module.text, made.targets):
            return meta_context(module, made) is not None
    return False


def _is_of_fabric(module: Module, call: ast.Call) -> bool:
    """A `Fabric` that the file makes with a strategy that shards."""
    owner = receiver(call)
    origins = module.value_of(owner).origins if owner is not None else ()
    made = [each for each in origins if isinstance(each, ast.Call)]
    fabrics = [each for each in made if resolved_name(module, each) == "Fabric"]
    return any(_shards(module, each) for fabric in fabrics for each in given(fabric))


def _shards(module: Module, strategy: ast.expr) -> bool:
    """`"fsdp"`, `FSDPStrategy()`, `ModelParallelStrategy()` or a name for one of them."""
    said = f"{module.value_of(strategy).constant} {text_behind(module, strategy)}".lower()
    return "fsdp" in said or "modelparallel" in said
