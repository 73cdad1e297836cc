from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.batches.bound_together import without_counter
from tensortrail.rules.devices.shared.batches.loaders_of_file import gives_tensors, loader_on_cpu
from tensortrail.rules.devices.shared.batches.moved_models import Moved, moved_before
from tensortrail.rules.devices.shared.named.devices_named import names_device
from tensortrail.rules.shared.asked_as_modules import asked_as_modules
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import TO_DEVICE
from tensortrail.rules.shared.objects import called, given, is_before, names_in, within
from tensortrail.rules.words import Kind

_OF_TENSORS = frozenset(
    "size shape view float long numel dim unsqueeze squeeze reshape flatten permute".split()
)
_KEEP = frozenset({"append", "extend", "add", "print"})
"""What is given a batch, gives nothing, and leaves it as it is."""
_ELSEWHERE = (
    "prepare", "set_default_device", "set_default_tensor_type", "DataParallel", "data_parallel",
    "setup_dataloaders", "initialize",
)  # fmt: skip


class BatchNotMoved(Rule):
    """A model is moved to a device, and the batches that it is called with are not.

    ## What it does
    Reports `model(batch)` in a loop over a `DataLoader` that the file makes, if the model was moved
    to a device in the same function, or both are names of the file, and nothing of the batch is.

    Not reported: batches that may not be tensors, loaders with a `collate_fn`, datasets that name a
    device, files that call `prepare`, `DataParallel` or `set_default_device`, and models that are
    moved to the CPU.

    ## Why is this bad?
    The first batch on a GPU raises "Expected all tensors to be on the same device" or "Input type
    and weight type should be the same": a loader gives tensors on the CPU. On the CPU everything
    works.

    ## Fix safety
    Unsafe: a batch may be an object of a class without `to`. Offered where the loop names its
    tensors.

    ## References
    - pytorch documentation, "Training a Classifier": inputs and targets are both sent to the GPU
    - ultralytics/yolov5#2106
    """

    code = "DEV627"
    name = "batch-not-moved"
    severity = Severity.WARNING
    proven = False
    triggers = (("DataLoader", ".to("), ("DataLoader", ".cuda("))

    bad = (
        Bad(
            """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def fit(x, y, device):
    loader = DataLoader(TensorDataset(x, y), batch_size=8)
    model = nn.Linear(4, 2).to(device)
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
""",
            lines=(9,),
            fixed="""\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def fit(x, y, device):
    loader = DataLoader(TensorDataset(x, y), batch_size=8)
    model = nn.Linear(4, 2).to(device)
    for inputs, labels in loader:
        inputs, labels = inputs.to(device), labels.to(device)
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
""",
        ),
        Bad(
            """\
import torch
from torch.utils.data import DataLoader

def fit(data, model, optimizer):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.to(device)
    train_loader = DataLoader(data, batch_size=8, shuffle=True)
    model.train()
    for step, batch in enumerate(train_loader):
        outputs = model(**batch)
        outputs.loss.backward()
        optimizer.step()
""",
            lines=(10,),
        ),
        Bad(
            """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(64, 4), torch.zeros(64))
train, val = DataLoader(data, 16), DataLoader(data, 16)
model = nn.Linear(4, 2).to("cuda")

def evaluate():
    return sum(model(x).argmax(-1).eq(y).sum().item() for x, y in val)

def shown():
    for x, y in val:
        print(model(x))
""",
            lines=(14,),
        ),
        Bad(
            """\
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import MNIST

def fit(folder, where):
    rows = DataLoader(MNIST(folder), batch_size=8)
    net = nn.Linear(4, 2).to(where)
    for inputs, labels in rows:
        weights = torch.ones(2, device=where)
        nn.functional.cross_entropy(net(inputs), labels, weights).backward()
""",
            lines=(11,),
            fixed="""\
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import MNIST

def fit(folder, where):
    rows = DataLoader(MNIST(folder), batch_size=8)
    net = nn.Linear(4, 2).to(where)
    for inputs, labels in rows:
        inputs, labels = inputs.to(where), labels.to(where)
        weights = torch.ones(2, device=where)
        nn.functional.cross_entropy(net(inputs), labels, weights).backward()
""",
        ),
    )
    good = (
        Good(
            """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def fit(x, y, device):
    loader = DataLoader(TensorDataset(x, y), batch_size=8)
    model = nn.Linear(4, 2).to(device)
    for inputs, labels in loader:
        inputs = inputs.to(device)
        loss = nn.functional.cross_entropy(model(inputs), labels.to(device))
        loss.backward()
"""
        ),
        Good(
            """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def fit(x, y):
    loader = DataLoader(TensorDataset(x.cuda(), y.cuda()), batch_size=8)
    model = nn.Linear(4, 2).cuda()
    for inputs, labels in loader:
        nn.functional.cross_entropy(model(inputs), labels).backward()

def score(x, device):
    loader = DataLoader(TensorDataset(x), batch_size=8)
    model = nn.Linear(4, 2).to(device)
    model = model.cpu()
    for inputs, in loader:
        print(model(inputs))

def halved(x):
    loader = DataLoader(TensorDataset(x), batch_size=8)
    kind = torch.half if torch.cuda.is_available() else torch.bfloat16
    model = nn.Linear(4, 2).to(kind)
    for inputs, in loader:
        print(model(inputs))
"""
        ),
        Good(
            """\
from torch.utils.data import DataLoader

def shown(prompts, pipeline, device):
    loader = DataLoader(prompts, batch_size=8)
    pipeline.to(device)
    for example in loader:
        yield pipeline(example["prompt"]).images
"""
        ),
        Good(
            """\
from torch.utils.data import DataLoader

def fit(data, model, device, moved):
    loader = DataLoader(data, batch_size=8, collate_fn=moved)
    model.train()
    model.to(device)
    for batch in loader:
        model(**batch).backward()
"""
        ),
        Good(
            """\
from torch.utils.data import DataLoader

def fit(data, model, device):
    loader = DataLoader(data, batch_size=8)
    model.train()
    model.to(device)
    for batch in loader:
        for name in batch:
            batch[name] = batch[name].to(device)
        model(**batch).backward()
"""
        ),
        Good(
            """\
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def placed_before(x, where, placed):
    loader = DataLoader(TensorDataset(placed(x, where)), batch_size=8)
    model = nn.Linear(4, 2).to(where)
    for inputs, in loader:
        print(model(inputs))

def placed_in_the_loop(x, where, place):
    loader = DataLoader(TensorDataset(x), batch_size=8)
    model = nn.Linear(4, 2).to(where)
    for inputs, in loader:
        place(inputs)
        print(model(inputs))

def of_another_type(x, precision):
    loader = DataLoader(TensorDataset(x.to(dtype=precision)), batch_size=8)
    model = nn.Linear(4, 2).to(precision)
    for inputs, in loader:
        print(model(inputs))
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module) or any(True for _ in module.calls(*_ELSEWHERE)):
            return
        for loop in module.nodes(ast.For):
            loader = loader_on_cpu(module, loop.iter)
            names = names_in(without_counter(loop)) if loader is not None else set()
            if loader is None or not names or _are_moved(module, loop, names):
                continue
            for call in module.nodes(ast.Call, loop):
                moved = moved_before(module, loop, call) if _is_given(call, names) else None
                if moved is not None and _are_tensors(module, loop, call, names, loader):
                    yield self._found(module, loop, call, moved, loader)
                    break

    def _found(
        self, module: Module, loop: ast.For, call: ast.Call, moved: Moved, loader: ast.Call
    ) -> Finding:
        return self.finding(
            module,
            call,
            f"`{moved.name}` was moved to `{moved.device}`, and nothing moves the batch that it is "
            "given: the loader gives it on the CPU",
            trail=[(moved.call, "the model is moved here"), (loader, "the batches come from here")],
            fixes=[_fix(module, loop, moved)],
        )


def _are_moved(module: Module, loop: ast.For, names: set[str]) -> bool:
    """Anything in the loop moves something, or may move the batch, or one of the names is bound
    anew."""
    if any(True for _ in module.calls(*TO_DEVICE, inside=loop)):
        return True
    if any(_may_move(module, call, names) for call in _before_the_model(module, loop, names)):
        return True
    return any(
        each.id in names
        and isinstance(each.ctx, ast.Store)
        and not within(each, loop.target, module)
        for each in module.nodes(ast.Name, loop)
    )


def _before_the_model(module: Module, loop: ast.For, names: set[str]) -> Iterator[ast.Call]:
    """Calls of the loop that come before a model is given the batch."""
    calls = module.nodes(ast.Call, loop)
    taking = (each for each in calls if _is_given(each, names) and _is_model(module, each.func))
    first = next(taking, None)
    return (each for each in calls if first is None or is_before(each, first))


def _may_move(module: Module, call: ast.Call, names: set[str]) -> bool:
    """A call that is given the batch and a device; or the batch alone, and gives nothing: it works
    on it in place."""
    if not any(isinstance(each, ast.Name) and each.id in names for each in given(call)):
        return False
    if names_device(module, call):
        return True
    is_dropped = isinstance(module.parent(call), ast.Expr)
    return is_dropped and called(call) not in _KEEP and not _is_model(module, call.func)


def _is_model(module: Module, node: ast.expr) -> bool:
    return module.kind_of(node) is Kind.MODULE or module.text(node) in asked_as_modules(module)


def _are_tensors(
    module: Module, loop: ast.For, call: ast.Call, names: set[str], loader: ast.Call
) -> bool:
    """A dataset of tensors, a batch that is unpacked by its keys, or one that is asked what only
    tensors are asked; and a model that takes it, no pipeline."""
    assert isinstance(call.func, ast.Name)
    if not _is_model(module, call.func):
        return False
    data = module.argument(loader, 0, "dataset")
    if data is None or any(each.arg is None for each in call.keywords):
        return data is not None
    if gives_tensors(module, data):
        return True
    above = (module.parent(each) for each in module.nodes(ast.Name, loop) if each.id in names)
    return any(isinstance(each, ast.Attribute) and each.attr in _OF_TENSORS for each in above)


def _is_given(call: ast.Call, names: set[str]) -> bool:
    """The batch itself, to something that is called by a name."""
    if not isinstance(call.func, ast.Name):
        return False
    starred = [each.value for each in call.keywords]
    parts = (*call.args, *starred)
    return any(isinstance(each, ast.Name) and each.id in names for each in parts)


def _fix(module: Module, loop: ast.For, moved: Moved) -> Fix | None:
    """`inputs, labels = inputs.to(device), labels.to(device)` at the beginning of the loop."""
    target = without_counter(loop)
    names = [each for each in getattr(target, "elts", []) if isinstance(each, ast.Name)]
    if not names or len(names) != len(getattr(target, "elts", [])) or '"' in moved.device:
        return None
    listed = ", ".join(each.id for each in names)
    parts = ", ".join(f"{each.id}.to({moved.device})" for each in names)
    indent = " " * loop.body[0].col_offset
    edit = module.insert_before(loop.body[0], f"{listed} = {parts}\n{indent}")
    return module.fix("move the batch at the beginning of the loop", Safety.UNSAFE, edit)
