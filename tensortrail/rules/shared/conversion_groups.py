"""Weights that transformers joins into one when it saves them in their original format."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any


def groups(model: Any, names: Iterable[str]) -> dict[str, list[str]]:
    """The names that become one weight together, by the weight they become."""
    from transformers import core_model_loading as loading

    reverse = [each.reverse_transform() for each in _transforms(model)[::-1]]
    converters = [each for each in reverse if isinstance(each, loading.WeightConverter)]
    renamings = [each for each in reverse if not isinstance(each, loading.WeightConverter)]
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        target, pattern = loading.rename_source_key(name, [], converters)
        if pattern is not None:
            found[loading.rename_source_key(target, renamings, [])[0]].append(name)
    return {target: members for target, members in found.items() if len(members) > 1}


def _transforms(model: Any) -> list[Any]:
    """Those that the model was loaded with; a model that was made has its class's, and what is
    put before all names is no part of these."""
    own = getattr(model, "_weight_conversions", None)
    if own is not None:
        return list(own)
    from transformers.conversion_mapping import get_model_conversion_mapping

    found = get_model_conversion_mapping(model, add_legacy=False)
    return [each for each in found if type(each).__name__ != "PrefixChange"]


def nbytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())
