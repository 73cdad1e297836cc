"""The values of constants and of names of which nothing is known, each made once for all places."""

from __future__ import annotations

from functools import lru_cache

from tensortrail.analyzer.facts import known
from tensortrail.analyzer.values.containers import OTHER
from tensortrail.rules.words import UNKNOWN_VALUE, Kind, Owner, Value

_DEVICE_STRING = frozenset({Kind.DEVICE_STRING})


@lru_cache(maxsize=2_000, typed=True)  # 1 and True are equal
def of_constant(constant: object) -> Value:
    is_device = isinstance(constant, str) and known.DEVICE_NAME.fullmatch(constant)
    kinds = _DEVICE_STRING if is_device else OTHER.kinds
    return Value(kinds, constant=constant, owner=Owner.HERE)


@lru_cache(maxsize=5_000)
def unknown_named(name: str) -> Value:
    return UNKNOWN_VALUE.called(name)
