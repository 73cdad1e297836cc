from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.patterns import pattern
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices._beforehand import prepares_data
from tensortrail.rules.devices._from_the_cpu import is_from_the_cpu
from tensortrail.rules.devices._left_on_cpu import left_on_cpu
from tensortrail.rules.devices._loaded_where import holds_numbers, left_out_by_all
from tensortrail.rules.devices._of_this_run import (
    follows_training,
    goes_to_a_written_gpu,
    is_of_a_program_for_a_gpu,
    is_where_a_gpu_is,
)
from tensortrail.rules.devices._process_groups import is_of_one_of_many
from tensortrail.rules.devices._saved_here import (
    comes_with_the_project,
    is_named_by_callers,
    is_of_whole_optimizer,
    is_saved_on_the_cpu,
    was_saved_above,
    where_it_is_saved,
)
from tensortrail.rules.shared.in_tests import in_tests

_TAKES_TENSORS = frozenset({"load_state_dict", "items", "values", "update", "state_dict"})
_OF_AN_ADDRESS = (
    "torch.hub.load_state_dict_from_url",
    "torch.utils.model_zoo.load_url",
)
_WEIGHTS = pattern(r"(^|_)(state|model|net|weight|param|optim|ema|embed|tensor)")
"""Keys under which tensors lie in a file."""
_PATHS_OF_THIS_RUN = frozenset({"best_model_path", "last_model_path"})
"""Of Lightning's ModelCheckpoint."""


class LoadWithoutMapLocation(Rule):
    """`torch.load` without `map_location` puts tensors on the devices they were saved from.

    ## What it does
    Flags `torch.load(path)` and `torch.hub.load_state_dict_from_url(url)` without `map_location`.
    It is a warning where the result is used as weights or state (`load_state_dict`, `items()`, a
    key named for weights), and a note elsewhere, for files of a fixed name or address, in scripts,
    for the `best_model_path` that Lightning saved in the same run, for what the function saved
    further up, in a file that names one GPU at its top, after a loop that trains, for a model that
    the function puts on a GPU which is written out, in the branch for machines with a GPU, for the
    state of schedulers and samplers, for engines of TensorRT, with `mmap=True`, in a file that
    writes files again and asks nobody for a device: converters of checkpoints, in a data set, for
    the whole state of an optimizer of FSDP, and where all callers write out which file, or leave
    out a parameter that says, or a download is told which, or a table of addresses tells.

    It is a note too where the project itself writes the file, by how its name ends, and what it
    writes is no tensor or was on the CPU: it follows `.cpu()`, numbers, arrays of NumPy, and
    programs that know no other device. Where it writes the state of a model, the message says so.

    Where a function runs once a GPU, as it wraps a model with `device_ids`, or chooses the GPU by a
    variable in a file that joins a process group, only what was on the CPU is a note: every other
    process takes memory of the GPU of the one that saved.

    A function that passes on its `map_location`, None by default, is noted where no call of the
    project gives it.

    `with torch.device(...)` around it, `safetensors` and `**kwargs` are not flagged; but
    `safetensors.torch.load(data)`, which always gives tensors on the CPU, and `load_file(path)`
    without `device` are noted, where another path of the function loads the same onto a device.

    ## Why is this bad?
    A file written on a GPU cannot be loaded where there is none. With several processes, each one
    loads its copy onto the GPU the file names, usually the first: it runs out of memory while the
    others are empty.

    ## What you may see
    ```
    Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False
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
    since = "0.2.0"
    severity = Severity.WARNING
    needs_callers = True
    triggers = (
        ("load(", "torch"),
        ("load_file(", "device"),
        ("load_url(", "torch"),
        ("load_state_dict_from_url(", "torch"),
    )

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
from torch.utils import model_zoo

def pretrained(model, url):
    model.load_state_dict(model_zoo.load_url(url, progress=False))
""",
            lines=(4,),
            fixed="""\
from torch.utils import model_zoo

def pretrained(model, url):
    model.load_state_dict(model_zoo.load_url(url, progress=False, map_location="cpu"))
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
        Bad(
            """\
import safetensors.torch

def weights(path, mapped, device):
    if mapped:
        found = safetensors.torch.load_file(path, device=device)
    else:
        found = safetensors.torch.load(open(path, "rb").read())
    return found
""",
            lines=(7,),
        ),
        Bad(
            """\
import torch

def read(path, map_location=None):
    return torch.load(path, map_location=map_location)

def restored(model, path):
    model.load_state_dict(read(path))
""",
            lines=(4,),
            instead="""\
import torch

def read(path, map_location=None):
    return torch.load(path, map_location=map_location)

def restored(model, path):
    model.load_state_dict(read(path, map_location="cpu"))
""",
        ),
    )
    good = (
        Good(
            """\
import safetensors.torch

def weights(path, mapped, device):
    if mapped:
        found = safetensors.torch.load_file(path, device=device)
    else:
        found = safetensors.torch.load(open(path, "rb").read())
        found = {name: value.to(device) for name, value in found.items()}
    return found
