from __future__ import annotations

from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.offload._hooks_of_call import is_left, is_of_the_call, run_with
from tensortrail.rules.shared.functions import outermost_function
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.view import FunctionNode

_REGISTERS = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_backward_hook",
)


class HooksLeftAfterCall(Rule):
    """A function puts hooks on a model to watch one call of it, and never removes them.

    ## What it does
    Reports a hook that is registered on a model of the caller or of `self`, if the hook is
    written inside the function, the function calls the model itself, and nothing keeps the handle
    that `register_forward_hook` and its siblings return.

    Not reported: functions that remove hooks or return the model, constructors, and hooks that
    are registered only if some attribute says that they are not there yet.

    ## Why is this bad?
    The hooks stay on the model. They run at every later call, and each call of the function adds
    more of them: the model gets slower, and what the hooks keep (lists of outputs, inputs with
    their graphs) is never freed. A model with such hooks can often not be pickled or exported,
    because the hooks are local functions.

    ## Fix safety
    No fix is offered: keep the handles, and call `handle.remove()` after the call, in a `finally`.

    ## References
    - intel/intel-extension-for-pytorch, commit 911c15b648, hooks that record the shapes of inputs
    - pytorch documentation of `torch.nn.Module.register_forward_hook`
    """

    code = "OFF132"
    name = "hooks-left-after-call"
    severity = Severity.WARNING
    proven = False
    confidence = Confidence.MEDIUM
    triggers = tuple(f".{each}(" for each in _REGISTERS)

    bad = (
        Bad(
            """\
def features_of(model, x):
    kept = []

    def keep(module, args, output):
        kept.append(output)

    model.layer4.register_forward_hook(keep)
    model(x)
    return kept[0]
""",
            lines=(7,),
            instead="""\
def features_of(model, x):
    kept = []

    def keep(module, args, output):
        kept.append(output)

    handle = model.layer4.register_forward_hook(keep)
    try:
        model(x)
    finally:
        handle.remove()
    return kept[0]
""",
        ),
        Bad(
            """\
import torch

def record_shapes(module, sample):
    def record(layer, args):
        layer.input_shape = args[0].shape

    def watch(layer):
        if isinstance(layer, torch.nn.Linear):
            layer.register_forward_pre_hook(record)
        for child in layer.children():
            watch(child)

    watch(module)
    module(*sample)
""",
            lines=(9,),
            instead="""\
import torch

def record_shapes(module, sample):
    handles = []

    def record(layer, args):
        layer.input_shape = args[0].shape

    def watch(layer):
        if isinstance(layer, torch.nn.Linear):
            handles.append(layer.register_forward_pre_hook(record))
        for child in layer.children():
            watch(child)

    watch(module)
    module(*sample)
    for handle in handles:
        handle.remove()
""",
        ),
        Bad(
            """\
class Inspector:
    def __init__(self, model):
        self.model = model

    def sizes(self, x):
        seen = {}
        for name, layer in self.model.named_modules():
            layer.register_forward_hook(
                lambda layer, args, output, name=name: seen.update({name: output.shape})
            )
        self.model(x)
        return seen
""",
            lines=(8,),
            instead="""\
class Inspector:
    def __init__(self, model):
        self.model = model

    def sizes(self, x):
        seen, handles = {}, []
        for name, layer in self.model.named_modules():
            handle = layer.register_forward_hook(
                lambda layer, args, output, name=name: seen.update({name: output.shape})
            )
            handles.append(handle)
        self.model(x)
        for handle in handles:
            handle.remove()
        return seen
""",
        ),
    )
    good = (
        Good(
            """\
def features_of(model, x):
    kept = []

    def keep(module, args, output):
        kept.append(output)

    handle = model.layer4.register_forward_hook(keep)
    model(x)
    handle.remove()
    return kept[0]

def watched(model, x):
    def check(module, args, output):
        assert output.isfinite().all()

    model.register_forward_hook(check)
    model(x)
    return model
"""
        ),
        Good(
            """\
import copy

def features_of(model, x):
    kept = []
    model = copy.deepcopy(model)
    model.layer4.register_forward_hook(lambda module, args, output: kept.append(output))
    model(x)
    return kept[0]

def check(module, args, output):
    assert output.isfinite().all()

def train(model, loader):
    model.register_forward_hook(check)
    for x in loader:
        model(x).backward()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        reported: set[FunctionNode] = set()
        for call in module.calls(*_REGISTERS):
            function = outermost_function(module, call)
            if function is None or function in reported or not is_left(module, function, call):
                continue
            run = run_with(module, function, call)
            if run is None or not is_of_the_call(module, function, call, run):
                continue
            reported.add(function)
            yield self.finding(
                module,
                call,
                f"this hook is for one call of `{module.text(run.func)}`, but stays on the model: "
                f"each call of `{function.name}` adds another one",
                trail=[(call, "the handle is dropped"), (run, "the call that is watched")],
            )
