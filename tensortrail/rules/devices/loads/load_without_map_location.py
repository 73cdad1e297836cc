from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.loads.converted import needs_no_gpu
from tensortrail.rules.devices.shared.loads.harmless_loads import (
    ADDRESSES,
    PROGRAM,
    is_harmless,
    says_where,
    was_just_saved,
)
from tensortrail.rules.devices.shared.loads.left_on_cpu import left_on_cpu
from tensortrail.rules.devices.shared.loads.loaded_where import left_out_by_all
from tensortrail.rules.devices.shared.loads.map_location_added import map_location_added
from tensortrail.rules.devices.shared.loads.saved_here import where_it_is_saved
from tensortrail.rules.devices.shared.loads.taken_from_file import used_as_state
from tensortrail.rules.devices.shared.loads.why_mapped import (
    accepted_and_dropped,
    of_another_path_in_memory,
    why_it_matters,
)
from tensortrail.rules.devices.shared.loads.wrapped_loads import loaded_without_location
from tensortrail.rules.shared.in_tests import in_tests

_SUBJECT = "without `map_location` the tensors go to the device they were saved from"


class LoadWithoutMapLocation(Rule):
    """`torch.load` without `map_location` puts tensors on the devices they were saved from.

    ## What it does
    Reports, as a note, `torch.load(path)` and `torch.hub.load_state_dict_from_url(url)` without
    `map_location`, if the result is used as weights or state (`load_state_dict`, `items()`, a key
    named for weights) or is moved on (`.to(device)`), and the code has one of these signs.
    `torch.jit.load(path)` likewise, and a function of the project that takes the `map_location` for
    `torch.load`, where a call leaves it out and another gives it. The message names the line with
    the sign and, if the project has one, the line that saves the file:

    - The function, its class or its callers in the file can run without a GPU: they call
      `torch.cuda.is_available()`, or use a device from a variable, as in `model.to(device)`.
    - Several processes run it: its file joins a process group and chooses a GPU, wraps a model
      with `device_ids`, uses the rank, or makes an `Accelerator`. Each process then takes memory
      of the GPU that the file names.
    - Another branch of the function loads the same file with `map_location`, also through memory
      (`io.BytesIO(file.read())`).
    - The project saves this very file from wherever the model is, and a file that imports this one
      asks whether there is a GPU.
    - The function has a parameter `map_location` and never reads it.
    - It is a converter: the code takes weights by their key from a file of the command line, and
      names no device anywhere.

    Without such a sign, the load is reported by default only if its result is used as weights or
    state, and the message gives no reason. Only reported if the rule is selected (`--select
    DEV506`): other results, and loads

    - in which the name of the file contains the rank, or that only one rank runs;
    - in code that calls `net.cuda()` or chooses a GPU without a condition, because it needs a GPU
      anyway;
    - of a file whose name or address is fixed in the code, or that the project downloads or writes,
      and loads in scripts;
    - of a file that the same run saved: earlier in the function, during the training, or as the
      `best_model_path` of Lightning;
    - of a file that the project saves without tensors, or from the CPU;
    - under `if torch.cuda.is_available():`;
    - of files with little on a GPU: the state of schedulers and samplers, the full optimizer state
      of FSDP, `mmap=True` without a later `assign=True`, bytes in memory;
    - in a function with a parameter `map_location` that it passes on, None by default, if no call
      in the project gives it;
    - by `safetensors.torch.load(data)`, or `load_file(path)` without `device`, if another branch of
      the function loads the same file onto a device. These two always load to the CPU.

    Not reported: loads under `with torch.device(...)`, with `**kwargs`, of data that was saved into
    memory just before, and in tests.

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
    warns = False
    notes = False
    needs_callers = True
    triggers = (
        ("load(", "torch"),
        ("load_file(", "device"),
        ("load_url(", "torch"),
        ("load_state_dict_from_url(", "torch"),
        ("load_state_dict(", "torch"),
    )

    bad = (
        Bad(
            """\
import torch

def restore(model, optimizer, path, device):
    model.to(device).load_state_dict(torch.load(path))
    state = torch.load(f"{path}.opt", weights_only=True)
    optimizer.load_state_dict(state)
""",
            lines=(4, 5),
            fixed="""\
import torch

