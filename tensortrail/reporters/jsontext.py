"""JSON that every parser takes, and that no log can mistake for a command."""

from __future__ import annotations

import json
from typing import Any

from tensortrail.inert import inert_json


def to_json(value: Any) -> str:
    return inert_json(json.dumps(_encodable(value), indent=2))


def _encodable(value: Any) -> Any:
    """Half a surrogate pair (a file name that is no UTF-8) is spelled out: it is not text."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_encodable(each) for each in value]
    return value
