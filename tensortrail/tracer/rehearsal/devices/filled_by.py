"""What fills a simulated GPU when memory is refused: by kind, by the line that made it, and how
much of it is more with each step. Every byte that the device counts is in one row."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, TypedDict

import torch

from tensortrail.collector import without_collector
from tensortrail.tracer.identity.inner_tensors import PLAIN, key_of
from tensortrail.tracer.identity.sites import OWNERS, USER, function_name
from tensortrail.tracer.identity.variables import variables
from tensortrail.tracer.identity.who_keeps import keeper

Made = tuple[CodeType | None, int]
"""The user's code and line that memory was asked for in."""
Key = tuple[str, CodeType | None, int]
Alike = tuple[Made, str]
"""Memory of one line, of one dtype and shape."""
WEIGHTS, BUFFERS, GRADIENTS, OPTIMIZER = "weights", "buffers", "gradients", "optimizer state"
KEPT = "in containers and attributes"
GRAPH = "kept for backward"
"""By nothing that Python code refers to: autograd's graph has saved it."""
VARIABLES = "in variables"
MOST_LOOKS = 32
"""Storages whose keeper is looked for, each by all objects there are. Others follow those alike."""


class Piece(TypedDict):
    """Memory that was given and did not come back."""

    key: int
    nbytes: int
    step: int
    made: Made
    what: str


class Filled(TypedDict):
    """One row: memory of one kind that one line asked for."""

    bytes: int
    count: int
    kind: str
    keeper: str
    """What keeps it, of the kind `KEPT`."""
    what: str
    """The dtype and shape, if all are alike."""
    file: str
    line: int
    function: str
    each_step: int
    """The bytes that every step adds; 0 if it does not grow so."""


def filled(pieces: Iterable[Piece], step: int) -> list[Filled]:
    """The rows, most bytes first. Costly: it looks at every object there is."""
    pieces = sorted(pieces, key=lambda each: -each["nbytes"])
    kinds = _Kinds(pieces)
    groups: dict[Key, list[Piece]] = defaultdict(list)
    for each in pieces:
        code, line = each["made"]
        groups[kinds.of(each["key"]), code, line].append(each)
    rows = [_row(kind, code, line, group, kinds, step) for (kind, code, line), group in
            groups.items()]  # fmt: skip
    return sorted(rows, key=lambda each: -each["bytes"])


def _row(
    kind: str, code: CodeType | None, line: int, group: list[Piece], kinds: _Kinds, step: int
) -> Filled:
    whats = {each["what"] for each in group}
    return Filled(
        bytes=sum(each["nbytes"] for each in group),
        count=len(group),
        kind=kind,
        keeper=kinds.keeper(each["key"] for each in group) if kind == KEPT else "",
        what=whats.pop() if len(whats) == 1 else "",
        file=os.path.abspath(code.co_filename) if code else "",
        line=line,
        function=function_name(code) if code else "",
        each_step=0 if kind == WEIGHTS else _each_step(group, step),
    )


def _each_step(group: list[Piece], step: int) -> int:
    """The bytes that each of the last steps left behind; 0 if they differ or there is but one."""
    left: Counter[int] = Counter()
    for each in group:
        left[each["step"]] += each["nbytes"]
    left.pop(step, 0)  # it is not over yet
    last = [left[n] for n in range(max(0, step - 3), step)]
    return last[-1] if len(last) > 1 and len(set(last)) == 1 else 0


class _Kinds:
    """Which storage is what, by all objects there are."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._kind: dict[int, str] = {}
        self._tensors: dict[int, list[Any]] = {each["key"]: [] for each in pieces}
        self._keeper: dict[int, str] = {}
        with torch._C.DisableTorchFunction():
            for thing in gc.get_objects():
                self._look(thing)
        unknown = [each for each in pieces if each["key"] not in self._kind]
        ours = {id(each) for each in self._tensors.values()} | {id(self._tensors)}
        in_variables = _in_variables()
        of_alike: dict[Alike, str] = {}
        in_turn = _in_turn(unknown)
        for each in in_turn[:MOST_LOOKS]:
            found = self._kept_by(each, ours)
            self._note(each["key"], found, in_variables)
            of_alike[_alike(each)] = of_alike.get(_alike(each)) or found
        for each in in_turn[MOST_LOOKS:]:
            self._note(each["key"], of_alike.get(_alike(each), ""), in_variables)

    def _kept_by(self, piece: Piece, ours: set[int]) -> str:
        tensors = self._tensors[piece["key"]]
        return next(filter(None, (keeper(tensor, ours) for tensor in tensors)), "")

    def _note(self, key: int, found: str, in_variables: set[int]) -> None:
        if found and self._tensors[key]:
            self._keeper[key] = found
            self._kind[key] = KEPT
        elif any(id(each) in in_variables for each in self._tensors[key]):
            self._kind[key] = VARIABLES

    def of(self, key: int) -> str:
        return self._kind.get(key, GRAPH)

    def keeper(self, keys: Iterable[int]) -> str:
        named = Counter(self._keeper.get(key, "") for key in keys)
        return named.most_common(1)[0][0]

    def _look(self, thing: Any) -> None:
        kind = type(thing)
        if kind in PLAIN:
            if (of_key := self._tensors.get(key_of(thing))) is not None:
                of_key.append(thing)
        elif issubclass(kind, torch.nn.Module):
            self._owned(thing)
        elif issubclass(kind, torch.optim.Optimizer):
            for tensor in _tensors_of(getattr(thing, "state", {}).values()):
                self._kind.setdefault(key_of(tensor), OPTIMIZER)

    def _owned(self, module: torch.nn.Module) -> None:
        """By its own dicts: `parameters()` would call code of the user's."""
        own = module.__dict__
        for weight in (own.get("_parameters") or {}).values():
            if weight is not None:
                self._kind[key_of(weight)] = WEIGHTS
                if (gradient := weight.grad) is not None:
                    self._kind[key_of(gradient)] = GRADIENTS
        for buffer in (own.get("_buffers") or {}).values():
            if buffer is not None:
                self._kind.setdefault(key_of(buffer), BUFFERS)


def _alike(piece: Piece) -> Alike:
    return piece["made"], piece["what"]


def _in_turn(pieces: Sequence[Piece]) -> list[Piece]:
    """One of each line and shape, then a second one of each: few bytes may keep very many."""
    seen: Counter[Alike] = Counter()
    turns: list[tuple[int, Piece]] = []
    for each in pieces:
        turns.append((seen[_alike(each)], each))
        seen[_alike(each)] += 1
    return [each for _, each in sorted(turns, key=lambda turn: turn[0])]


def _in_variables() -> set[int]:
    """What the functions that run, in every thread, have in variables."""
    found: set[int] = set()
    with without_collector():  # a collection that ends a threading.local meanwhile never ends
        frames: list[FrameType | None] = [*sys._current_frames().values()]
    while frames:
        frame = frames.pop()
        if frame is None:
            continue
        found.update(map(id, variables(frame).values()))
        if OWNERS[frame.f_code.co_filename] == USER:
            found.update(map(id, frame.f_globals.values()))
        frames.append(frame.f_back)
        del frame  # one that holds itself would keep all that run, and their variables
    return found


def _tensors_of(states: Iterable[Any]) -> Iterator[torch.Tensor]:
    for state in states:
        for value in state.values() if isinstance(state, dict) else ():
            if type(value) in PLAIN:
                yield value
