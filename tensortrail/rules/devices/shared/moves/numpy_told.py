"""What says that a tensor which NumPy reads may be on a GPU, in the words of a finding."""

from __future__ import annotations

import ast

from tensortrail.findings import Confidence, Severity
from tensortrail.rules.devices.shared.moves.brought_beside import brought_beside
from tensortrail.rules.devices.shared.moves.numpy_elsewhere import lies_elsewhere
from tensortrail.rules.devices.shared.moves.numpy_given import given_on_a_device
from tensortrail.rules.devices.shared.moves.numpy_reads import (
    inferred_place,
    is_moved_here,
    is_surely_a_tensor,
)
from tensortrail.rules.devices.shared.written_for.told import names_a_gpu, told_device
from tensortrail.rules.shared.given_values import Given
from tensortrail.rules.shared.sentences import one_line
from tensortrail.rules.unchanging import unchanging
from tensortrail.rules.view import Module

_FEWEST = 2
"""Members of an object that are brought to the CPU, where another one is not."""
_READS = "and numpy reads the CPU only"


@unchanging(frozen=True, slots=True)
class Told:
    message: str
    severity: Severity = Severity.NOTE
    given: Given | None = None
    """What a call passes."""
    is_told: bool = True
    """The code gives a good reason for it."""

    @property
    def confidence(self) -> Confidence:
        return Confidence.HIGH if self.severity is Severity.ERROR else Confidence.MEDIUM


def by_a_caller(module: Module, tensor: ast.expr, far: bool = True) -> Told | None:
    """`scores.numpy()` of an argument, where a call passes `model(x.to(device))`."""
    given = given_on_a_device(module, tensor, far)
    if given is None:
        return None
    message = f"`{one_line(module, tensor)}` may be on a GPU, as it is called, {_READS}"
    return Told(message, given=given)


def by_its_place(module: Module, tensor: ast.expr) -> Told | None:
    """Of what `.numpy()` is asked of, which is a tensor."""
    found = _by_a_device(module, tensor) or _by_inference(module, tensor)
    return found or _by_its_owner(module, tensor) or _by_its_neighbours(module, tensor)


def found_by_numpy(module: Module, read: ast.expr) -> Told | None:
    """Of what a function of NumPy is given, which may be anything."""
    found = by_a_caller(module, read, far=False)
    if found is None and is_surely_a_tensor(module, read):
        found = _by_a_device(module, read) or _by_inference(module, read)
    return found


def _by_a_device(module: Module, tensor: ast.expr) -> Told | None:
    """`pred = model(x.to(device))`, and then `pred.numpy()`, `np.array(pred)`."""
    device = told_device(module, tensor)
    if device is None:
        return None
    where = f"on `{module.text(device)}`, which may be a GPU"
    if names_a_gpu(module, device):
        where = "on a GPU"
    severity = Severity.NOTE if is_moved_here(tensor) else Severity.WARNING
    return Told(f"`{one_line(module, tensor)}` is {where}, {_READS}", severity)


def _by_inference(module: Module, tensor: ast.expr) -> Told | None:
    """`torch.cat(rows).numpy()`, where each row came from a model on a device."""
    place = inferred_place(module, tensor)
    if place is None:
        return None
    return Told(f"`{one_line(module, tensor)}` is on `{place.subject}`, {_READS}")


def _by_its_owner(module: Module, tensor: ast.expr) -> Told | None:
    """`weight.detach().numpy()`, `self.edges.numpy()`."""
    where = lies_elsewhere(module, tensor)
    return Told(f"`{one_line(module, tensor)}` is {where}, {_READS}") if where is not None else None


def _by_its_neighbours(module: Module, tensor: ast.expr) -> Told | None:
    """`state.numbers.numpy()` beside `state.cell.cpu().numpy()` and another one like that."""
    others = brought_beside(module, tensor)
    if len(others) < _FEWEST:
        return None
    shown = " and ".join(f"`{each}`" for each in others[:_FEWEST])
    return Told(
        f"{shown} are brought to the CPU before numpy reads them, and "
        f"`{one_line(module, tensor)}` is not"
    )
