"""Modules in a plain list, tuple or dict of a module: it does not know that it has them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from torch.nn import Module

from tensortrail.tracer.identity.module_tensors import parts

MOST_HELD = 1000


class Hidden(NamedTuple):
    holder: str
    """The path of the list."""
    owner: Module
    """Whose attribute it is."""
    path: str
    module: Module


def hidden(root: Module, name: str) -> Iterator[Hidden]:
    """Those below the model of that name, which it neither moves nor gives as parameters."""
    known = parts(root)
    registered = {id(each) for _, each in known}
    for prefix, part in known:
        for key, value in list(vars(part).items()):
            if type(value) not in (list, tuple, dict) or key.startswith("_"):
                continue
            holder = ".".join(filter(None, (name, prefix, key)))
            for at, each in itertools.islice(_items(value), MOST_HELD):
                if issubclass(type(each), Module) and id(each) not in registered:
                    yield Hidden(holder, part, f"{holder}[{at!r}]", each)


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    return iter(list(value.items())) if type(value) is dict else enumerate(value)
