"""The form of a probe: one operation of one use, tried on an instance of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from tensortrail.doctor.subclass import looks
from tensortrail.doctor.subclass.words import CannotMake, Verdict

Make = Callable[[], torch.Tensor]


class Wrong(Exception):
    """An answer that is not what the use needs."""

    def __init__(self, verdict: Verdict, told: str, code: str = "") -> None:
        super().__init__(told)
        self.verdict, self.told, self.code = verdict, told, code


class DoesNotApply(Exception):
    """The message says why this cannot be tried here or does not concern the class."""


@dataclass(frozen=True)
class Probe:
    op: str
    run: Callable[[Subject], None]
    breaks: str
    codes: tuple[str, ...] = ("NEW304",)
    whole: bool = False
    """It runs the real library code of the use, not one operation of it."""
    deadly: bool = False
    """Torch kills the process where a wrapper has no storage of its own."""


@dataclass(frozen=True)
class Subject:
    """Gives instances to try; each probe may spoil what it gets."""

    make: Make
    kind: type
    home: str = "cpu"
    """The device its instances are made on."""

    def tensor(self) -> torch.Tensor:
        made = self.make()
        if not isinstance(made, torch.Tensor):
            raise CannotMake(f"it gave a {type(made).__name__}, which is not a tensor")
        return made.detach() if made.requires_grad else made

    def other(self) -> torch.Tensor:
        """An instance with other values, to be written into."""
        one, other = self.tensor(), self.tensor()
        if looks.difference(looks.look(other), looks.look(one)):
            return other
        with torch.no_grad():
            for inner in looks.inner_tensors(other).values():
                inner.zero_()
        return other

    # --- judging answers -----------------------------------------------------------------

    def same(self, got: object, wanted: looks.Look, device: str = "") -> torch.Tensor:
        """The answer is of the class, on that device, and holds what `wanted` held."""
        tensor = self.of_the_class(got, device)
        told = looks.difference(looks.look(tensor), wanted)
        if told:
            raise Wrong(Verdict.WRONG_VALUES, told)
        return tensor

    def of_the_class(self, got: object, device: str = "") -> torch.Tensor:
        if not isinstance(got, torch.Tensor) or type(got) is not self.kind:
            raise Wrong(Verdict.WRONG_TYPE, f"gives a {_named(got)}")
        told = looks.other_device(got, device or self.home)
        if told:
            raise Wrong(Verdict.WRONG_DEVICE, told, "NEW303" if "says" in told else "NEW301")
        return got

    def of_shape(self, got: object, shape: tuple[int, ...], device: str = "") -> torch.Tensor:
        tensor = self.of_the_class(got, device)
        if tuple(tensor.shape) != shape:
            told = f"gives the size {tuple(tensor.shape)} where {shape} was asked for"
            raise Wrong(Verdict.WRONG_VALUES, told, "NEW302" if shape == () else "")
        return tensor

    def part(self, got: object, whole: looks.Look, index: slice) -> torch.Tensor:
        """The answer is of the class and has these rows of the whole."""
        tensor = self.of_the_class(got)
        if whole.plain is None:
            rows = len(range(*index.indices(whole.shape[0])))
            return self.of_shape(tensor, (rows, *whole.shape[1:]))
        wanted = whole.plain[index]
        if tuple(tensor.shape) != tuple(wanted.shape):
            raise Wrong(
                Verdict.WRONG_VALUES,
                f"gives the size {tuple(tensor.shape)}, not {tuple(wanted.shape)}",
            )
        seen = looks.plain(tensor)
        if seen is not None and not looks.equal(seen, wanted):
            raise Wrong(Verdict.WRONG_VALUES, "has other rows than the whole has there")
        return tensor

    def untouched(self, tensor: torch.Tensor, before: looks.Look) -> None:
        told = looks.difference(looks.look(tensor), before)
        if told:
            raise Wrong(Verdict.WRONG_VALUES, f"the original changed: {told}")

    def own_memory(self, got: torch.Tensor, source: torch.Tensor) -> None:
        shared = looks.shared(got, source)
        if shared:
            raise Wrong(Verdict.WRONG_STORAGE, f"shares the memory of {shared} with the original")

    def same_memory(self, got: torch.Tensor, source: torch.Tensor) -> None:
        if looks.inner_tensors(source) and not looks.shared(got, source):
            raise Wrong(Verdict.WRONG_STORAGE, "is a copy where the same memory is expected")


def _named(got: object) -> str:
    if isinstance(got, torch.Tensor) and type(got) in looks.PLAIN:
        return "plain torch.Tensor"
    return type(got).__qualname__ if got is not None else "None"