def restore(model, optimizer, path, device):
    model.to(device).load_state_dict(torch.load(path, map_location="cpu"))
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
        Bad(
            """\
import torch

def opened(path, map_location=None):
    with open(path, "rb") as file:
        return torch.load(file)
""",
            lines=(5,),
            fixed="""\
import torch

def opened(path, map_location=None):
    with open(path, "rb") as file:
        return torch.load(file, map_location=map_location)
""",
        ),
        Bad(
            """\
import io
import torch

def restore(model, archive, where):
    with archive.open("network.pt") as file:
        try:
            state = torch.load(file, map_location=where)
        except io.UnsupportedOperation:
            state = torch.load(io.BytesIO(file.read()))
    model.load_state_dict(state)
""",
            lines=(9,),
            fixed="""\
import io
import torch

def restore(model, archive, where):
    with archive.open("network.pt") as file:
        try:
            state = torch.load(file, map_location=where)
        except io.UnsupportedOperation:
            state = torch.load(io.BytesIO(file.read()), map_location="cpu")
    model.load_state_dict(state)
""",
        ),
        Bad(
            """\
import torch

def opened(path, device: torch.device):
    program = torch.jit.load(path, _extra_files={"names": ""})
    return torch.jit.freeze(program)
""",
            lines=(4,),
            fixed="""\
import torch

def opened(path, device: torch.device):
    program = torch.jit.load(path, _extra_files={"names": ""}, map_location=device)
    return torch.jit.freeze(program)
""",
        ),
        Bad(
            """\
import torch

def read(path, place=None):
    return torch.load(path, map_location=place)

def restored(model, path, device):
    state = read(path)
    model.to(device).load_state_dict(state["model"])

def evaluated(model, path, device):
    model.load_state_dict(read(path, place=device))
""",
            lines=(7,),
            fixed="""\
import torch

def read(path, place=None):
    return torch.load(path, map_location=place)

def restored(model, path, device):
    state = read(path, place="cpu")
    model.to(device).load_state_dict(state["model"])

def evaluated(model, path, device):
    model.load_state_dict(read(path, place=device))
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
            "import torch\n\ndef f(path, device):\n    with torch.device(device):\n"
            "        return torch.load(path)\n"
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
        for call in module.calls("torch.load", PROGRAM, *ADDRESSES):
            if not says_where(module, call) and not was_just_saved(module, call):
                yield self._found(module, call)
            elif (left_out := left_out_by_all(module, call)) is not None:
                yield self.finding(
                    module,
                    call,
                    f"no call in the project passes `{left_out}`, so it is None and the tensors go "
                    "to the device they were saved from",
                    severity=Severity.NOTE,
                    confidence=Confidence.MEDIUM,
                )
        for call, name in loaded_without_location(module):
            yield self._found(module, call, name)
        for left in left_on_cpu(module):
            yield self.finding(
                module,
                left.call,
                f"the tensors are loaded to the CPU here, while line {left.beside.lineno} loads "
                f"them to `{module.text(left.device)}`",
                severity=Severity.NOTE,
                confidence=Confidence.MEDIUM,
                trail=[(left.beside, f"loaded to `{module.text(left.device)}`")],
                told=True,
            )

    def _found(self, module: Module, call: ast.Call, location: str = "map_location") -> Finding:
        """It says what fails where the code shows it, and nothing speaks against it."""
        subject = _SUBJECT.replace("map_location", location)
        asked = module.qualified(call.func) == PROGRAM or used_as_state(module, call)
        matters = asked and not is_harmless(module, call)
        why = why_it_matters(module, call) if matters else None
        why = why or (of_another_path_in_memory(module, call) if asked else None)
        why = why or (needs_no_gpu(module, call) if asked else None)
        why = why or accepted_and_dropped(module, call)
        fixes = [map_location_added(module, call, location)]
        if why is None:
            return self.finding(
                module,
                call,
                f"{subject}, even if that device does not exist here",
                severity=Severity.NOTE,
                confidence=Confidence.MEDIUM,
                fixes=fixes,
                told=matters,
            )
        return self.finding(
            module,
            call,
            f"{subject}{where_it_is_saved(module, call)}: {why.says}",
            confidence=Confidence.HIGH,
            trail=[(why.node, why.step)],
            fixes=fixes,
        )
