"""Whether a mistake changes anything in a run: the right code and the changed one, rehearsed.

The function or class around the mistake is imported from its project and called with guessed
arguments (`guesses.py`), until a call on the CPU ends well and has run the changed line; models
of `tiny_models.py` are called as they are. The calls that end well on a simulated GPU too are made
again with the changed function. What comes of it, the worst of three calls:

- *fails*: it stops for the sake of a device;
- *fails otherwise*: it stops for another reason;
- *elsewhere*: it ends well, but a tensor that it gives or keeps is on another device or of another
  type: whether that matters, only a caller could tell;
- *equivalent*: it ends well, and everything is where it was. Other arguments may tell otherwise.
"""

from __future__ import annotations

import ast
import gc
import importlib
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

import torch
from guesses import Guess
from in_child import in_child
from stand_ins import import_with_stand_ins
from tiny_models import Subject, lines_run, on_a_simulated_gpu, subjects

FAILS, OTHERWISE, ELSEWHERE = "fails", "fails otherwise", "elsewhere"
EQUIVALENT, NOT_RUN = "equivalent", "not run"
WORST_FIRST = (FAILS, OTHERWISE, ELSEWHERE, EQUIVALENT)
SECONDS = 30
"""For one mistake."""
_SEARCH = 4.0
_TRIES = 150
_CALLS = 3
_MOST = 2000
_LOADS = {
    "transformers": "transformers.modeling_utils",
    "diffusers": "diffusers.models.modeling_utils",
    "torch": "torch",
}
"""What every model of a package needs."""
Call = Callable[[str], Any]
"""Given a device, it makes its arguments there, calls, and gives all that is to be looked at."""


@dataclass(frozen=True)
class Verdict:
    word: str
    said: str = ""


def verdict(tree: Path, path: Path, line: int, data: bytes) -> Verdict:
    """Of a mistake in a file of a tree: its data with the mistake, and its line without."""
    warm()
    models = _models_that_run(path, line)
    work = partial(_verdict, tree.resolve(), path.resolve(), line, data, models)
    found = in_child(work, SECONDS, quiet=True)
    return found if isinstance(found, Verdict) else Verdict(NOT_RUN, "takes too long, or ends")


@cache
def warm() -> None:
    """What each process would have to begin with otherwise."""
    torch.set_num_threads(1)
    _models()
    with on_a_simulated_gpu():
        torch.nn.Linear(2, 2).to("cuda")(torch.ones(1, 2, device="cuda"))


def _verdict(tree: Path, path: Path, line: int, data: bytes, models: list[str]) -> Verdict:
    try:
        module = imported(tree, path)
    except BaseException as error:  # what stands there is somebody else's
        return Verdict(NOT_RUN, f"cannot be imported: {type(error).__name__}: {error}"[:120])
    around = names_around(ast.parse(path.read_bytes()), line)
    if not around:
        return Verdict(NOT_RUN, "at the top of its file")
    tracer = Tracer(str(path), line)
    right = list(_right_calls(module, around, models, tracer))
    if not right:
        return Verdict(NOT_RUN, "no call that ends well runs the line")
    if not _changed(tracer, data, str(path)):
        return Verdict(NOT_RUN, "its function cannot be changed")
    found = [_compared(call, before) for call, before in right]
    return min(found, key=lambda each: WORST_FIRST.index(each.word))


def _right_calls(
    module: ModuleType, around: list[str], models: list[str], tracer: Tracer
) -> Iterator[tuple[Call, list[str]]]:
    """Calls of the right code that run the line and end well, and where everything lies then."""
    calls = [partial(_of_model, name) for name in models]
    found = 0
    for call in calls or _searched(module, around, tracer):
        tracer.reached = False
        try:
            with on_a_simulated_gpu(), tracer:
                before = places(call("cuda"))
        except Exception:
            continue
        if tracer.reached:
            found += 1
            yield call, before
        if found == _CALLS:
            return


def _searched(module: ModuleType, around: list[str], tracer: Tracer) -> Iterator[Call]:
    """Calls with guessed arguments that end well on the CPU and run the line."""
    end = time.process_time() + _SEARCH
    for seed in range(_TRIES):
        if time.process_time() > end:
            return
        call = partial(_guessed, module, around, seed)
        tracer.reached = False
        try:
            with torch.no_grad(), tracer:
                call("cpu")
        except Exception:
            continue
        if tracer.reached:
            yield call


def _guessed(module: ModuleType, around: list[str], seed: int, device: str) -> Any:
    torch.manual_seed(0)
    guess = Guess(random.Random(seed), device)
    outer = getattr(module, around[0])
    if not isinstance(outer, type) or len(around) == 1:
        return guess.call(outer)
    name = around[1]
    if isinstance(vars(outer).get(name), (staticmethod, classmethod)):
        return guess.call(getattr(outer, name))
    made = guess.call(outer)
    is_module = isinstance(made, torch.nn.Module)
    if is_module:
        made = made.train(seed % 4 == 3).to(device)
    if name == "forward" or (is_module and (seed % 2 or name == "__init__")):
        positional, keywords = guess.arguments(made.forward)
        return made, made(*positional, **keywords)
    if name == "__init__":
        return made, guess.call(made) if callable(made) else None
    called = getattr(made, name)
    return made, guess.call(called) if callable(called) else called


