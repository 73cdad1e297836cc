"""Settings of libraries for GPUs, which a program may change and ask for. Nothing follows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

WORKSPACE = 32 * 2**20
"""Of cuBLAS on a GPU of capability 9.0."""
SETTINGS: dict[str, tuple[str, Any]] = {
    "setCublasWorkspaceSize": ("getCublasWorkspaceSize", WORKSPACE),
    "setCublasLtWorkspaceSize": ("getCublasLtWorkspaceSize", WORKSPACE),
    "tunableop_enable": ("tunableop_is_enabled", False),
    "tunableop_tuning_enable": ("tunableop_tuning_is_enabled", True),
    "record_untuned_enable": ("record_untuned_is_enabled", False),
    "tunableop_set_max_tuning_duration": ("tunableop_get_max_tuning_duration", 30),
    "tunableop_set_max_tuning_iterations": ("tunableop_get_max_tuning_iterations", 100),
    "tunableop_set_filename": ("tunableop_get_filename", "tunableop_results0.csv"),
    "tunableop_set_rotating_buffer_size": ("tunableop_get_rotating_buffer_size", 50 * 2**20),
    "tunableop_set_numerical_check_tolerances": ("tunableop_get_numerical_check_tolerances", False),
}
"""What sets one -> what is asked for it, and its value in a new process."""


def remembered() -> dict[str, Callable[..., Any]]:
    known = dict(SETTINGS.values())
    functions: dict[str, Callable[..., Any]] = {
        "tunableop_get_results": tuple,
        "tunableop_get_validators": tuple,
    }
    for told, (asked, _) in SETTINGS.items():
        functions[told] = _setting(known, asked)
        functions[asked] = _asking(known, asked)
    return functions


def _setting(known: dict[str, Any], asked: str) -> Callable[..., None]:
    return lambda value, *_: known.update({asked: value})


def _asking(known: dict[str, Any], asked: str) -> Callable[[], Any]:
    return lambda: known[asked]
