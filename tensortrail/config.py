"""Settings of a project: `[tool.tensortrail]` in pyproject.toml."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tensortrail import toml
from tensortrail.files import read

_LARGEST = 10_000_000
_TABLE = re.compile(rb"^\[tool\.(t[\w-]{7,14})\b", re.MULTILINE)
"""Of the length of our name."""
FORMATS = (
    "text", "concise", "json", "sarif", "github", "gitlab", "junit", "rdjson", "lintrunner",
    "markdown",
)  # fmt: skip
"""Of reports of findings: each is a file of `reporters/`."""
SEVERITIES = ("note", "warning", "error")
"""The mildest first."""
NOTES = ("short", "full", "all", "hidden")
"""Which findings that are notes are shown, and how much of them."""


def counts(severity: str, fail_on: str) -> bool:
    """Whether a finding of that severity makes a check fail."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(fail_on)


class ConfigError(Exception):
    """The configuration cannot be used; the message says where and what to do."""


_NO_PATTERNS: Mapping[str, tuple[str, ...]] = {}


class Config(NamedTuple):
    """One field a key: `extend_select` is `extend-select` in the file."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = _NO_PATTERNS
    exclude: tuple[str, ...] = ()
    respect_gitignore: bool = True
    baseline: str = ""
    cache_dir: str = ".tensortrail_cache"
    output_format: str = "text"
    fail_on: str = "warning"
    notes: str = "short"
    jobs: int = 0
    siblings: bool = True
    unsafe_fixes: bool = False

    file: str = ""
    """Where it was read from; "" for none."""

    @property
    def root(self) -> str:
        return os.path.dirname(self.file) or "."


_INTERNAL = ("file",)
_CHOICES = {"output-format": FORMATS, "fail-on": SEVERITIES, "notes": NOTES}


def load(path: str | None, start: str) -> Config:
    """The named file, or the nearest pyproject.toml at or above `start` that has our table."""
    if path is not None:
        table = _table(path, named=True)
        return _config(table or {}, path)
    folder = os.path.abspath(start)
    while True:
        candidate = os.path.join(folder, "pyproject.toml")
        if os.path.isfile(candidate):
            table = _table(candidate)
            if table is not None:
                return _config(table, candidate)
        parent = os.path.dirname(folder)
        if parent == folder:
            return Config()
        folder = parent


def keys() -> list[str]:
    return [each.replace("_", "-") for each in Config._fields if each not in _INTERNAL]


def nearest(name: str, names: list[str], alike: float = 0.6) -> str:
    """ " (did you mean ...?)", or nothing."""
    from difflib import get_close_matches

    close = get_close_matches(name, names, 1, alike)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _table(path: str, named: bool = False) -> Mapping[str, Any] | None:
    try:
        data = read(path, _LARGEST)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not named and b"tensortrail" not in data:
        _refuse_mistyped(path, data)
        return None
    try:
        parsed = toml.parsed(data.decode("utf-8-sig"))
    except ValueError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: not valid TOML: nested too deeply") from error
    tool = parsed.get("tool", {})
    table = tool.get("tensortrail") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{path}: [tool.tensortrail] must be a table")
    if named and table is None:
        raise ConfigError(f"{path}: has no table [tool.tensortrail]")
    return table


def _refuse_mistyped(path: str, data: bytes) -> None:
    """A table of nearly our name, which would go unread in silence."""
    for found in _TABLE.findall(data):
        name = found.decode()
        if nearest(name, ["tensortrail"], 0.85):
            raise ConfigError(f"{path}: [tool.{name}] is unknown (did you mean 'tensortrail'?)")


def _config(table: Mapping[str, Any], path: str) -> Config:
    known = {each.replace("_", "-"): each for each in Config._fields}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in keys():
            hint = nearest(key, keys()) or f" (known: {', '.join(keys())})"
            raise ConfigError(f"{path}: [tool.tensortrail] has no key {key!r}{hint}")
        values[known[key]] = _checked(path, key, value)
    return Config(**values, file=path)


def _checked(path: str, key: str, value: Any) -> Any:
    default = getattr(Config(), key.replace("-", "_"))
    where = f"{path}: [tool.tensortrail] {key}"
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise ConfigError(f"{where} must be true or false, not {value!r}")
        return value
    if isinstance(default, int):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ConfigError(f"{where} must be a whole number, 0 or more, not {value!r}")
        return value
    if isinstance(default, str):
        if not _is_text(value):
            raise ConfigError(f"{where} must be a string, not {value!r}")
        allowed = _CHOICES.get(key, ())
        if allowed and value not in allowed:
            raise ConfigError(f"{where} must be one of {', '.join(allowed)}, not {value!r}")
        return value
    if isinstance(default, Mapping):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} must be a table of pattern = [codes]")
        return {str(pattern): _strings(where, codes) for pattern, codes in value.items()}
    return _strings(where, value)


def _strings(where: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(map(_is_text, value)):
        raise ConfigError(f"{where} must be a list of strings, not {value!r}")
    return tuple(value)


def _is_text(value: Any) -> bool:
    """No path has a NUL."""
    return isinstance(value, str) and "\0" not in value
