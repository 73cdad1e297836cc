from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.shared.in_tests import in_tests

_TAKES_TENSORS = frozenset({"load_state_dict", "items", "keys", "values", "update", "state_dict"})


class LoadWithoutMapLocation(Rule):
    """`torch.load` without `map_location` puts tensors on the devices they were saved from.

    ## What it does
    Flags `torch.load(path)` without `map_location`. It is a warning where the result is used as
    weights or state (`load_state_dict`, a key or `items()` of it), and a note elsewhere.
    `with torch.device(...)` around it, `safetensors` and `**kwargs` are not flagged.

    ## Why is this bad?
    A file written on a GPU cannot be loaded where there is none. With several processes, each one
    loads its copy onto the GPU the file names, usually the first: it runs out of memory while the
    others are empty.

    ## Example
    ```python
    model.load_state_dict(torch.load(path))
    ```
    Use instead:
    ```python
    model.load_state_dict(torch.load(path, map_location="cpu"))
    ```

    ## Fix safety
    Unsafe: the tensors come to the CPU, or to the device that the function was given.
    `load_state_dict` copies them to where the parameters are.

    ## References
    - huggingface/accelerate pull request 1444
    - pytorch/pytorch documentation of `torch.load`
    """

    code = "DEV506"
    name = "load-without-map-location"
    severity = Severity.WARNING
    triggers = (("load(", "torch"),)

    bad = (
        Bad(
            """\
import torch

def restore(model, optimizer, path):
    model.load_state_dict(torch.load(path))
    state = torch.load(f"{path}.opt", weights_only=True)
    optimizer.load_state_dict(state)
""",
            lines=(4, 5),
            fixed="""\
import torch

def restore(model, optimizer, path):
    model.load_state_dict(torch.load(path, map_location="cpu"))
    state = torch.load(f"{path}.opt", weights_only=True, map_location="cpu")
    optimizer.load_state_dict(state)
""",
        ),
        Bad(
            """\
import torch as th

def read(path, device):
    return th.load(path)
""",
            lines=(4,),
            fixed="""\
import torch as th

def read(path, device):
    return th.load(path, map_location=device)
""",
        ),
    )
    good = (
        Good("import torch\ndef f(p):\n    return torch.load(p, map_location='cpu')\n"),
        Good("import torch\ndef f(p):\n    return torch.load(p, 'cpu')\n"),
        Good("import torch\ndef f(p, **kwargs):\n    return torch.load(p, **kwargs)\n"),
        Good("from safetensors.torch import load\ndef f(p):\n    return load(p)\n"),
        Good(
            """\
import torch

def f(path, device):
    with torch.device(device):
        return torch.load(path)
"""
        ),
        Good(
            """\
import io
import torch

def copied(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return torch.load(buffer)
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.calls("torch.load"):
            if not _says_where(module, call) and not _was_just_saved(module, call):
                used = _used_as_state(module, call) and not (
                    _is_of_fsdp(module, call) or _is_of_memory(module, call)
                )
                yield self.finding(
                    module,
                    call,
                    "the tensors of this file come to the devices they were saved from, on every "
                    "process and whether or not there is such a device",
                    severity=Severity.WARNING if used else Severity.NOTE,
                    confidence=Confidence.HIGH if used else Confidence.MEDIUM,
                    fixes=[_mapped(module, call)],
                )


def _says_where(module: Module, call: ast.Call) -> bool:
    if len(call.args) > 1 or not (call.args or call.keywords):
        return True
    if any(each.arg in (None, "map_location") for each in call.keywords):
        return True
    if any(isinstance(each, ast.Starred) for each in call.args):
        return True
    return any("device" in module.text(each) for each in module.contexts_of(call))


def _is_of_fsdp(module: Module, call: ast.Call) -> bool:
    """Under a state-dict type of FSDP, which writes tensors of the CPU unless told otherwise."""
    around = module.contexts_of(call)
    made = [source for each in around for source in module.value_of(each).origins]
    return any("state_dict_type" in module.text(each) for each in (*around, *made))


def _is_of_memory(module: Module, call: ast.Call) -> bool:
    """Bytes that somebody handed over, who mostly was near."""
    source = call.args[0] if call.args else call.keywords[0].value
    made = (source, *module.value_of(source).origins)
    return any("BytesIO" in module.text(each) for each in made)


def _was_just_saved(module: Module, call: ast.Call) -> bool:
    """A copy through memory: the tensors were here a moment ago."""
    source = call.args[0] if call.args else call.keywords[0].value
    while isinstance(source, ast.Call) and source.args:
        source = source.args[0]
    name = module.text(source).partition(".")[0]
    function = module.function_of(call)
    saved = (module.argument(each, 1, "f") for each in module.calls("torch.save", inside=function))
    return any(each is not None and module.text(each) == name for each in saved)


def _used_as_state(module: Module, call: ast.Call) -> bool:
    above = module.parent(call)
    if _takes_state(module, call, above):
        return True
    if not isinstance(above, ast.Assign) or not isinstance(above.targets[0], ast.Name):
        return False
    name = above.targets[0].id
    return any(
        each.id == name and _takes_state(module, each, module.parent(each))
        for each in module.later(above, ast.Name)
    )


def _takes_state(module: Module, node: ast.expr, above: ast.AST | None) -> bool:
    if isinstance(above, ast.Call) and node in above.args:
        return module.text(above.func).rpartition(".")[2].endswith("state_dict")
    if isinstance(above, ast.Subscript) and above.value is node:
        return isinstance(above.slice, ast.Constant) and isinstance(above.slice.value, str)
    return isinstance(above, ast.Attribute) and above.attr in _TAKES_TENSORS


def _mapped(module: Module, call: ast.Call) -> Fix | None:
    last = call.keywords[-1].value if call.keywords else call.args[-1]
    edit = module.insert_after(last, f", map_location={_device_at_hand(module, call)}")
    return module.fix("say where the tensors go", Safety.UNSAFE, edit)


def _device_at_hand(module: Module, call: ast.Call) -> str:
    function = module.function_of(call)
    if function is not None and not _used_as_state(module, call):
        for each in (*function.args.args, *function.args.kwonlyargs):
            if each.arg == "device":
                return each.arg
    return '"cpu"'