def _of_model(name: str, device: str) -> Any:
    model, inputs = _models()[name].on_gpu()
    return model, model(**inputs)


def _compared(call: Call, before: list[str]) -> Verdict:
    try:
        with on_a_simulated_gpu():
            after = places(call("cuda"))
    except Exception as error:
        said = f"{type(error).__name__}: {error}".replace("\n", " ")[:120]
        return Verdict(FAILS if "device" in said else OTHERWISE, said)
    if after == before:
        return Verdict(EQUIVALENT)
    differ = [f"{new}, was {old}" for old, new in zip(before, after, strict=False) if old != new]
    return Verdict(ELSEWHERE, (differ or ["more, or less, is there"])[0][:120])


class Tracer:
    """Whether a line has run, and the code of the outermost function around it."""

    def __init__(self, path: str, line: int) -> None:
        self._path, self._line = path, line
        self.reached = False
        self.codes: set[CodeType] = set()

    def __enter__(self) -> None:
        sys.settrace(self._traced)

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)

    def _traced(self, frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        if code.co_filename != self._path:
            return None
        self.codes.add(code)
        self.reached |= frame.f_lineno == self._line
        return self._traced


def _changed(tracer: Tracer, data: bytes, path: str) -> bool:
    """Functions that have run are given the code that they have in the changed file."""
    new = dict(_codes(compile(data, path, "exec")))
    old = {(each.co_name, each.co_firstlineno): each for each in tracer.codes}
    changed = False
    for name, code in old.items():
        other = new.get(name)
        if other is None or other == code or other.co_freevars != code.co_freevars:
            continue
        for function in gc.get_referrers(code):
            if isinstance(function, FunctionType) and function.__code__ is code:
                function.__code__ = other
                changed = True
    return changed


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    yield (code.co_name, code.co_firstlineno), code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def places(value: object) -> list[str]:
    """Where every tensor below a value lies, by the way that leads there."""
    found: list[str] = []
    seen: set[int] = set()
    waiting: list[tuple[str, object]] = [("", value)]
    while waiting and len(found) < _MOST:
        way, each = waiting.pop()
        if isinstance(each, torch.Tensor):
            found.append(f"{way} {each.device} {each.dtype}")
        elif id(each) not in seen:
            seen.add(id(each))
            waiting += [(f"{way}.{name}", inner) for name, inner in _inside(each)]
    return found


def _inside(value: object) -> list[tuple[str, object]]:
    if isinstance(value, torch.nn.Module):
        # a buffer and a plain attribute of one name are the same place
        own = {**vars(value), **value._parameters, **value._buffers, **value._modules}
        hidden = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")
        return sorted((name, each) for name, each in own.items() if name not in hidden)
    if isinstance(value, dict):
        return [(str(name), each) for name, each in value.items()]
    if isinstance(value, (list, tuple)):
        return [(str(at), each) for at, each in enumerate(value)]
    if isinstance(value, (type, ModuleType, FunctionType)) or not hasattr(value, "__dict__"):
        return []
    return sorted(vars(value).items(), key=lambda each: str(each[0]))


def imported(tree: Path, path: Path) -> ModuleType:
    root, name = name_of_module(tree, path)
    for folder in (tree, tree / "src", root):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    return import_with_stand_ins(name)


def name_of_module(tree: Path, path: Path) -> tuple[Path, str]:
    """Where its import begins, and its dotted name: without any package, from the tree."""
    root = path.parent
    while (root / "__init__.py").exists():
        root = root.parent
    if root == path.parent and path.is_relative_to(tree):
        root = tree / "src" if path.is_relative_to(tree / "src") else tree
    parts = path.relative_to(root).with_suffix("").parts
    return root, ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def names_around(tree: ast.AST, line: int) -> list[str]:
    """`["Net", "forward"]` of a line: the class or function around it, and its method."""
    found: list[str] = []
    inside: list[ast.AST] = list(ast.iter_child_nodes(tree))
    while inside:
        each = inside.pop()
        last = getattr(each, "end_lineno", 0) or 0
        if not getattr(each, "lineno", 0) <= line <= last:
            continue
        named = isinstance(each, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        if named:
            found.append(each.name)
        inside = list(ast.iter_child_nodes(each)) if not named or len(found) < 2 else []
    return found


def _models_that_run(path: Path, line: int) -> list[str]:
    """Names of small models that run the line."""
    parts = path.resolve().parts
    package = next((each for each in _LOADS if each in parts), "")
    if "site-packages" not in parts or not package:
        return []
    importlib.import_module(_LOADS[package])
    names = _named(package, path.parent.name)
    return [name for name in names if (str(path.resolve()), line) in _lines(name)][:_CALLS]


@cache
def _named(package: str, folder: str) -> list[str]:
    """Of transformers those of the folder, or a few for what all of them share."""
    names = [name for name in _models() if name.startswith(f"{package} ")]
    if package != "transformers":
        return names
    own = [name for name in names if name.split()[1].replace("-", "_") == folder]
    return own or [f"transformers {name}" for name in ("llama", "bert", "t5", "mixtral", "vit")]


@cache
def _lines(name: str) -> set[tuple[str, int]]:
    return in_child(partial(lines_run, _models()[name]), SECONDS, quiet=True) or set()


@cache
def _models() -> dict[str, Subject]:
    return {each.name: each for each in subjects()}
