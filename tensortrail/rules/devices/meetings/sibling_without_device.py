from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from tensortrail.findings import Confidence, Finding, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.calls.explained import is_explained
from tensortrail.rules.devices.shared.meetings.forgotten import (
    is_surely_forgotten,
    may_be_forgotten,
)
from tensortrail.rules.devices.shared.meetings.siblings import Sibling, device_given_to, siblings_in
from tensortrail.rules.devices.shared.written_for.makers import FACTORIES
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.sentences import one_line


class SiblingWithoutDevice(Rule):
    """One of several tensors with the same use is not put on a device.

    ## What it does
    Looks at functions in which all factories of torch but one are given a device. Reports the one
    without, if its tensor and another one, which was made on a device or moved to one,

    - go into the same call, list, tuple or mapping;
    - are the same argument of two calls of one function;
    - have the same name in two branches of a condition; or
    - are attributes or entries of one object, as is a third one on a device.

    Also reports it if the function returns the tensor, and makes two others on a device that it was
    given.

    Reported as a note: a call of a function that is not torch's, and attributes.

    Not reported: an index, a name that contains `cpu` or `host`, pinned memory, and a result that
    is moved, copied or read out later; code under a condition about devices or types, and code that
    prepares data or exports. A tensor without a dimension counts only beside other numbers.

    ## Why is this bad?
    This tensor is on the default device, usually the CPU, and the others are on the device that the
    caller chose. An operation that combines them raises.

    ## Fix safety
    No fix is offered: several devices may be at hand.

    ## References
    - pytorch documentation, "Tensor attributes", `torch.device`
    """

    code = "DEV552"
    name = "sibling-without-device"
    severity = Severity.WARNING
    warns = False
    needs_callers = True
    confidence = Confidence.MEDIUM
    explains = ("DEV526", "DEV528")
    triggers = tuple(("torch", "device", name) for name in FACTORIES)
    bad = (
        Bad(
            "import torch\n\n\ndef counters(fabric):\n    return keep({\n"
            "        'rows': torch.tensor(0, device=fabric.device),\n"
            "        'words': torch.tensor(0),\n    })\n",
            lines=(7,),
            instead="import torch\n\n\ndef counters(fabric):\n    return keep({\n"
            "        'rows': torch.tensor(0, device=fabric.device),\n"
            "        'words': torch.tensor(0, device=fabric.device),\n    })\n",
        ),
        Bad(
            "import torch\n\n\ndef example(self, n):\n    device = next(self.parameters()).device\n"
            "    rows = torch.randn(1, n, device=device)\n"
            "    weights = torch.rand(n, 2).round().float()\n    return rows, weights\n",
            lines=(7,),
        ),
        Bad(
            "import torch\n\n\ndef shared(group, own, batch, device, n):\n"
            "    size = batch.total().to(device)\n    spent = torch.tensor(own.seconds)\n"
            "    group.reduce(size, op='sum')\n    group.reduce(spent, op='sum')\n"
            "    return size / spent\n",
            lines=(6,),
        ),
        Bad(
            "import torch\n\n\nclass Decoder:\n    def start(self, x, n):\n"
            "        self.hidden = torch.zeros(1, device=x.device).repeat(n, 4)\n"
            "        self.cell = torch.zeros(1).repeat(n, 8)\n"
            "        self.context = torch.zeros(n, 2, device=x.device)\n",
            lines=(7,),
        ),
        Bad(
            "import torch\n\n\ndef dropped(labels, kept, share):\n    if kept is None:\n"
            "        left = torch.rand(len(labels), device=labels.device) < share\n    else:\n"
            "        left = torch.tensor(kept) == 1\n    return labels.masked_fill(left, 0)\n",
            lines=(8,),
        ),
        Bad(
            "import torch\n\n\ndef waves(n, width, device):\n    table = torch.zeros(n, width)\n"
            "    at = torch.arange(n, device=device)[:, None]\n"
            "    rates = torch.arange(width, device=device)[None]\n"
            "    table[:, :] = torch.sin(at * rates)\n    return table\n",
            lines=(5,),
        ),
        Bad(
            "import torch\n\n\ndef normed(batch, key, middle, spread):\n    x = batch[key]\n"
            "    left = torch.full((3, 1), middle, device=x.device)\n"
            "    width = torch.full((3, 2), spread)\n    batch['x'] = (x - left) / width\n",
            lines=(7,),
        ),
    )
    good = (
        Good(
            """\
import torch

def adjacency(faces: torch.Tensor, n, sparse, device):
    edges = faces.t()
    if sparse:
        values = torch.ones(edges.shape[1], device=device)
        found = torch.sparse.FloatTensor(edges, values, (n, n))
    else:
        found = torch.zeros((n, n), device=device)
        found[edges[0], edges[1]] = 1
    return found
"""
        ),
        Good(
            "import torch\n\n\ndef counters(fabric):\n    return keep({\n"
            "        'rows': torch.tensor(0, device=fabric.device),\n"
            "        'words': torch.tensor(0),\n    }).to(fabric.device)\n"
        ),
        Good(
            "import torch\n\n\ndef tables(theta, n, steps):\n"
            "    rates = 1.0 / theta ** (torch.arange(0, n, 2) / n)\n"
            "    at = torch.arange(steps, device=rates.device)\n    return torch.outer(at, rates)\n"
        ),
        Good(
            "import torch\n\n\ndef example(x, n):\n    rows = torch.randn(1, n, device=x.device)\n"
            "    weights = torch.rand(n, 2)\n    return rows, weights.to(x.device)\n"
        ),
        Good(
            "import torch\n\n\ndef buffers(self, n, device):\n"
            "    self.rows = torch.empty(n, device=device)\n"
            "    self.columns = torch.empty(n, device=device)\n"
            "    self.counts = torch.empty(n, pin_memory=True)\n"
        ),
        Good(
            "import torch\n\n\ndef best(x):\n    top = torch.tensor(0.0, device=x.device)\n"
            "    at = torch.tensor(0)\n    return top, at\n"
        ),
        Good(
            "import torch\n\n\ndef example(x, n, capturable):\n"
            "    rows = torch.randn(n, device=x.device)\n"
            "    step = torch.ones(n, device=x.device) if capturable else torch.ones(n)\n"
            "    return rows, step\n"
        ),
        Good(
            """\
import torch

def dense(level, device):
    counts = torch.tensor([8**level], dtype=torch.int32)
    codes = torch.full((counts,), 255, device=device, dtype=torch.uint8)
    return codes, counts

def adjacency(pairs: torch.Tensor, count, sparse):
    device = pairs.device
    if sparse:
        ones = torch.ones(pairs.shape[1], device=device)
        found = torch.sparse.FloatTensor(pairs, ones, (count, count))
    else:
        found = torch.zeros(count, count, device=device)
    return found
"""
        ),
        Good(
            "import torch\n\n\ndef summed(value):\n    if not value.is_cuda:\n"
            "        value = value.cuda()\n    return value.sum()\n\n\ndef totals(x, rows):\n"
            "    words = summed(torch.tensor(len(rows)))\n"
            "    return words, summed(torch.tensor(rows[0], device=x.device))\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for call in module.calls(*FACTORIES):
            function = module.function_of(call)
            if function is None or not may_be_forgotten(module, function, call):
                continue
            found = siblings_in(module, function, call)
            if not found or module.gpu_made_default() is not None:
                continue
            if not is_explained(module, call, [each.call for each in found]):
                yield self._reported(module, call, found)

    def _reported(self, module: Module, call: ast.Call, found: Sequence[Sibling]) -> Finding:
        first = found[0]
        taken = first.kind.value.format(getattr(first.taken, "lineno", call.lineno))
        sure = any(is_surely_forgotten(module, each) for each in found)
        return self.finding(
            module,
            call,
            f"`{one_line(module, call)}` gets no device, but the tensor of line "
            f"{first.call.lineno} is on `{device_given_to(module, first.call)}`; {taken}",
            severity=None if sure else Severity.NOTE,
            trail=tuple((each.call, "put on a device") for each in found[:2]),
        )
