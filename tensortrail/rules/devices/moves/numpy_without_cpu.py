from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tensortrail.findings import Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule, Timeline
from tensortrail.rules.devices.shared.moves.numpy_elsewhere import is_callers
from tensortrail.rules.devices.shared.moves.numpy_mends import by_cpu, by_cpu_in_run
from tensortrail.rules.devices.shared.moves.numpy_reads import (
    is_always_on_cpu,
    is_decided,
    is_of_another_library,
    is_surely_a_tensor,
    read_by_numpy,
    starts_with,
)
from tensortrail.rules.devices.shared.moves.numpy_told import (
    Told,
    by_a_caller,
    by_its_place,
    found_by_numpy,
)
from tensortrail.rules.shared.failures import errors, weight
from tensortrail.rules.shared.given_values import passing
from tensortrail.rules.shared.history import put_there
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.lines import doer
from tensortrail.rules.shared.operands import called, operands
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.shared.tensor_origin import origin_of
from tensortrail.rules.shared.who_decides import Decides
from tensortrail.rules.unreached import is_behind_the_end, is_excluded

_NOT_CPU = frozenset("cuda xpu mps npu hpu meta".split())
_REFUSED = re.compile(r"can't convert \S+ device type tensor to numpy")


class NumpyWithoutCpu(Rule):
    """`.numpy()` is called on a tensor that is on a GPU, or may be on one.

    ## What it does
    Reports `.numpy()` on a tensor that was put on a device, or on the output of a model for such a
    tensor: `model(x.to(device)).detach().numpy()`. Other functions that read a tensor through NumPy
    are treated alike: `np.array`, `np.sqrt`, `np.linalg.norm` and the like, `np.concatenate` of a
    list of tensors, scores of scikit-learn, and plots of matplotlib.

    Reported as a note:

    - an argument for which a call of the project passes a tensor on a device;
    - a member of an object (`state.numbers`) of which two others are brought to the CPU before;
    - an argument that is surely a tensor, or the output of a submodule, in a file that handles
      devices;
    - `x.detach().numpy()`, and a tensor stored by a class with its own `to` or `cuda`, if this file
      or one that imports it names a GPU, or if users of a library call the code;
    - other arguments, and a value that is computed from one, if the rule is selected.

    Not reported: code under a condition about devices, tensors that were moved to the CPU
    (`.cpu()`, `.to("cpu")`) or come from NumPy, and `numpy(force=True)`.

    ## Why is this bad?
    torch raises a TypeError: NumPy reads the memory of the CPU only.

    ## What you may see
    ```
    TypeError: can't convert cuda:0 device type tensor to numpy
    ```

    ## Fix safety
    Unsafe: on the CPU, `.cpu()` changes nothing; on a GPU the array is a copy.

    ## References
    - huggingface/accelerate pull request 945
    - bitsandbytes-foundation/bitsandbytes pull request 922
    """

    code = "DEV503"
    name = "numpy-without-cpu"
    since = "0.2.0"
    severity = Severity.WARNING
    warns = False
    errors_as = Severity.WARNING
    notes = False
    triggers = (
        ".numpy(",
        (".to(", "numpy"),
        (".to(", "matplotlib"),
        (".to(", "sklearn.metrics"),
    )

    bad = (
        Bad(
            "import torch\nx = torch.ones(2, device='cuda').numpy()\n",
            lines=(2,),
            fixed="import torch\nx = torch.ones(2, device='cuda').cpu().numpy()\n",
        ),
        Bad(
            """\
import torch

def write(weight: torch.Tensor, path, device):
    array = weight.detach().numpy()
    array.tofile(path)
    return weight.to(device)
""",
            lines=(4,),
            fixed="""\
import torch

def write(weight: torch.Tensor, path, device):
    array = weight.detach().cpu().numpy()
    array.tofile(path)
    return weight.to(device)
""",
        ),
        Bad(
            """\
from torch import nn

class Tagger(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.score = nn.Linear(size, 1)

    def tags(self, x):
        scores = self.score(x.to(self.score.weight.device))
        return scores.detach().numpy()
""",
            lines=(10,),
            fixed="""\
from torch import nn

class Tagger(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.score = nn.Linear(size, 1)

    def tags(self, x):
        scores = self.score(x.to(self.score.weight.device))
        return scores.detach().cpu().numpy()
""",
        ),
        Bad(
            """\
import torch

def predict(model, x, device):
    pred = model(x.to(device))
    return pred.detach().numpy()
""",
            lines=(5,),
            fixed="""\
import torch

def predict(model, x, device):
    pred = model(x.to(device))
    return pred.detach().cpu().numpy()
""",
        ),
        Bad(
            "import torch\n\ndef masks(net, image):\n    out = net(image.cuda())\n"
            "    out = torch.sigmoid(out)\n    return out.squeeze(0).detach().numpy()\n",
            lines=(6,),
            fixed="import torch\n\ndef masks(net, image):\n    out = net(image.cuda())\n"
            "    out = torch.sigmoid(out)\n    return out.squeeze(0).detach().cpu().numpy()\n",
        ),
        Bad(
            """\
import numpy as np
from torch import nn

def scores(model: nn.Module, x, device):
    out = model(x.to(device))
    return np.array(out.softmax(-1))
""",
            lines=(6,),
            fixed="""\
import numpy as np
from torch import nn

def scores(model: nn.Module, x, device):
    out = model(x.to(device))
    return np.array(out.softmax(-1).cpu())
""",
        ),
        Bad(
            """\
import numpy as np
from torch import nn

def scores(model: nn.Module, loader, device):
    found = []
    for x in loader:
        found.append(model(x.to(device)).detach())
    return np.concatenate(found)
""",
            lines=(8,),
            fixed="""\
import numpy as np
from torch import nn

def scores(model: nn.Module, loader, device):
    found = []
    for x in loader:
        found.append(model(x.to(device)).detach().cpu())
    return np.concatenate(found)
""",
        ),
        Bad(
            """\
import torch

def predicted(model, loader, device):
    model.to(device)
    rows = []
    for batch in loader:
        rows.append(model(batch.to(device)))
    return torch.cat(rows).numpy()
""",
            lines=(8,),
            fixed="""\
import torch

def predicted(model, loader, device):
    model.to(device)
    rows = []
    for batch in loader:
        rows.append(model(batch.to(device)))
    return torch.cat(rows).cpu().numpy()
""",
        ),
        Bad(
            """\
import torch

class Graph:
    def to(self, device):
        return Graph(self.edges.to(device))

    def table(self, weights):
        return self.edges.numpy(), [w.detach().numpy() for w in weights]

def start(edges, model):
    return Graph(edges).to("cuda").table(model.cuda().parameters())
""",
            lines=(8,),
            fixed="""\
import torch

class Graph:
    def to(self, device):
        return Graph(self.edges.to(device))

    def table(self, weights):
        return self.edges.cpu().numpy(), [w.detach().cpu().numpy() for w in weights]

def start(edges, model):
    return Graph(edges).to("cuda").table(model.cuda().parameters())
""",
        ),
        Bad(
            "import torch\n\ndef rows(scores, names):\n"
            "    return dict(zip(names, scores.numpy()))\n\ndef run(net, loader, names, device):\n"
            "    return [rows(net(x.to(device)), names) for x in loader]\n",
            lines=(4,),
            fixed="import torch\n\ndef rows(scores, names):\n"
            "    return dict(zip(names, scores.cpu().numpy()))\n\n"
            "def run(net, loader, names, device):\n"
            "    return [rows(net(x.to(device)), names) for x in loader]\n",
        ),
    )
    good = (
        Good("import torch\nx = torch.ones(2).numpy()\n"),
        Good("import torch\ndef f(x: torch.Tensor):\n    x = x.cpu()\n    return x.numpy()\n"),
        Good("import torch\ndef f(a):\n    return torch.from_numpy(a).flip(0).numpy()\n"),
        Good(
            "import torch\n\ndef predict(model, x, device):\n"
            "    pred = model(x.to(device)).cpu()\n    return pred.detach().numpy()\n"
        ),
        Good(
            "import numpy as np\n\ndef table(read, x, device):\n    rows = read(x.to(device))\n"
            "    return np.array(rows), len(rows)\n"
        ),
        Good(
            """\
import torch

def predict(model, x, device):
    pred = model(x.to(device))
    if device == "cpu":
        return pred.detach().numpy()
    return pred
"""
        ),
        Good(
            "import torch\n\ndef predict(model, x):\n"
            '    device = torch.device("cpu")\n    return model(x.to(device)).numpy()\n'
        ),
        Good(
            "import torch\n\ndef write(weight: torch.Tensor, device):\n"
            '    if weight.device.type == "cpu":\n        return weight.numpy()\n'
            "    return weight.to(device)\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module) or is_of_another_library(module):
            return
        for call in module.calls("numpy"):
            func = call.func
            if not isinstance(func, ast.Attribute) or call.args or call.keywords:
                continue
            if is_behind_the_end(module, call):
                continue
            device = module.placement_at(func.value).device
            if device in _NOT_CPU and not is_excluded(module, call):
                where = f"`{one_line(module, func.value)}` is on {device}"
                message = f"{where}, and numpy reads the CPU only"
                yield self._found(module, func, func.value, Told(message, Severity.ERROR))
            elif is_decided(module, call):
                continue
            elif (told := by_a_caller(module, func.value)) is not None:
                yield self._found(module, func, func.value, told)
            elif is_callers(module, func.value):
                if not is_always_on_cpu(module, func.value):
                    yield self._of_callers(module, func)
            elif (told := by_its_place(module, func.value)) is not None:
                yield self._found(module, func, func.value, told)
        for call, read in read_by_numpy(module):
            if not is_decided(module, call):
                found = found_by_numpy(module, read)
                if found is not None:
                    yield self._found(module, call, read, found)

    def _of_callers(self, module: Module, func: ast.Attribute) -> Finding:
        origin = origin_of(module, func.value)
        shown = one_line(module, origin.node) if origin.node is not None else "the tensor"
        given = origin.decides is Decides.GIVEN
        put = "where the caller put it" if given else "on the device of the module"
        message = f"`{shown}` is {put}: if that is a GPU, `.numpy()` raises"
        surely = is_surely_a_tensor(module, func.value)
        direct = not given or (surely and starts_with(func.value, shown))
        return self._found(module, func, func.value, Told(message, is_told=direct))

    def watch(self, timeline: Timeline) -> Iterator[Finding]:
        for events in errors(timeline, _REFUSED):
            event = events[0]
            asked = next(iter(operands(timeline, event)), None)
            if asked is None or asked.device == "meta":
                continue
            severity, confidence = weight(timeline, events)
            by = put_there(timeline, asked.storage, event) if asked.storage else None
            yield self.finding_in_run(
                timeline,
                event,
                f"NumPy reads the CPU only: {called(timeline, asked)} is on {asked.device}"
                + (f", put there by {doer(by)}" if by else ""),
                severity=severity,
                confidence=confidence,
                about=asked.storage,
                fixes=[by_cpu_in_run(timeline, event, asked.has_gradient)],
            )

    def _found(self, module: Module, node: ast.expr, tensor: ast.expr, told: Told) -> Finding:
        return self.finding(
            module,
            node,
            told.message,
            severity=told.severity,
            confidence=told.confidence,
            fixes=[by_cpu(module, tensor)],
            trail=passing(told.given),
            told=told.is_told,
        )
