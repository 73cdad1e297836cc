"""Reads a settings file, YAML or JSON, with the line of every value."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from tensortrail.doctor.settings.kinds import kind_of, may_be_settings
from tensortrail.rules.settings_file import Path, SettingsFile, Twice

ENDINGS = (".yaml", ".yml", ".json")
MOST_BYTES, MOST_VALUES, DEEPEST = 1 << 20, 20_000, 40
_NOBODYS = "it has no settings of accelerate, DeepSpeed or transformers"
LEFT_OUT = frozenset(("node_modules", "__pycache__", "site-packages"))


class Unreadable(Exception):
    """It is no settings file: why."""


class Malformed(Unreadable):
    """It has the words of settings, but cannot be parsed: they are not checked, nor in effect."""


class Parsed(NamedTuple):
    values: dict[str, Any]
    lines: dict[Path, int]
    words: dict[Path, str]
    twice: tuple[Twice, ...]


def settings_files(path: str) -> Iterator[str]:
    """The file, or those of the folder and the folders in it that may hold settings."""
    if not os.path.isdir(path):
        yield path
        return
    for here, below, names in os.walk(path):
        below[:] = sorted(each for each in below if each[:1] != "." and each not in LEFT_OUT)
        for name in sorted(names):
            if name.lower().endswith(ENDINGS):
                yield os.path.join(here, name)


def read_settings(path: str) -> SettingsFile:
    """Raises `Unreadable` for what is no YAML, no JSON, or nobody's settings."""
    try:
        if not os.path.isfile(path):
            raise Unreadable("no such file" if not os.path.exists(path) else "not a regular file")
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    if len(data) > MOST_BYTES:
        raise Unreadable(f"it has more than {MOST_BYTES:,} bytes, and settings have not")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("it is not UTF-8") from error
    if not may_be_settings(text):
        raise Unreadable(_NOBODYS)
    parsed = parse(text, path.lower().endswith(".json"))
    kind = kind_of(parsed.values)
    if kind is None:
        raise Unreadable(_NOBODYS)
    return SettingsFile(path, kind, parsed.values, parsed.lines, parsed.words, parsed.twice)


def parse(text: str, is_json: bool) -> Parsed:
    import yaml

    # JSON may have tabs between its values, YAML not; none can be inside of its strings.
    loader = yaml.SafeLoader(text.replace("\t", " ") if is_json else text)
    try:
        root = loader.get_single_node()
        if root is None:
            raise Unreadable("it is empty")
        seen = _Seen()
        seen.walk(root, (), 0)
        values = json.loads(text) if is_json else loader.construct_document(root)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        told = str(getattr(error, "problem", None) or error).partition("\n")[0]
        mark = getattr(error, "problem_mark", None)
        at = f" (line {mark.line + 1})" if mark else ""
        kind = Unreadable if "{{" in text else Malformed  # a template becomes settings later
        raise kind(f"it is not valid {'JSON' if is_json else 'YAML'}: {told}{at}") from error
    finally:
        loader.dispose()
    if not isinstance(values, dict):
        raise Unreadable("it holds no settings by name")
    return Parsed(values, seen.lines, seen.words, tuple(seen.twice))


class _Seen:
    """What is met on a walk over the nodes. An alias is walked where it stands: bounded."""

    def __init__(self) -> None:
        self.lines: dict[Path, int] = {}
        self.words: dict[Path, str] = {}
        self.twice: list[Twice] = []
        self._values = 0

    def walk(self, node: Any, path: Path, depth: int) -> None:
        self._values += 1
        if self._values > MOST_VALUES or depth > DEEPEST:
            raise Unreadable("it has more values, or deeper ones, than settings have")
        kind = getattr(node, "id", "")
        if kind == "mapping":
            self._mapping(node, path, depth)
        elif kind == "sequence":
            for number, each in enumerate(node.value):
                self.walk(each, (*path, str(number)), depth + 1)
        elif kind == "scalar" and node.style is None:
            self.words[path] = node.value

    def _mapping(self, node: Any, path: Path, depth: int) -> None:
        first: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key.value, str):
                continue
            line = key.start_mark.line + 1
            below = (*path, key.value)
            if key.value in first and key.value != "<<":
                self.twice.append(Twice(".".join(below), line, first[key.value]))
            first.setdefault(key.value, line)
            self.lines[below] = line
            self.words.pop(below, None)
            self.walk(value, below, depth + 1)
