"""The index of a sharded checkpoint: which file each weight is in."""

from __future__ import annotations

from typing import Any

from tensortrail.doctor.checkpoint.formats.beginnings import without_weights
from tensortrail.doctor.checkpoint.formats.json_text import Malformed, is_text, read_json
from tensortrail.doctor.checkpoint.formats.ranges import Ranges
from tensortrail.rules.checkpoint_files import Flaw, Index, Trouble

WEIGHT_MAP, TOTAL = "weight_map", "total_size"


def read_index(file: Ranges, path: str, name: str) -> Index:
    if flaw := without_weights(file):
        return Index(path, name, flaws=(flaw,), usable=False)
    data = file.read(0, file.size)
    try:
        told, twice = read_json(data)
    except Malformed as error:
        flaw = Flaw(Trouble.INDEX, str(error), error.byte, error.byte)
        return Index(path, name, flaws=(flaw,), text=data, usable=False)
    if reason := _refused(told):
        return Index(path, name, flaws=(Flaw(Trouble.INDEX, reason),), text=data, usable=False)
    flaws = []
    if twice:
        shown = ", ".join(repr(key) for key in list(dict.fromkeys(twice))[:3])
        message = f"{shown} occurs twice in the index: readers keep the last entry"
        flaws.append(Flaw(Trouble.DUPLICATE, message, found=f"repeated keys: {len(twice)}"))
    if "metadata" not in told:
        reason = "it has no `metadata`, without which transformers does not read it"
        flaws.append(Flaw(Trouble.INDEX, reason))
    return Index(path, name, told[WEIGHT_MAP], _total(told), tuple(flaws), data)


def _refused(told: Any) -> str:
    if not isinstance(told, dict):
        return "it is not a JSON object"
    weight_map = told.get(WEIGHT_MAP)
    if not isinstance(weight_map, dict):
        return "it has no object `weight_map`"
    if not weight_map:
        return "its `weight_map` is empty"
    if not all(isinstance(file, str) and file for file in weight_map.values()):
        return "its `weight_map` gives something else than the name of a file"
    if not all(is_text(key) and is_text(file) for key, file in weight_map.items()):
        return "its `weight_map` holds text that is not valid"
    if not isinstance(told.get("metadata", {}), (dict, type(None))):
        return "its `metadata` is not a JSON object"
    return ""


def _total(told: dict[str, Any]) -> int | None:
    """Some writers write it as text or as a float."""
    value = (told.get("metadata") or {}).get(TOTAL)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if abs(value) < 2**63 else None
