from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.offload._by_accelerate import ends_offloading, offloading_calls
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.objects import is_called, is_name, root_of
from tensortrail.rules.shared.sentences import one_line

_WEIGHTS = ("weight", "bias")
_WITHOUT_VALUES = frozenset(
    "shape dtype device ndim size dim numel requires_grad requires_grad_ stride is_meta "
    "element_size data_ptr".split()
)


class WeightReadWhileOffloaded(Rule):
    """A weight of a model that accelerate offloads is read between two calls of the model.

    ## What it does
    Reports `net.layer.weight.abs()` and the like after `cpu_offload(net)` or `disk_offload(net)` of
    accelerate in the same function.

    Not reported: shapes and other properties without values, a read within
    `align_module_device(...)`, and hooks that are removed before.

    ## Why is this bad?
    Between two calls the weights are placeholders on meta: the program ends with "Tensor on device
    meta is not on the expected device cuda:0", or what is computed has no values.

    ## Fix safety
    No fix is offered: `with align_module_device(net.layer):` brings the values for a while.

    ## References
    - huggingface/accelerate documentation, `align_module_device`
    """

    code = "OFF131"
    name = "weight-read-while-offloaded"
    severity = Severity.ERROR
    proven = False
    confidence = Confidence.MEDIUM
    triggers = (("cpu_offload", ".weight"), ("cpu_offload", ".bias"),
                ("disk_offload", ".weight"), ("disk_offload", ".bias"))  # fmt: skip

    bad = (
        Bad(
            """\
import torch
from accelerate import cpu_offload

def scaled(net, x):
    cpu_offload(net, execution_device=torch.device("cuda"))
    out = net(x)
    return out / net[0].weight.abs().max()
""",
            lines=(7,),
            instead="""\
import torch
from accelerate import cpu_offload
from accelerate.utils import align_module_device

def scaled(net, x):
    cpu_offload(net, execution_device=torch.device("cuda"))
    out = net(x)
    with align_module_device(net[0]):
        largest = net[0].weight.abs().max().to(out.device)
    return out / largest
""",
        ),
    )
    good = (
        Good(
            """\
import torch
from accelerate import cpu_offload
from accelerate.hooks import remove_hook_from_module

def described(net, other):
    cpu_offload(net)
    print(net.fc.weight.shape, net.fc.weight.device, other.weight.sum())
    return net.fc.weight.numel()

def before(plain):
    largest = plain.fc.weight.abs().max()
    cpu_offload(plain)
    return largest

def after(freed):
    cpu_offload(freed)
    remove_hook_from_module(freed, recurse=True)
    return freed.fc.weight.abs().max()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in offloading_calls(module):
            model = module.argument(call, 0, "model")
            read = _read_after(module, call, model) if isinstance(model, ast.Name) else None
            if read is not None and model is not None:
                shown = one_line(module, model)
                yield self.finding(
                    module,
                    read,
                    f"`{one_line(module, read)}` has no values here: `{shown}` has been offloaded "
                    f"since line {call.lineno}, and its weights are on meta between two calls",
                    trail=[(call, "offloaded"), (read, "read outside of a call")],
                )


def _read_after(module: Module, call: ast.Call, model: ast.Name) -> ast.Attribute | None:
    """The first use of values of a weight, while the hooks are on and the name is that model."""
    for node in module.later(call, ast.expr):
        if isinstance(node, ast.Call) and ends_offloading(module, node):
            return None
        if isinstance(node, ast.Name) and node.id == model.id and isinstance(node.ctx, ast.Store):
            own = module.statement_of(call)
            if module.statement_of(node) is not own:
                return None
        if isinstance(node, ast.Attribute) and _is_read(module, node, model.id):
            return node
    return None


def _is_read(module: Module, node: ast.Attribute, model: str) -> bool:
    root = root_of(node)
    if node.attr not in _WEIGHTS or not isinstance(node.ctx, ast.Load) or is_called(module, node):
        return False
    within = [module.text(each) for each in module.contexts_of(node)]
    if not is_name(root, model) or not all(_only_stops_gradients(each) for each in within):
        return False
    up = module.parent(node)
    if isinstance(up, ast.Attribute):
        return up.attr not in _WITHOUT_VALUES
    return isinstance(up, ast.BinOp)


def _only_stops_gradients(context: str) -> bool:
    """`torch.no_grad()`, which brings no weights back as other contexts may."""
    return "grad" in context or "inference_mode" in context
