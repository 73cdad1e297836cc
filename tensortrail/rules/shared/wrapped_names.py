"""Names of weights that a wrapper around the model has lengthened."""

from __future__ import annotations

from collections.abc import Iterable

WRAPPERS = ("_orig_mod.", "module.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")
"""Of torch.compile, DistributedDataParallel, FSDP and checkpoint_wrapper."""


def wrappers_of(names: Iterable[str]) -> tuple[str, ...]:
    """The prefixes that every name begins with, outermost first."""
    found: list[str] = []
    left = list(names)
    while prefix := next((each for each in WRAPPERS if _all_begin(left, each)), ""):
        found.append(prefix)
        left = [name.removeprefix(prefix) for name in left]
    return tuple(found)


def without_wrapper(names: Iterable[str]) -> dict[str, str]:
    """Each name without what the wrapper added, with the name as it is stored."""
    stored = list(names)
    added = "".join(wrappers_of(stored))
    return {name.removeprefix(added): name for name in stored}


def _all_begin(names: list[str], prefix: str) -> bool:
    return bool(names) and all(name.startswith(prefix) for name in names)
