"""What a look knows of an exception is told in its own words, where it is no finding of a rule."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from traceback import walk_tb
from types import FrameType
from typing import Any

from torch.nn import Module
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from tensortrail.rules.shared.lines import place_told
from tensortrail.rules.shared.told_causes import CAUSE, CHANGE, WEIGHTS
from tensortrail.tracer.identity.assignments import assignment, tree_of
from tensortrail.tracer.identity.sites import OWNERS, USER
from tensortrail.tracer.identity.variables import variables

GIVES = ("__getitem__", "__getitems__", "__iter__")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def told(cause: str, change: str, weights: Sequence[str] = ()) -> dict[str, Any]:
    return {CAUSE: cause, CHANGE: change, WEIGHTS: weights}


def frames_of(error: BaseException) -> list[FrameType]:
    """The outermost first."""
    return [frame for frame, _ in walk_tb(error.__traceback__)]


def owners(error: BaseException) -> Iterator[Any]:
    """`self` of each of the frames, the innermost first."""
    yield from (each.f_locals.get("self") for each in reversed(frames_of(error)))


def at(file: str, line: int) -> str:
    return place_told([file, line])


def made_at(error: BaseException, value: Any) -> str:
    """Where a function of the program that the exception left gave the value to a variable."""
    for frame in reversed(frames_of(error)):
        file = frame.f_code.co_filename
        if OWNERS[file] == USER:
            names = [name for name, each in variables(frame).items() if each is value]
            made = assignment(frame, names[0], frame.f_lineno) if names else None
            if made is not None:
                return f", made{at(file, made.lineno)},"
    return ""


def weight_called(error: BaseException, weight: Any) -> tuple[str, Module | None]:
    """Its name in the outermost model of the frames that has it, and that model."""
    for frame in frames_of(error):
        for variable, model in variables(frame).items():
            if isinstance(model, Module):
                shown = type(model).__name__ if variable == "self" else variable
                named = model.named_parameters(shown, remove_duplicate=False)
                called = next((key for key, each in named if each is weight), "")
                if called:
                    return called, model
    return "", None


def source_of(function: Any) -> tuple[str, Function] | None:
    """Where a function of the program stands."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    if code is None or OWNERS[code.co_filename] != USER:
        return None
    tree = tree_of(code.co_filename)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, Function) and first_line(node) == code.co_firstlineno:
            return code.co_filename, node
    return None


def first_line(function: Function) -> int:
    return min([function.lineno, *(each.lineno for each in function.decorator_list)])


def calls_above(frame: FrameType, line: int, name: str) -> Iterator[tuple[ast.Call, str]]:
    """Calls of that name in the program's function that runs, above the line, with their places."""
    file = frame.f_code.co_filename
    tree = tree_of(file) if OWNERS[file] == USER else None
    for node in inside(_running(tree, frame)) if tree else ():
        if isinstance(node, ast.Call) and node.lineno < line:
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            if name in (called, getattr(node.func, "id", "")):
                yield node, at(file, node.lineno)


def _running(tree: ast.Module, frame: FrameType) -> ast.AST:
    """The function that the frame runs, or the module."""
    first, nodes = frame.f_code.co_firstlineno, ast.walk(tree)
    functions = (each for each in nodes if isinstance(each, Function) and first_line(each) == first)
    return tree if frame.f_code.co_name == "<module>" else next(functions, tree)


def inside(function: ast.AST) -> Iterator[ast.AST]:
    """Its nodes, without those of functions in it."""
    for node in ast.iter_child_nodes(function):
        if not isinstance(node, (*Function.__args__, ast.Lambda, ast.ClassDef)):
            yield node
            yield from inside(node)


def data_set_of(error: BaseException) -> Any:
    """That of the loader which the exception came through."""
    for each in owners(error):
        for name in ("_dataset", "dataset", "train_dataset"):
            found = vars(each).get(name) if hasattr(each, "__dict__") else None
            if isinstance(found, Dataset):
                return found
    return None


def giver_of(data: Any) -> tuple[str, Function] | None:
    """The method of a data set that gives its items."""
    found = (source_of(getattr(type(data), name, None)) for name in GIVES)
    return next((each for each in found if each is not None), None)


def plain_length(loader: Any) -> tuple[int, int]:
    """How many samples a loader has and how many it puts into a batch, where counting runs nothing
    of the program's."""
    if not isinstance(loader, DataLoader):
        return 0, 0
    data = loader.dataset
    if isinstance(data, Subset):
        return len(data.indices), loader.batch_size or 0
    return (len(data), loader.batch_size or 0) if isinstance(data, TensorDataset) else (0, 0)
