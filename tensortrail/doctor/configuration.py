"""The configuration of a model that transformers knows, or a sentence saying why there is none."""

from __future__ import annotations

import os
from typing import Any

NAME = "config.json"
_NAME_IT = (
    f"name a {NAME} or the folder it is in (for a model of the hub, get it first: "
    f"`hf download REPO {NAME}`)"
)


class NoConfiguration(Exception):
    """What is wrong, and what to do."""


def settings_of(path: str) -> Any:
    """Code of the checkpoint is never run, and nothing is downloaded."""
    from transformers import AutoConfig

    if os.path.exists(path):
        _look_at(path)
    try:
        return AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # each class has conditions of its own
        raise NoConfiguration(_refused(path, error)) from error


def _look_at(path: str) -> None:
    """What the library tells less clearly."""
    from transformers import CONFIG_MAPPING
    from transformers import __version__ as version

    told = _read(_file(path))
    if told is None:
        return
    kind = told.get("model_type") if isinstance(told, dict) else None
    if not isinstance(told, dict) or not isinstance(kind, str):
        raise NoConfiguration(
            f"{_file(path)} has no `model_type`, so it is not the configuration of a model of "
            f"transformers: name the {NAME} of the model"
        )
    if kind in CONFIG_MAPPING:
        return
    if "auto_map" in told:
        raise NoConfiguration(
            f"{_file(path)} needs code that comes with the checkpoint (`auto_map`), and that is "
            "never run here"
        )
    raise NoConfiguration(
        f"transformers {version} knows no model of the type {kind!r} ({_file(path)}): install the "
        "release that the checkpoint was made with"
    )


def _file(path: str) -> str:
    return os.path.join(path, NAME) if os.path.isdir(path) else path


def _read(file: str) -> Any:
    """Its JSON value; None where only the library can say what is wrong."""
    from tensortrail.doctor.checkpoint.formats.json_text import Malformed, read_json
    from tensortrail.doctor.checkpoint.formats.ranges import Ranges, TooMuch

    if not os.path.exists(file):
        raise NoConfiguration(f"the folder {os.path.dirname(file)} has no {NAME}: {_NAME_IT}")
    try:
        with Ranges(file) as opened:
            return read_json(opened.read(0, opened.size))[0]
    except (OSError, TooMuch, Malformed):
        return None


def _refused(path: str, error: Exception) -> str:
    if not os.path.exists(path):
        return f"there is no file or folder {path}: {_NAME_IT}"
    said = " ".join(str(error).split()) or type(error).__name__
    return f"transformers refuses {_file(path)}: {said}"
