"""A quantized weight that is loaded without its scale has other values than it was saved with."""

from __future__ import annotations

from collections.abc import Callable, Collection

import torch

QUANTIZED = {
    str(dtype)[6:]
    for name in ("int8", "uint8", "float4_e2m1fn_x2", "float8_e4m3fn", "float8_e5m2",
                 "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
    if (dtype := getattr(torch, name, None)) is not None
}  # fmt: skip


def unused_scales(
    unused: Collection[str], taken: Collection[str], dtype_of: Callable[[str], str]
) -> dict[str, str]:
    """Keys that nothing took, with the type of the quantized weight beside each that was taken."""
    found = {}
    by_module: dict[str, str] = {}
    for key in taken if unused else ():
        if dtype_of(key) in QUANTIZED:
            by_module[key] = by_module[key.rpartition(".")[0]] = key
    for key in unused if by_module else ():
        beside = by_module.get(key.rpartition(".")[0])
        if beside is not None:
            found[key] = dtype_of(beside)
    return found
