"""An export goes to a path, or to something that is open already."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

Text = str | os.PathLike[str] | TextIO


@contextmanager
def opened(out: Text) -> Iterator[TextIO]:
    if isinstance(out, (str, os.PathLike)):
        with open(out, "w", encoding="utf-8", newline="\n") as file:
            yield file
    else:
        yield out
