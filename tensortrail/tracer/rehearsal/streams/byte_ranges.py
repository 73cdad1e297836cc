"""A tensor covers some bytes of a storage; two tensors may meet there."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Region(NamedTuple):
    begin: int
    end: int
    dense: bool
    """Every byte between belongs to it."""
    shape: tuple[int, ...] = ()
    """Sizes and strides, where it has holes."""

    def surely_meets(self, other: Region) -> bool:
        """Some byte belongs to both; two with holes may interleave."""
        if self.begin >= other.end or other.begin >= self.end:
            return False
        if self.dense:
            return other.dense or self._has_an_end_of(other)
        return other._has_an_end_of(self) if other.dense else self == other

    def covers(self, other: Region) -> bool:
        within = self.begin <= other.begin and other.end <= self.end
        return within and (self.dense or self == other)

    def _has_an_end_of(self, other: Region) -> bool:
        return self.begin <= other.begin < self.end or self.begin < other.end <= self.end


def region(tensor: Tensor) -> Region:
    width, offset = tensor.element_size(), tensor.storage_offset()
    begin = offset * width
    if tensor.is_contiguous():
        return Region(begin, begin + tensor.numel() * width, True)
    sizes, strides = tuple(tensor.shape), tensor.stride()
    last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    end = begin + (last + 1) * width
    dense = last + 1 == tensor.numel() and _without_repeats(sizes, strides)
    return Region(begin, end, dense, () if dense else (*sizes, *strides, width))


def _without_repeats(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """A tensor with as many elements as places uses each place once."""
    expected = 1
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
