from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Confidence, Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Near, Rule
from tensortrail.rules.devices.shared.batches.dropped_batch import taken_as_tensor, written_back
from tensortrail.rules.devices.shared.moves.dropped import weight
from tensortrail.rules.devices.shared.moves.dropped_moves import (
    STATEMENT,
    WORDS,
    dropped_moves,
    is_loop_variable,
)
from tensortrail.rules.devices.shared.moves.dropped_on_purpose import changes_nothing, gives_itself
from tensortrail.rules.devices.shared.moves.rebound import (
    copies_not_in_place,
    may_be_tensor_given_back,
    rebound_in_loops,
)
from tensortrail.rules.devices.shared.moves.what_is_moved import (
    is_packed,
    is_tensor,
    moves_bytes,
    source_of,
    what_is_moved,
    works_in_place,
)
from tensortrail.rules.shared.sentences import one_line


class DiscardedTo(Rule):
    """The result of `tensor.to(...)` is dropped, and the tensor stays where it is.

    ## What it does
    Reports

    - a statement that only calls `t.to(...)`, `t.cpu()`, `t.detach()` or the like on a tensor;
    - the same for `t.squeeze()`, `t.view(...)`, `t.permute(...)` and others that change the shape;
    - such a call on a part of a batch, if the part is passed to a model or a loss afterwards;
    - `p = p.to(...)` in a loop over `parameters()`, if nothing uses this `p` afterwards;
    - `t.data.copy(other)`: tensors have no such method.

    Reported as a note:

    - a part of a batch, because the model may move it itself;
    - an argument, because the caller may have moved it, unless the function asks for its device;
    - a tensor that the function does not read afterwards, or only puts into a dict or a list, or
      only passes to a function that does not read it;
    - `obj.to(...)` on an object that may be a tensor or a module and is then returned;
    - `detach()`, a change of the dtype, and a move to the device of another tensor that a function
      of the project made;
    - results of `zeros_like`, entries of a state dict that is loaded later, tensors that are
      already on the device or that `numpy()` reads in the end, and arguments that may not be
      tensors.

    ## Why is this bad?
    The next operation mixes devices, or memory is not freed: `to` returns a new tensor, and the old
    one stays on its device, with its graph.

    ## Fix safety
    Unsafe, and only offered for a plain name: later code then uses the moved tensor.

    ## References
    - Lightning-AI/pytorch-lightning pull request 6216
    - huggingface/accelerate: parameters were upcast in a loop that kept nothing
    """

    code = "DEV504"
    name = "discarded-to"
    since = "0.2.0"
    severity = Severity.ERROR
    warns = False
    errors_as = Severity.WARNING
    notes = False
    triggers = (
        *(Near(word, STATEMENT) for word in WORDS),
        ".data.copy(",
        *((word, over) for word in WORDS for over in ("parameters(", "buffers(")),
    )

    bad = (
        Bad(
            """\
import torch

def finish(loss: torch.Tensor, device):
    loss.to(device)
    return loss
""",
            lines=(4,),
            fixed="""\
import torch

def finish(loss: torch.Tensor, device):
    loss = loss.to(device)
    return loss
""",
        ),
        Bad(
            """\
import torch

class Observer(torch.nn.Module):
    def __init__(self, weight: torch.Tensor, bias: torch.Tensor):
        self.bias = bias
        self.bias.to(weight.device)
""",
            lines=(6,),
        ),
        Bad(
            """\
def collect(outputs):
    for name, value in outputs.state_dict().items():
        value.detach().cpu()
""",
            lines=(3,),
        ),
        Bad(
            """\
import torch

def prepare(model, target, value):
    for name, weight in model.named_parameters():
        if weight.requires_grad:
            weight = weight.to(torch.float32)
    target.data.copy(value)

def placed(thing: torch.Tensor | torch.nn.Module, device):
    thing.to(device)
    return thing
""",
            lines=(6, 7, 10),
        ),
        Bad(
            """\
import torch

def train(model, loader, loss_of, device):
    model.to(device)
    for inputs, labels in loader:
        inputs.to(device)
        labels = labels.to(device)
        loss = loss_of(model(inputs), labels)
""",
            lines=(6,),
            fixed="""\
import torch

def train(model, loader, loss_of, device):
    model.to(device)
    for inputs, labels in loader:
        inputs = inputs.to(device)
        labels = labels.to(device)
        loss = loss_of(model(inputs), labels)
""",
        ),
        Bad(
            """\
import torch

class Net(torch.nn.Module):
    def training_step(self, batch, index):
        x, y = batch
        x.to(self.device), y.to(self.device)
        return torch.nn.functional.mse_loss(self(x), y)

    def predict(self, batches):
        for batch in batches:
            for name, part in batch.items():
                part.cuda()
            yield self(**batch)
""",
            lines=(6, 12),
            fixed="""\
import torch

class Net(torch.nn.Module):
    def training_step(self, batch, index):
        x, y = batch
        x.to(self.device), y.to(self.device)
        return torch.nn.functional.mse_loss(self(x), y)

    def predict(self, batches):
        for batch in batches:
            for name, part in batch.items():
                batch[name] = part.cuda()
            yield self(**batch)
""",
        ),
        Bad(
            """\
def evaluate(model, loader, device):
    model.eval()
    for batch in loader:
        for value in batch.values():
            value.to(device)
        print(model(**batch))
""",
            lines=(5,),
        ),
        Bad(
            "import torch.nn.utils.rnn as r\nx = r.pack_sequence(y)\nx.to(0)\n",
            lines=(3,),
            fixed="import torch.nn.utils.rnn as r\nx = r.pack_sequence(y)\nx = x.to(0)\n",
        ),
        Bad(
            "import torch\n\ndef f(x: torch.Tensor):\n    x.unsqueeze(1)\n    return x.sum(1)\n",
            lines=(4,),
            fixed="import torch\n\n"
            "def f(x: torch.Tensor):\n    x = x.unsqueeze(1)\n    return x.sum(1)\n",
        ),
    )
    good = (
        Good(
            """\
import torch

def train(model, loader, nets, device):
    model.to(device)
    for index, batch in enumerate(loader):
        batch.to(device)
        model(**batch)
    for graph in loader:
        graph.to(device)
        model(graph).backward(graph.y)
    for name, net in nets:
        net.to(device)
        both = torch.nn.Sequential(net, model)
"""
        ),
        Good(
            "def train(model, loss_of, loader, device):\n    model.train()\n"
            "    for batch in loader:\n        batch.to(device)\n"
            "        said, true = model(batch)\n        loss_of(said, true).backward()\n"
        ),
        Good("def f(model):\n    model.to('cuda')\n"),
        Good("def f(x):\n    x.to('cuda')\n"),
        Good("import torch\ndef f(x: torch.Tensor):\n    y = x.to('cuda')\n    return y\n"),
        Good(
            "import torch\n\nclass Layer(torch.nn.Module):\n    def move(self, device):\n"
            "        self.to(device)\n"
        ),
        Good("import torch\ndef f(x: torch.Tensor):\n    x.detach_()\n"),
        Good(
            """\
import torch

class Params4bit(torch.nn.Parameter):
    def to(self, device):
        return self.quantize(device)

def load(data, device):
    param = Params4bit(data)
    param.to(device)
    return param
"""
        ),
        Good("def f(observer, module):\n    observer.detach(module)\n"),
        Good(
            """\
import torch

def names(model: torch.nn.Module, device):
    kept = {}
    for name, weight in model.named_parameters():
        weight = weight.to(device)
        kept[name] = weight
    return kept
"""
        ),
        Good(
            "import torch\n\ndef mask_like(query: torch.Tensor):\n"
            "    mask = torch.zeros(4, dtype=query.dtype)\n    mask.to(query.dtype)\n"
            "    return mask\n"
        ),
        Good(
            """\
import torch

def can_cast(device):
    supported = True
    try:
        probe = torch.empty(1, device=device)
        probe.to(torch.float16)
        stored = probe * 2
        stored.to(torch.bfloat16)
    except TypeError:
        supported = False
    return supported
"""
        ),
        Good(
            """\
import torch

def bias(query: torch.Tensor, mask):
    if mask is None:
        made = torch.zeros(4, dtype=query.dtype, device=query.device)
    else:
        made = torch.zeros(size=mask.shape, dtype=query.dtype, device=query.device)
    made.to(dtype=query.dtype, device=query.device)
    return made
"""
        ),
        Good(
            "import torch\n\ndef target(online: torch.Tensor):\n    with torch.no_grad():\n"
            "        one, other = online.clone(), online * 2\n        one.detach()\n"
            "        other.detach()\n    return one + other\n"
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        for statement, call, subject in dropped_moves(module):
            taker = taken_as_tensor(module, statement, subject)
            if taker is not None and moves_bytes(module, call):
                yield self._of_batch(module, statement, call, subject, taker)
                continue
            if may_be_tensor_given_back(module, statement, subject):
                yield self._of_either(module, statement, subject)
                continue
            known = is_tensor(module, subject) or is_packed(module, subject)
            if not known or changes_nothing(module, call) or gives_itself(module, call):
                continue
            left = (
                "stays as it is" if not works_in_place(call) else "holds what was written into it"
            )
            yield self.finding(
                module,
                statement,
                f"`{one_line(module, call)}` returns a new tensor that is not used: "
                f"`{one_line(module, what_is_moved(subject))}` {left}",
                severity=weight(module, call),
                trail=[(source_of(module, subject), "the tensor comes from here")],
                fixes=[self._kept(module, statement, call)],
            )
        yield from self._lost(module)

    def _lost(self, module: Module) -> Iterator[Finding]:
        for assign, call in rebound_in_loops(module):
            yield self.finding(
                module,
                assign,
                f"`{one_line(module, assign)}` only assigns to the loop variable: the parameter of "
                "the module stays as it is",
                severity=weight(module, call),
            )
        for statement, call in copies_not_in_place(module):
            yield self.finding(
                module,
                statement,
                f"`{one_line(module, call.func)}` does not exist: the method that writes into a "
                "tensor is `copy_`",
            )

    def _of_batch(
        self,
        module: Module,
        statement: ast.Expr,
        call: ast.Call,
        subject: ast.expr,
        taker: ast.Call,
    ) -> Finding:
        shown, target = one_line(module, subject), written_back(module, statement, subject)
        alone = bool(target) and call is statement.value
        edit = module.insert_before(call, f"{target} = ") if alone else None
        return self.finding(
            module,
            call,
            f"`{one_line(module, call)}` returns a new tensor that is not used: "
            f"`{one_line(module, taker)}` in line {taker.lineno} gets the old one",
            severity=Severity.WARNING,  # it may move what it is given
            confidence=Confidence.MEDIUM,
            trail=[
                (call, f"`{shown}` is moved, and the result is not used"),
                (taker, "the old tensor is passed here"),
            ],
            fixes=[module.fix("keep the result", Safety.UNSAFE, edit) if edit else None],
        )

    def _of_either(self, module: Module, statement: ast.Expr, subject: ast.expr) -> Finding:
        return self.finding(
            module,
            statement,
            f"`{one_line(module, subject)}` may be a tensor or a module: a tensor is not moved by "
            "this, and is returned as it was",
            severity=Severity.WARNING,
        )

    def _kept(self, module: Module, statement: ast.Expr, call: ast.Call) -> Fix | None:
        root = what_is_moved(call)
        if not isinstance(root, ast.Name) or is_loop_variable(module, root):
            return None
        edit = module.insert_before(statement, f"{root.id} = ")
        return module.fix("keep the result", Safety.UNSAFE, edit)
