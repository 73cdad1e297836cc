"""Functions of a file that run in worker processes of a DataLoader."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensortrail.rules.shared.moves import ACCELERATORS, TO_DEVICE
from tensortrail.rules.shared.objects import called, keyword, last_name, resolved_name
from tensortrail.rules.shared.origins import behind, text_behind
from tensortrail.rules.view import FunctionNode, Module

_LOADERS = ("torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader")
_READS = frozenset({"__getitem__", "__getitems__", "__iter__", "__next__"})


def loaders(module: Module) -> Iterator[ast.Call]:
    return module.calls(*_LOADERS)


def loaders_with_workers(module: Module) -> Iterator[ast.Call]:
    """DataLoaders that fork worker processes."""
    for call in loaders(module):
        count = module.argument(call, 5, "num_workers")
        started = keyword(call, "multiprocessing_context")
        if count is not None and started is None and module.value_of(count).constant != 0:
            yield call


def run_in_workers(module: Module, loader: ast.Call) -> Iterator[FunctionNode]:
    """Methods of its dataset that give an item, and what collates them, if the file has them."""
    dataset = module.argument(loader, 0, "dataset")
    made = behind(module, dataset) if dataset is not None else None
    if isinstance(made, ast.Call):
        methods = _methods_of(module, called(made))
        yield from (each for name, each in methods.items() if name in _READS)
    collate = _function_given(module, keyword(loader, "collate_fn"))
    name = last_name(collate)
    yield from (each for each in module.nodes(ast.FunctionDef) if each.name == name)


def _function_given(module: Module, given: ast.expr | None) -> ast.expr | None:
    """`f` of `f`, `self.f`, `partial(f, width)`, or of a name for one of them."""
    made = behind(module, given) if given is not None else None
    if isinstance(made, ast.Call) and resolved_name(module, made) == "partial" and made.args:
        return made.args[0]
    return made


def _methods_of(module: Module, name: str, depth: int = 3) -> dict[str, ast.FunctionDef]:
    """Of a class of the file, those of its bases in the file too."""
    found: dict[str, ast.FunctionDef] = {}
    for cls in module.nodes(ast.ClassDef):
        if cls.name == name:
            for base in cls.bases if depth else ():
                found |= _methods_of(module, last_name(base), depth - 1)
            found |= {each.name: each for each in cls.body if isinstance(each, ast.FunctionDef)}
    return found


def moves_to_a_gpu(module: Module, function: FunctionNode) -> Iterator[ast.Call]:
    """Calls of the function that put a tensor on CUDA."""
    for call in module.nodes(ast.Call, function):
        device = keyword(call, "device")
        if called(call) == "cuda" and isinstance(call.func, ast.Attribute):
            yield call
        elif called(call) == "to" and call.args:
            device = device or call.args[0]
        if device is not None and "cuda" in text_behind(module, device):
            yield call


def tensors_on_a_gpu(module: Module, loader: ast.Call) -> Iterator[ast.expr]:
    """Those that a `TensorDataset` gives a part of at each step."""
    dataset = module.argument(loader, 0, "dataset")
    made = behind(module, dataset) if dataset is not None else None
    if isinstance(made, ast.Call) and module.qualified(made.func).endswith(".TensorDataset"):
        yield from (each for each in made.args if module.placement_at(each).device in ACCELERATORS)


def given_on_a_gpu(module: Module, function: FunctionNode) -> Iterator[ast.Call]:
    """Moves to CUDA of what the function gives back."""
    returns = module.nodes(ast.Return, function)
    names = {node.id for each in returns for node in module.nodes(ast.Name, each)}
    for call in moves_to_a_gpu(module, function):
        statement = module.statement_of(call)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        bound = any(isinstance(each, ast.Name) and each.id in names for each in targets)
        at_once = isinstance(statement, ast.Return) and called(call) in TO_DEVICE
        if at_once or (bound and isinstance(statement, ast.Assign) and statement.value is call):
            yield call


def data_of(module: Module, loader: ast.Call) -> Iterator[ast.expr]:
    """What its dataset is made of, where the function makes it: `Rows(x, y)`."""
    dataset = module.argument(loader, 0, "dataset")
    made = behind(module, dataset) if dataset is not None else None
    if isinstance(made, ast.Call):
        yield from (*made.args, *(each.value for each in made.keywords))


def gives_tensors_of_a_device(module: Module, loader: ast.Call) -> bool:
    """Its dataset, which the file has, moves what it gives."""
    return any(
        called(call) in TO_DEVICE or keyword(call, "device") is not None
        for function in run_in_workers(module, loader)
        for call in module.nodes(ast.Call, function)
    )
