"""Paths of modules and parameters, as a program writes them."""

from __future__ import annotations


def in_python(path: str) -> str:
    """`model[0].weight` for `model.0.weight`."""
    first, *parts = path.split(".")
    return first + "".join(f"[{each}]" if each.isdigit() else f".{each}" for each in parts)
