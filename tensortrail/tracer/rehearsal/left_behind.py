"""What a test leaves behind in torch and on the simulated devices, named and put back."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from tensortrail.tracer.identity.unrecorded_frames import OURS
from tensortrail.tracer.rehearsal.devices.memory import Held
from tensortrail.tracer.rehearsal.operations.simulation import Simulation

OWNERS = (
    torch, torch.Tensor, torch.nn.Module, torch.nn.Parameter, torch.nn.functional, torch.cuda,
    torch.accelerator, torch.backends.cuda,
)  # fmt: skip
"""Where tests patch functions."""
COMPILER = ("torch._dynamo", "torch._inductor", "torch._functorch", "torch.fx")


class Item(NamedTuple):
    shown: str
    value: Any
    restore: Callable[[Any], Any] | None
    """None for what nobody but its owner can take away."""


State = dict[str, Item]


def state_of(simulation: Simulation) -> State:
    """What may be left behind, by name."""
    return dict(_items(simulation))


def _items(simulation: Simulation) -> Iterator[tuple[str, Item]]:
    def set_device(index: int) -> None:
        simulation.device = index

    device = simulation.device
    yield "the current device", Item(f"cuda:{device}", device, set_device)
    for index in range(simulation.spec.count):
        stream = simulation.streams.current(index)
        shown = "the default one" if stream.queue.is_default else repr(stream)
        yield f"the current stream of cuda:{index}", Item(shown, stream, _set_stream(simulation))
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    default = None if context is None else context.device
    yield "the default device", Item(str(default or "cpu"), default, torch.set_default_device)
    dtype = torch.get_default_dtype()
    yield "the default dtype", Item(str(dtype), dtype, torch.set_default_dtype)
    grad = torch.is_grad_enabled()
    yield "gradients", Item("on" if grad else "off", grad, torch.set_grad_enabled)
    strict = torch.are_deterministic_algorithms_enabled()
    name = "deterministic algorithms"
    yield name, Item("on" if strict else "off", strict, torch.use_deterministic_algorithms)
    usable = simulation.memory.usable.copy()
    yield "the usable memory", Item(str(usable), usable, _set_usable(simulation))
    for name, stack in _modes().items():
        yield name, Item(", ".join(type(each).__name__ for each in stack) or "none", stack, None)
    if torch.distributed.is_available():
        there = torch.distributed.is_initialized()
        yield "the process group", Item("there" if there else "none", there, None)


def _set_stream(simulation: Simulation) -> Callable[[Any], None]:
    return lambda stream: simulation.streams.set_current(stream, here=False)


def _set_usable(simulation: Simulation) -> Callable[[list[int | None]], None]:
    def put(usable: list[int | None]) -> None:
        simulation.memory.usable[:] = usable

    return put


def _modes() -> dict[str, tuple[Any, ...]]:
    functions = map(torch._C._get_function_stack_at, range(torch._C._len_torch_function_stack()))
    dispatchers = map(torch._C._get_dispatch_stack_at, range(torch._C._len_torch_dispatch_stack()))
    default = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return {
        "function modes": tuple(each for each in functions if each is not default),
        "dispatch modes": tuple(dispatchers),
    }


class Patched(NamedTuple):
    owner: Any
    name: str
    before: Any
    now: Any

    @property
    def is_on(self) -> bool:
        return vars(self.owner).get(self.name) is self.now


class Functions:
    """The functions of torch as they are now."""

    def __init__(self) -> None:
        self._before = [(owner, dict(vars(owner))) for owner in OWNERS]

    def patched(self) -> Iterator[Patched]:
        """Those that somebody else than us has replaced since."""
        for owner, before in self._before:
            now = vars(owner)
            for name, function in before.items():
                there = now.get(name)
                if there is not function and callable(function) and not _is_ours(function, there):
                    yield Patched(owner, name, function, there)


def _is_ours(before: Any, now: Any) -> bool:
    """A wrapper of the recording that came or went, or one of torch's compiler, which stays."""
    if str(getattr(now, "__module__", "")).startswith(COMPILER):
        return True
    code = getattr(now, "__code__", None)
    came = code is not None and code.co_filename.startswith(OURS)
    return came or getattr(before, "__wrapped__", before) is now


class Watch:
    """Of one test: made before its body runs, asked after the body and after all is torn down."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._before = state_of(simulation)
        self._functions = Functions()
        self._charged = simulation.memory.standing()
        self._changed: State = {}
        self._patched: list[Patched] = []

    def body_ended(self) -> None:
        after = state_of(self._simulation)
        self._changed = {
            name: item for name, item in after.items() if item.value != self._before[name].value
        }
        self._patched = list(self._functions.patched())

    def left(self) -> list[str]:
        """What the body changed and nobody put back. It is put back here."""
        now = state_of(self._simulation) if self._changed else {}
        found = []
        for name, item in self._changed.items():
            if now[name].value == item.value:
                found.append(f"{name}: {item.shown}, before it {self._before[name].shown}")
                if item.restore is not None:
                    item.restore(self._before[name].value)
        for patch in self._patched:
            if patch.is_on:
                found.append(f"{patch.owner.__name__}.{patch.name}: another function")
                setattr(patch.owner, patch.name, patch.before)
        self._forgive()
        return found

    def _forgive(self) -> None:
        """What the body made and somebody still holds is not charged to the tests after it."""
        memory = self._simulation.memory
        kept = set(map(id, self._charged))
        if any(id(held) not in kept for held in memory.standing()):
            gc.collect()
        left: list[Held] = [held for held in memory.standing() if id(held) not in kept]
        memory.forgive(left)
        for index in range(self._simulation.spec.count):
            memory.reset_peak(index)
            memory.reset_totals(index)
