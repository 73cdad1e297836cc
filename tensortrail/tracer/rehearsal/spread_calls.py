"""A module that a test calls is also spread over two devices at its blocks, and offloaded.

It is done to a copy in evaluation mode, by accelerate, as `device_map` and `cpu_offload` do it for
a user. What it gives is compared with what it gives on one device."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor
from torch.nn import Module, ModuleList, Sequential
from torch.utils._pytree import tree_leaves

CLOSE = {"rtol": 1e-3, "atol": 1e-4}
"""Two orders of adding differ by less."""
PLAIN = (Tensor, bool, int, float, str, torch.dtype, torch.device, type(None))
"""Arguments that a call leaves as they are."""
Run = Callable[[Module], Any]
Place = Callable[[Module], str]


class SpreadCalls:
    def __init__(self, blame: Callable[[BaseException], str]) -> None:
        self._blame = blame
        self._known: WeakSet[Module] = WeakSet()
        self.tried = 0
        """Modules, since the test began."""
        self.found: list[str] = []
        self.left_out: list[str] = []

    def begin(self) -> None:
        self.tried, self.found, self.left_out = 0, [], []

    def called(self, module: Module, given: Any, run: Run) -> None:
        """`run` calls the module, which lies on one device, with what the test has `given`."""
        if module in self._known:
            return
        self._known.add(module)
        reason = _why_not(module, given)
        if reason:
            self.left_out.append(reason)
            return
        with torch.no_grad(), torch.random.fork_rng(range(torch.cuda.device_count())):
            try:
                expected = run(copy.deepcopy(module).eval())
            except Exception as error:
                self.left_out.append(f"a copy of it cannot be called ({type(error).__name__})")
                return
            self.tried += 1
            for place in (_spread, _offloaded):
                self.found += self._differs(module, place, expected, run)

    def _differs(self, module: Module, place: Place, expected: Any, run: Run) -> Iterator[str]:
        other = copy.deepcopy(module).eval()
        name = f"{type(module).__module__}.{type(module).__qualname__}"
        how = place.__name__.strip("_")
        try:
            how = place(other)
            given = run(other)
        except Exception as error:
            said = str(error).partition("\n")[0]
            yield f"{name} {how}  {self._blame(error)}{type(error).__name__}: {said}"
            return
        if not _alike(expected, given):
            yield f"{name} {how}  returns other values than on one device"


def _why_not(module: Module, given: Any) -> str:
    if not all(isinstance(each, PLAIN) for each in tree_leaves(given)):
        return "it is given objects that a call may change"
    if not _blocks(module):
        return "it has no blocks"
    if torch.cuda.device_count() < 2:
        return "there is one device"
    if importlib.util.find_spec("accelerate") is None:
        return "accelerate is not installed"
    return ""


def _blocks(module: Module) -> Sequence[Module]:
    """The children of its largest list of modules with parameters."""
    lists = [
        [child for child in each if next(child.parameters(), None) is not None]
        for each in module.modules()
        if isinstance(each, (ModuleList, Sequential))
    ]
    found = max(lists, key=lambda each: sum(map(_size, each)), default=[])
    return found if len(found) > 1 else []


def _size(module: Module) -> int:
    return sum(each.numel() * each.element_size() for each in module.parameters())


def _spread(module: Module) -> str:
    """As `device_map="auto"` does it, where half of the module fits on the first device."""
    from accelerate import dispatch_model, infer_auto_device_map

    whole = getattr(module, "_no_split_modules", None)
    whole = list(whole or {type(each).__name__ for each in _blocks(module)})
    block = max(map(_size, _blocks(module)))  # accelerate leaves room for one
    half = {0: _size(module) // 2 + block, 1: 2 * _size(module) + block}
    placed = infer_auto_device_map(module, max_memory=half, no_split_module_classes=whole)
    moved = [name for name, device in placed.items() if device == 1]
    dispatch_model(module, placed)
    return f"spread, with {', '.join(moved) or 'nothing'} on cuda:1"


def _offloaded(module: Module) -> str:
    from accelerate import cpu_offload

    cpu_offload(module.to("cpu"), execution_device=torch.device("cuda:0"))
    return "offloaded to the CPU"


def _alike(expected: Any, given: Any) -> bool:
    pairs = zip(_tensors(expected), _tensors(given), strict=False)
    same = len(_tensors(expected)) == len(_tensors(given))
    return same and all(_close(one.cpu(), other.cpu()) for one, other in pairs)


def _close(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not one.is_floating_point():
        return bool(torch.equal(one, other))
    return bool(torch.allclose(one.float(), other.float(), equal_nan=True, **CLOSE))


def _tensors(tree: Any) -> list[Tensor]:
    return [each for each in tree_leaves(tree) if isinstance(each, Tensor)]
