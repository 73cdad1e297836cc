"""How to make a small instance of the wrapper classes of known libraries, one file a library.

A file has `LIBRARY` and `MAKERS`: the name of a class below the library -> a maker."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

Makers = Mapping[str, Callable[[], Any]]


def known(kind: type) -> Callable[[], Any] | None:
    """The maker for this class, if its library is known here."""
    library = kind.__module__.partition(".")[0]
    return makers_of(library).get(kind.__qualname__) or makers_of(library).get(
        f"{kind.__module__}.{kind.__qualname__}"
    )


def home() -> str:
    """Where instances are made: on a GPU if there is one, real or rehearsed."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def makers_of(library: str) -> Makers:
    for file in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{file.name}")
        if library == module.LIBRARY:
            return dict(module.MAKERS)
    return {}
