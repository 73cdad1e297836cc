"""What the library's own conversion makes of weights, tried on meta: names, shapes, new memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensortrail.doctor.library_models import first_line
from tensortrail.rules.shared.conversion_groups import nbytes

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Converted:
    weights: Mapping[str, Any]
    given: int
    """Bytes of the weights that were converted."""
    made: int
    """Bytes of the tensors that are not a part of those."""
    consumed: int = 0
    """Bytes of the weights given that are not a part of what comes of them."""
    error: str = ""

    @property
    def memory(self) -> int:
        """Bytes at the peak of a save. Weights on the disk are mapped and take memory when they are
        read: those that are joined for the conversion, and go; the others as they are written."""
        return self.made + max(self.consumed, self.given - self.consumed)

    @property
    def shapes(self) -> Shapes:
        return {name: tuple(tensor.shape) for name, tensor in self.weights.items()}

    @property
    def nbytes(self) -> int:
        return sum(nbytes(tensor) for tensor in self.weights.values())


def converted(model: Any, weights: Mapping[str, Any]) -> Converted:
    from transformers.core_model_loading import revert_weight_conversion

    given = sum(nbytes(tensor) for tensor in weights.values())
    try:
        found = revert_weight_conversion(model, dict(weights))
    except Exception as error:  # the save would raise it
        return Converted({}, given, 0, error=f"{type(error).__name__}: {first_line(error)}")
    before, after = _memories(weights), _memories(found)
    made = sum(size for place, size in after.items() if place not in before)
    consumed = sum(size for place, size in before.items() if place not in after)
    return Converted(found, given, made, consumed)


def _memories(weights: Mapping[str, Any]) -> dict[int, int]:
    """The bytes of each piece of memory; a tensor may be a part of one."""
    found: dict[int, int] = {}
    for tensor in weights.values():
        place = _memory(tensor)
        found[place] = found.get(place, 0) + nbytes(tensor)
    return found


def _memory(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


def as_it_is(weights: Mapping[str, Any]) -> Converted:
    return Converted(weights, sum(nbytes(tensor) for tensor in weights.values()), 0)


def differences(whole: Converted, files: Mapping[str, Converted]) -> Iterator[str]:
    """Where files that are converted one by one are not what all the weights together give."""
    if whole.error:
        yield f"the conversion raises {whole.error}"
        return
    expected, written = whole.shapes, _written(files)
    for file, part in files.items():
        if part.error:
            yield f"{file}: the save raises {part.error}"
    for name, shapes in written.items():
        if name not in expected:
            yield f"`{name}` is saved, which the model does not have in its original format"
        elif len(shapes) > 1:
            yield f"`{name}` is saved in {len(shapes)} parts, of shapes {_listed(shapes)}"
        elif shapes[0] != expected[name]:
            yield f"`{name}` is saved with shape {list(shapes[0])}, not {list(expected[name])}"
    if not any(part.error for part in files.values()):
        yield from (f"`{name}` is not saved" for name in expected if name not in written)


def _written(files: Mapping[str, Converted]) -> dict[str, list[tuple[int, ...]]]:
    found: dict[str, list[tuple[int, ...]]] = {}
    for part in files.values():
        for name, shape in part.shapes.items():
            found.setdefault(name, []).append(shape)
    return found


def _listed(shapes: Sequence[tuple[int, ...]]) -> str:
    return ", ".join(str(list(shape)) for shape in shapes)
