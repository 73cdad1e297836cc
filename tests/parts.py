"""Tests in many parts, of which one is run by default and the others with `--complete`."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def first_only(count: int) -> list[object]:
    return first_of(range(count))


def first_of(values: Iterable[object]) -> list[object]:
    first, *others = values
    return [first, *(pytest.param(each, marks=pytest.mark.complete) for each in others)]
