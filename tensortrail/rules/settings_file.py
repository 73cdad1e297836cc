"""The view of a settings file that rules receive: its values, and the line each stands on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import Enum
from typing import Any, NamedTuple

from tensortrail.rules.unchanging import unchanging

Path = tuple[str, ...]


class SettingsKind(str, Enum):
    """Whose settings they are; its value is what a report calls it."""

    ACCELERATE = "settings of accelerate"
    DEEPSPEED = "settings of DeepSpeed"
    FSDP = "`fsdp_config` of transformers"
    TRAINING = "arguments of the Trainer of transformers"


class Given(NamedTuple):
    """One setting as the file gives it."""

    name: str
    value: Any
    line: int
    word: str = ""
    """The text in the file, where it stands there without quotes."""

    @property
    def told(self) -> str:
        """As a message quotes it: `zero_stage: 2`."""
        switch = str(self.value).lower() if isinstance(self.value, bool) else self.value
        text = self.word or switch
        return f"`{self.name}: {text}`"


class Twice(NamedTuple):
    name: str
    line: int
    first: int


@unchanging(frozen=True, slots=False)
class SettingsFile:
    path: str
    kind: SettingsKind
    values: Mapping[str, Any]
    lines: Mapping[Path, int] = field(default_factory=dict)
    words: Mapping[Path, str] = field(default_factory=dict)
    """Values without quotes, as they are written."""
    twice: tuple[Twice, ...] = ()

    def given(self, *path: str) -> Given | None:
        """The setting at the path; None where there is none, or `null`."""
        value: Any = self.values
        for name in path:
            if not isinstance(value, Mapping) or name not in value:
                return None
            value = value[name]
        if value is None:
            return None
        line, word = self.lines.get(path, 1), self.words.get(path, "")
        return Given(".".join(path), value, line, word)

    def below(self, *path: str) -> Iterator[Given]:
        """The settings of one block."""
        block = self.given(*path) if path else Given("", self.values, 1)
        for name in block.value if block and isinstance(block.value, Mapping) else ():
            if isinstance(name, str) and (found := self.given(*path, name)):
                yield found


def is_on(value: object) -> bool:
    """It switches something on, in any of the spellings that the libraries take."""
    return value is True or str(value).strip().lower() in ("true", "1", "yes", "on")


def is_off(value: object) -> bool:
    return value is False or str(value).strip().lower() in ("false", "0", "no", "off")
