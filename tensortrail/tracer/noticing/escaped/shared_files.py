"""A file that was opened before workers were forked: all of them move one position in it."""

from __future__ import annotations

import io
from tarfile import TarFile
from typing import Any
from zipfile import ZipFile

from tensortrail.tracer.identity.object_attributes import attributes_of
from tensortrail.tracer.identity.storages import Storages
from tensortrail.tracer.noticing.escaped.told import data_set_of, owners, told

FAILED = "in DataLoader worker process"
OTHERS = ("h5py", "lmdb", "zarr", "netCDF4", "rasterio", "tables")
"""Libraries whose open files are of classes of their own."""


def shared_file(error: BaseException, _: Storages) -> dict[str, Any] | None:
    if FAILED not in str(error):
        return None
    loader = next((each for each in owners(error) if hasattr(each, "_num_workers")), None)
    data = data_set_of(error)
    if data is None or getattr(loader, "_num_workers", 0) < 2:
        return None
    for name, value in attributes_of(data):
        if _is_open_file(value):
            shown = f"{type(data).__name__}.{name}"
            return told(
                f"`{shown}` ({type(value).__name__}) was opened before the workers started: they "
                "share its position in the file, and read what another one skipped to",
                f"set `self.{name} = None` in `__init__`, and open it at the first item that a "
                "worker reads",
            )
    return None


def _is_open_file(value: Any) -> bool:
    if isinstance(value, (ZipFile, TarFile)):
        return getattr(value, "fp", getattr(value, "fileobj", None)) is not None
    if isinstance(value, io.IOBase) and not isinstance(value, (io.BytesIO, io.StringIO)):
        return not value.closed
    return type(value).__module__.split(".")[0] in OTHERS
