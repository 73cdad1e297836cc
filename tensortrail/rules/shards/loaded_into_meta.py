from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared import mends
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import called, keyword, unpacks
from tensortrail.rules.shared.on_meta import meta_context
from tensortrail.rules.shared.origins import behind
from tensortrail.rules.shared.sentences import one_line

_HARMLESS = frozenset(
    "to eval train requires_grad_ half float bfloat16 named_parameters parameters state_dict "
    "named_modules modules children named_children".split()
)
"""Methods that a model on meta has no less than another, and that leave it there."""


class LoadedIntoMeta(Rule):
    """Weights are loaded into a model on meta without `assign=True`, which loads nothing.

    ## What it does
    Reports `model.load_state_dict(weights)` without `assign=True`, if the model was made under
    `with torch.device("meta"):` or `with init_empty_weights():` in the same function and got no
    memory in between (`to_empty`). Also reports `model.to(device)` of such a model.

    ## Why is this bad?
    The model stays on meta, with only a warning for each weight: a tensor on meta has no memory to
    copy into. The first call that needs a value fails, or a save writes a file without data.
    `model.to(device)` raises.

    ## Fix safety
    Unsafe: with `assign=True` the model takes the tensors of the file as they are, with their dtype
    and device.

    ## References
    - pytorch documentation, `torch.nn.Module.load_state_dict`: `assign`
    - pytorch tutorial, tips for loading an `nn.Module` from a checkpoint
    """

    code = "SHD433"
    name = "loaded-into-meta"
    severity = Severity.ERROR
    proven = False
    triggers = (
        ("meta", "load_state_dict("),
        ("init_empty_weights", "load_state_dict("),
        ("init_empty_weights", ".to("),
        ("meta", "device(", ".to("),
    )

    bad = (
        Bad(
            """\
import torch

def loaded(make, path):
    with torch.device("meta"):
        model = make()
    model.load_state_dict(torch.load(path, map_location="cpu"))
    return model
""",
            lines=(6,),
            fixed="""\
import torch

def loaded(make, path):
    with torch.device("meta"):
        model = make()
    model.load_state_dict(torch.load(path, map_location="cpu"), assign=True)
    return model
""",
        ),
        Bad(
            """\
from accelerate import init_empty_weights

def moved(make, device):
    with init_empty_weights():
        model = make()
    return model.to(device)
""",
            lines=(6,),
        ),
    )
    good = (
        Good(
            """\
import torch
from accelerate import init_empty_weights

def loaded(make, path, weights, device):
    with torch.device("meta"):
        model = make()
    model.load_state_dict(weights, assign=True)
    with init_empty_weights():
        other = make()
    other.to_empty(device=device)
    other.load_state_dict(weights)
    with torch.device("cuda"):
        third = make()
    third.load_state_dict(weights)
    with init_empty_weights(include_buffers=False):
        fourth = make()
    fourth = load_checkpoint_and_dispatch(fourth, path)
    fourth.to(device)
    return model.to(device), other, third, fourth

def filled(make, fill, weights, device):
    with torch.device("meta"):
        model = make()
    fill(model, weights)
    return model.to(device)

def typed(make, weight, device, wide):
    weight_dtype = torch.float32 if wide else None
    with init_empty_weights():
        model = make()
        model.to(torch.bfloat16)
        model.to(weight_dtype)
    with torch.device("meta"):
        layer = make()
    layer.weight = weight
    return model, layer.to(device)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for made in module.nodes(ast.Assign):
            context = meta_context(module, made)
            name = _bound(made)
            if context is None or not name:
                continue
            call = _first_use(module, made, name)
            if call is not None:
                yield self._reported(module, name, context, call)

    def _reported(self, module: Module, name: str, context: ast.expr, call: ast.Call) -> Finding:
        loads = called(call) == "load_state_dict"
        what = "nothing is copied into it without `assign=True`" if loads else "`to` raises"
        return self.finding(
            module,
            call,
            f"`{name}` is on meta, where it was made, and has no memory: {what}",
            trail=[
                (context, f"`{name}` is made on meta here"),
                (call, f"`{one_line(module, call)}` needs its memory"),
            ],
            fixes=[_assigned(module, call) if loads else None],
        )


def _bound(made: ast.Assign) -> str:
    target = made.targets[0]
    is_call = isinstance(made.value, ast.Call)
    return target.id if is_call and isinstance(target, ast.Name) else ""


def _first_use(module: Module, made: ast.Assign, name: str) -> ast.Call | None:
    """The first thing that happens to the model, if it needs memory that the model has not."""
    function = module.function_of(made)
    for node in module.later(made, ast.Name):
        if node.id != name or module.function_of(node) is not function:
            continue
        above = module.parent(node)
        call = module.parent(above) if isinstance(above, ast.Attribute) else None
        if not isinstance(call, ast.Call) or call.func is not above:
            if isinstance(above, ast.Attribute) and isinstance(above.ctx, ast.Load):
                continue
            return None  # bound again, or given to somebody who may fill it
        if _needs_memory(module, call):
            return call
        if called(call) not in _HARMLESS:
            return None
    return None


def _needs_memory(module: Module, call: ast.Call) -> bool:
    if called(call) == "load_state_dict":
        return not unpacks(call) and keyword(call, "assign") is None and len(call.args) < 3
    if called(call) != "to":
        return called(call) in MOVES
    said = keyword(call, "device") or (call.args[0] if call.args else None)
    if said is None or module.value_of(said).constant == "meta":
        return False
    return not _names_a_type(module, said)


def _names_a_type(module: Module, said: ast.expr) -> bool:
    """`torch.float16`, or a variable that is one or None."""
    if "dtype" in module.text(said):
        return True
    names = [each for each in ast.walk(behind(module, said)) if isinstance(each, ast.Attribute)]
    return any(
        module.qualified(each).startswith("torch.") and each.attr != "device" for each in names
    )


def _assigned(module: Module, call: ast.Call) -> Fix | None:
    edit = mends.keyword_given(module, call, "assign", "True")
    if edit is None:
        return None
    return module.fix("take the tensors of the file", Safety.UNSAFE, edit)
