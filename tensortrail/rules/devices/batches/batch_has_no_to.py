from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.findings import Finding, Fix, Safety, Severity
from tensortrail.rules import Bad, Good, Module, Rule
from tensortrail.rules.devices.shared.batches.bound_together import without_counter
from tensortrail.rules.devices.shared.batches.loaders_of_file import gives_tensors, loader_on_cpu
from tensortrail.rules.shared.classes import classes_named
from tensortrail.rules.shared.functions import functions
from tensortrail.rules.shared.in_tests import in_tests
from tensortrail.rules.shared.moves import MOVES
from tensortrail.rules.shared.objects import called, is_before, names_in, receiver, resolved_name
from tensortrail.rules.shared.origins import behind

_BUILTINS = {ast.Dict: "dict", ast.DictComp: "dict", ast.Tuple: "list", ast.List: "list"}
"""What a loader makes of several items of this form."""
_OF_TENSORS = "TensorDataset"


class BatchHasNoTo(Rule):
    """A whole batch is moved by `to`, but it is a dict or a list, which has no such method.

    ## What it does
    Reports `batch.to(device)` and `batch.cuda()` in a loop over a `DataLoader` of the file, if the
    items of its dataset are dicts, tuples or lists: a `TensorDataset`, a list of them, or a class
    of the file whose `__getitem__` gives such an item on every path.

    Not reported: loaders with a `collate_fn`, and a name that the loop gives another value before.

    ## Why is this bad?
    The first batch raises: `AttributeError: 'dict' object has no attribute 'to'`. The loader gives
    a dict of tensors for items that are dicts, and a list of tensors for items that are tuples.

    ## Fix safety
    Unsafe: every value of the batch is moved, which fails for texts. Offered for dicts and lists of
    a dataset of tensors.

    ## References
    - pytorch documentation of `torch.utils.data.default_collate`
    """

    code = "DEV642"
    name = "batch-has-no-to"
    severity = Severity.ERROR
    proven = False
    triggers = (("DataLoader", ".to("), ("DataLoader", ".cuda("), ("DataLoader", ".cpu("))

    bad = (
        Bad(
            """\
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, rows, labels):
        self.rows, self.labels = rows, labels

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"x": self.rows[index], "y": self.labels[index]}

def train(model, rows, labels):
    for batch in DataLoader(Rows(rows, labels), batch_size=8):
        batch = batch.to("cuda")
        model(batch["x"], batch["y"]).backward()
""",
            lines=(16,),
            fixed="""\
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, rows, labels):
        self.rows, self.labels = rows, labels

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return {"x": self.rows[index], "y": self.labels[index]}

def train(model, rows, labels):
    for batch in DataLoader(Rows(rows, labels), batch_size=8):
        batch = {key: value.to("cuda") for key, value in batch.items()}
        model(batch["x"], batch["y"]).backward()
""",
        ),
        Bad(
            """\
from torch.utils.data import DataLoader, TensorDataset

def train(model, rows, labels):
    loader = DataLoader(TensorDataset(rows, labels), batch_size=8)
    for step, batch in enumerate(loader):
        model(batch.cuda()).backward()
""",
            lines=(6,),
            fixed="""\
from torch.utils.data import DataLoader, TensorDataset

def train(model, rows, labels):
    loader = DataLoader(TensorDataset(rows, labels), batch_size=8)
    for step, batch in enumerate(loader):
        model([value.cuda() for value in batch]).backward()
""",
        ),
    )
    good = (
        Good(
            """\
from torch.utils.data import DataLoader, Dataset, TensorDataset

class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows

    def __getitem__(self, index):
        if index < 0:
            return self.rows[0]
        return self.rows[index], index

def train(model, rows, labels, device, collate):
    for batch in DataLoader(Rows(rows), batch_size=8):
        model(batch.to(device)).backward()
    for batch in DataLoader(TensorDataset(rows, labels), collate_fn=collate):
        model(batch.to(device)).backward()
    for batch in DataLoader(TensorDataset(rows, labels)):
        batch = batch[0]
        model(batch.to(device)).backward()
    for x, y in DataLoader(TensorDataset(rows, labels)):
        model(x.to(device), y.to(device)).backward()
    for batch in DataLoader(rows):
        model(batch.to(device)).backward()
"""
        ),
    )

    def check(self, module: Module) -> Iterator[Finding]:
        if in_tests(module):
            return
        for loop in module.nodes(ast.For):
            target = without_counter(loop)
            loader = loader_on_cpu(module, loop.iter) if isinstance(target, ast.Name) else None
            if loader is None or not isinstance(target, ast.Name):
                continue
            data = module.argument(loader, 0, "dataset")
            kind = _batch_of(module, data) if data is not None else ""
            move = _moved(module, loop, target.id) if kind else None
            if move is not None:
                yield self.finding(
                    module,
                    move,
                    f"`{target.id}` is a {kind}, which has no `{called(move)}`: the loader of line "
                    f"{loader.lineno} makes a {kind} of each batch",
                    trail=[(loader, f"gives a {kind} of tensors")],
                    fixes=[_each_moved(module, move, kind)],
                )


def _batch_of(module: Module, data: ast.expr) -> str:
    """What a loader without a `collate_fn` gives: "dict", "list", or "" if that is not known."""
    made = behind(module, data)
    if isinstance(made, (ast.List, ast.ListComp)):
        item = made.elt if isinstance(made, ast.ListComp) else next(iter(made.elts), None)
        return _BUILTINS.get(type(item), "")
    if not isinstance(made, ast.Call):
        return ""
    if resolved_name(module, made) == _OF_TENSORS and gives_tensors(module, data):
        return "list"
    classes = classes_named(module, called(made))
    kinds = {kind for each in classes for kind in _items_of(module, each)}
    return kinds.pop() if len(classes) == 1 and len(kinds) == 1 else ""


def _items_of(module: Module, cls: ast.ClassDef) -> Iterator[str]:
    for method in functions(module):
        if method.name != "__getitem__" or module.parent(method) is not cls:
            continue
        for each in module.nodes(ast.Return, method):
            if module.function_of(each) is method:
                value = behind(module, each.value) if each.value is not None else None
                yield _BUILTINS.get(type(value), "")


def _moved(module: Module, loop: ast.For, name: str) -> ast.Call | None:
    """The first move of the batch as a whole, while its name stands for what the loader gave."""
    stores = [each for each in module.uses(name, loop) if isinstance(each.ctx, ast.Store)]
    for call in module.calls(*MOVES, inside=loop):
        owner = receiver(call)
        if not isinstance(owner, ast.Name) or owner.id != name or owner.id in _asked(module, call):
            continue
        known = (loop, module.statement_of(call))
        others = (each for each in stores if module.statement_of(each) not in known)
        if not any(is_before(each, call) for each in others):
            return call if module.function_of(call) is module.function_of(loop) else None
    return None


def _asked(module: Module, call: ast.Call) -> set[str]:
    """Names that a condition around the move asks something of: `if hasattr(batch, "to")`."""
    tests = [each.test for each in module.ancestors(call) if isinstance(each, (ast.If, ast.IfExp))]
    return {name for each in tests for name in names_in(each)}


def _each_moved(module: Module, move: ast.Call, kind: str) -> Fix | None:
    owner = receiver(move)
    if owner is None:
        return None
    batch, asked = module.text(owner), module.text(move)[len(module.text(owner)) :]
    text = (
        f"{{key: value{asked} for key, value in {batch}.items()}}"
        if kind == "dict"
        else f"[value{asked} for value in {batch}]"
    )
    return module.fix("move each value of it", Safety.UNSAFE, module.replace(move, text))
