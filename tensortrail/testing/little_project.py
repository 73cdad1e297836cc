"""The files of an example on the disk, as long as it is judged."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

_ONE_AT_A_TIME = threading.Lock()


@contextmanager
def little_project(source: str, files: Mapping[str, str], path: str) -> Iterator[Path]:
    """The file of the example, with the other files beside it.

    All examples take turns in one folder: on many disks it takes longer to remove a folder than
    to judge what is in it."""
    with _ONE_AT_A_TIME:
        folder = Path(_folder().name)
        try:
            for name, text in {path: source, **files}.items():
                _write(folder / name, text)
            yield folder / path
        finally:
            _empty(folder)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="")


def _empty(folder: Path) -> None:
    for each in folder.iterdir():
        if each.is_dir():
            shutil.rmtree(each)
        else:
            each.unlink()
