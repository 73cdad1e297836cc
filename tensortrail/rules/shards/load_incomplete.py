from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shards._names_of_no_part import names_of_no_part
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import called, is_false, keyword, receiver, unpacks
from tensortrail.rules.view import FunctionNode

_READS = ("load", "load_file", "load_state_dict", "load_checkpoint", "torch_load", "safe_load_file")


class LoadIncomplete(Rule):
    """A `strict` argument has no effect on a load, or missing keys go unnoticed.

    ## What it does
    Reports, as notes, a function that accepts `strict` and loads a state dict without it, and
    `load_state_dict(..., strict=False)` of a file whose result, the lists of missing and unexpected
    keys, is dropped. By default, such a load is reported only

    - in a loop over several files, because others may load a file that has only some of the weights
      on purpose;
    - if the names can be seen not to be those of the model: they get a prefix that is no part of
      it, the name of a part was cut out of them, or they were changed before the file was written.

    ## Why is this bad?
    The load raises although the caller passed `strict=False`. Or, with `strict=False` and no look
    at the result, the model loads without an error and gives wrong results: a parameter that is in
    no file keeps its initial values.

    ## Fix safety
    No fix is offered: a changed `strict` may refuse checkpoints that were accepted so far, or
    accept others.

    ## References
    - deepspeedai/DeepSpeed: `load_state_dir(..., strict=True)` did not pass `strict` on
    - pytorch/pytorch documentation of `torch.nn.Module.load_state_dict`
    """

    code = "SHD412"
    name = "load-incomplete"
    since = "0.2.0"
    severity = Severity.WARNING
    notes = False
    warns = False
    triggers = (("load_state_dict", "strict"),)

    bad = (
        Bad(
            """\
def load_part(layer, weights, strict=True):
    layer.load_state_dict(weights)
""",
            lines=(2,),
            instead="""\
def load_part(layer, weights, strict=True):
    layer.load_state_dict(weights, strict=strict)
""",
        ),
        Bad(
            """\
import torch

def fill(model, path):
    weights = torch.load(path, map_location="cpu")
    model.load_state_dict(weights, strict=False)
""",
            lines=(5,),
        ),
        Bad(
            """\
import torch

def resume(model, path):
    checkpoint = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["state_dict"], strict=False)
""",
            lines=(5,),
        ),
        Bad(
            """\
import torch

class Bundle:
    def save(self, path):
        state = {f"core.{name}": value for name, value in self.model.state_dict().items()}
        torch.save(state, path)

    def load(self, path):
        state = torch.load(path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(state, strict=False)
""",
            lines=(10,),
        ),
        Bad(
            """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(2, 2), nn.Linear(2, 2)

def filled(state):
    net = Net()
    net.load_state_dict({f"model.{name}": value for name, value in state.items()}, strict=False)
    return net
""",
            lines=(11,),
        ),
    )
    good = (
        Good(
            """\
def filled(model, weights, strict=True):
    try:
        model.load_state_dict(weights["model"])
    except RuntimeError:
        model.remove_weight_norm()
        model.load_state_dict(weights["model"])
"""
        ),
        Good(
            """\
def load_part(layer, optimizer, weights, strict=True):
    layer.load(weights["model"], strict)
    optimizer.load_state_dict(weights["optimizer"])
"""
        ),
        Good(
            """\
import torch

def fill(model, path, log):
    weights = torch.load(path, map_location="cpu")
    missing, unexpected = model.load_state_dict(weights, strict=False)
    log(missing, unexpected)
"""
        ),
        Good(
            """\
def fill(model, teacher):
    model.load_state_dict(teacher.state_dict(), strict=False)
"""
        ),
        Good(
            """\
def fill(model, adapter):
    weights = {f"adapter.{key}": value for key, value in adapter.items()}
    model.load_state_dict(weights, strict=False)
"""
        ),
        Good(
            """\
class Model(Base):
    def load_state_dict(self, weights, strict=True):
        del strict
        self.inner.load_state_dict(weights)
"""
        ),
        Good(
            """\
class Schedule(Base):
    def load_state_dict(self, state, strict=True):
        self.steps = state["steps"]
"""
        ),
        Good(
            """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(2, 2), nn.Linear(2, 2)

def filled(state):
    net = Net()
    net.load_state_dict({f"body.{name}": value for name, value in state.items()}, strict=False)
    return net
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.calls("load_state_dict"):
            function = module.function_of(call)
            if function is not None and _ignores_strict(module, call, function):
                yield self.finding(
                    module,
                    call,
                    f"`{function.name}` accepts `strict`, but never reads it: weights are always "
                    "loaded as with `strict=True`",
                )
            elif why := _fits_no_part(module, call):
                yield self.finding(
                    module,
                    call,
                    f"the names of these weights are not those of the model: {why}, and with "
                    "`strict=False` nobody sees that they are not loaded",
                    told=True,
                )
            elif _drops_report(module, call):
                yield self.finding(
                    module,
                    call,
                    "with `strict=False`, weights that the file lacks keep their initial values: "
                    "check the two lists of names that this call returns",
                    severity=Severity.NOTE,
                    confidence=Confidence.LOW,
                    told=_is_of_a_shard(module, call),
                )


def _ignores_strict(module: Module, call: ast.Call, function: FunctionNode) -> bool:
    arguments = function.args
    names = {each.arg for each in (*arguments.args, *arguments.kwonlyargs)}
    if function.name == "_load_from_state_dict":
        return False  # torch calls it with all it has
    if "strict" not in names or not _loads_module(module, call) or unpacks(call):
        return False
    if keyword(call, "strict") is not None or len(call.args) > 1:
        return False
    if any(isinstance(up, ast.Try) for up in module.ancestors(call)):
        return False  # a load that fails is answered: it has to be strict
    reads = (each.id for each in module.nodes(ast.Name, function))
    return "strict" not in reads


def _loads_module(module: Module, call: ast.Call) -> bool:
    """Only modules know `strict`; optimizers, schedulers and scalers have none."""
    subject = receiver(call)
    if subject is None or _is_asked_as_another(module, subject):
        return False
    text = f"{module.text(subject)} {module.value_of(subject).cls}".lower()
    others = ("optim", "sched", "scaler", "sampler", "loader", "tracker", "state")
    return not any(word in text for word in others)


def _is_asked_as_another(module: Module, subject: ast.expr) -> bool:
    """`step` and the like are asked of it elsewhere in the file."""
    text = module.text(subject)
    owners = (
        receiver(each) for each in module.calls("step", "zero_grad", "get_last_lr", "unscale_")
    )
    return any(owner is not None and module.text(owner) == text for owner in owners)


def _fits_no_part(module: Module, call: ast.Call) -> str:
    """Why weights with names that the model does not have are left out, and nobody is told."""
    unread = isinstance(module.parent(call), ast.Expr) and is_false(keyword(call, "strict"))
    return names_of_no_part(module, call) if unread else ""


def _drops_report(module: Module, call: ast.Call) -> bool:
    given = module.argument(call, 0, "state_dict")
    if not is_false(keyword(call, "strict")) or given is None:
        return False
    statement = module.parent(call)
    return isinstance(statement, ast.Expr) and _comes_from_file(module, given)


def _comes_from_file(module: Module, given: ast.expr) -> bool:
    """Read here, and not put together on purpose from some of the keys."""
    sources = [given, *_sources(module, given)]
    return all(not isinstance(each, (ast.Dict, ast.DictComp)) for each in sources) and any(
        isinstance(each, ast.Call) and called(each) in _READS for each in sources
    )


def _is_of_a_shard(module: Module, call: ast.Call) -> bool:
    """Read in the same loop, one file after the other: nobody knows what the last one left out."""
    given = module.argument(call, 0, "state_dict")
    loops = [each for each in module.ancestors(call) if isinstance(each, ast.For)]
    reads = (
        [each for each in _sources(module, given) if isinstance(each, ast.Call)] if given else []
    )
    return any(loop in module.ancestors(each) for loop in loops for each in reads)


def _sources(module: Module, given: ast.expr, deep: int = 3) -> Iterator[ast.AST]:
    """Where it comes from; of `checkpoint["state_dict"]` where the checkpoint does."""
    whole = given.value if isinstance(given, ast.Subscript) else given
    if isinstance(whole, ast.Call):  # `torch.load(path)["state_dict"]`
        yield whole
    for each in module.value_of(whole).origins:
        yield each
        if isinstance(each, ast.Subscript) and deep:
            yield from _sources(module, each, deep - 1)