"""
        ),
        Good("import torch\ndef f(p):\n    return torch.load(p, map_location='cpu')\n"),
        Good(
            "from torch.hub import load_state_dict_from_url as fetch\n"
            "def f(url, folder):\n    return fetch(url, folder, 'cpu')\n"
        ),
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
        Good(
            """\
import torch

def cached(path, names):
    if names:
        torch.save({"names": names}, f"{path}/cache.pkl")
        return names
    return torch.load(f"{path}/cache.pkl")["names"]
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.calls("torch.load", *_OF_AN_ADDRESS):
            if not _says_where(module, call) and not _was_just_saved(module, call):
                used = _used_as_state(module, call) and not _is_harmless(module, call)
                saved = where_it_is_saved(module, call) if used else ""
                yield self.finding(
                    module,
                    call,
                    f"the tensors of this file come to the devices they were saved from{saved}, on "
                    "every process and whether or not there is such a device",
                    severity=Severity.WARNING if used else Severity.NOTE,
                    confidence=Confidence.HIGH if used else Confidence.MEDIUM,
                    fixes=[_mapped(module, call)],
                )
            elif (left_out := left_out_by_all(module, call)) is not None:
                yield self.finding(
                    module,
                    call,
                    f"no call in the project gives `{left_out}`, which is None then: the tensors "
                    "come to the devices they were saved from",
                    severity=Severity.NOTE,
                    confidence=Confidence.MEDIUM,
                )
        for left in left_on_cpu(module):
            yield self.finding(
                module,
                left.call,
                f"the tensors of this file come to the CPU; line {left.beside.lineno} loads the "
                f"same to `{module.text(left.device)}`",
                severity=Severity.NOTE,
                confidence=Confidence.MEDIUM,
                trail=[(left.beside, f"loaded to `{module.text(left.device)}`")],
            )


def _says_where(module: Module, call: ast.Call) -> bool:
    before = 2 if module.qualified(call.func) in _OF_AN_ADDRESS else 1
    if len(call.args) > before or not (call.args or call.keywords):
        return True
    if any(each.arg in (None, "map_location") for each in call.keywords):
        return True
    if any(isinstance(each, ast.Starred) for each in call.args):
        return True
    return any("device" in module.text(each) for each in module.contexts_of(call))


def _is_harmless(module: Module, call: ast.Call) -> bool:
    near = _is_of_fsdp(module, call) or _is_of_memory(module, call)
    near = near or is_from_the_cpu(module, call) or is_saved_on_the_cpu(module, call)
    near = near or holds_numbers(module, call) or is_of_whole_optimizer(module, call)
    if near or is_of_one_of_many(module, call):
        return near  # of the saver's GPU every process takes memory
    near = _is_of_this_run(call) or follows_training(module, call)
    near = near or goes_to_a_written_gpu(module, call) or is_where_a_gpu_is(module, call)
    near = near or prepares_data(module, call) or comes_with_the_project(module, call)
    near = near or _has_fixed_name(module, call) or _is_tried_first(module, call)
    near = near or was_saved_above(module, call) or is_of_a_program_for_a_gpu(module, call)
    return near or is_named_by_callers(module, call)


def _is_of_this_run(call: ast.Call) -> bool:
    """`checkpoint.best_model_path` of Lightning: the same process saved the file."""
    source = call.args[0] if call.args else call.keywords[0].value
    return isinstance(source, ast.Attribute) and source.attr in _PATHS_OF_THIS_RUN


def _is_tried_first(module: Module, call: ast.Call) -> bool:
    """If it fails, the handler of the `try` around it loads again and says where."""
    child: ast.AST = call
    for up in module.ancestors(call):
        if isinstance(up, ast.Try) and child in up.body:
            loads = (each for one in up.handlers for each in module.calls("torch.load", inside=one))
            return any(_says_where(module, each) for each in loads)
        child = up
    return False


def _has_fixed_name(module: Module, call: ast.Call) -> bool:
    """A file of a fixed name, an address, or a script: who wrote the name, or runs it, has the
    file."""
    if module.qualified(call.func) in _OF_AN_ADDRESS:
        return True
    source = call.args[0] if call.args else call.keywords[0].value
    fixed = isinstance(module.value_of(source).constant, str)
    return fixed or module.function_of(call) is None


def _is_of_fsdp(module: Module, call: ast.Call) -> bool:
    """Under a state-dict type of FSDP, which writes tensors of the CPU unless told otherwise."""
    around = module.contexts_of(call)
    made = [source for each in around for source in module.value_of(each).origins]
    said = " ".join(module.text(each) for each in (*around, *made))
    return "state_dict_type" in said or "StateDictType" in said


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
    names = (module.text(source), module.text(source).partition(".")[0])
    function = module.function_of(call)
    saved = (module.argument(each, 1, "f") for each in module.calls("torch.save", inside=function))
    return any(each is not None and module.text(each) in names for each in saved)


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
        key = above.slice.value if isinstance(above.slice, ast.Constant) else None
        return isinstance(key, str) and bool(_WEIGHTS.search(key))
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
