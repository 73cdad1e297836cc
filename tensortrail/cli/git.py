"""What git is asked; nothing starts that a repository's own configuration names."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from tensortrail.config import ConfigError

_HARMLESS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
"""What a repository's own configuration could start is switched off."""
_SECONDS = 60
_AT_ONCE = 500
"""Files that are in memory together."""


class Stored(NamedTuple):
    """A file as a commit has it."""

    name: str
    """From the top of the repository, with `/`."""
    blob: bytes
    size: int


class Repository:
    """The repository around a folder, for an option that errors are to name."""

    def __init__(self, option: str, folder: str) -> None:
        self.option = option
        self.top = folder
        self.top = os.fsdecode(self.ask("rev-parse", "--show-toplevel")).rstrip("\n")

    def ask(self, *arguments: str, said: bytes = b"") -> bytes:
        command: Sequence[str] = ("git", *_HARMLESS, "-C", self.top or ".", *arguments)
        quiet = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}
        try:
            done = subprocess.run(
                command, env=quiet, capture_output=True, input=said, timeout=_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ConfigError(f"{self.option} needs git: {error}") from error
        if done.returncode:
            told = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise ConfigError(f"{self.option}: git: {told[-1] if told else done.returncode}")
        return done.stdout

    def names(self, *arguments: str) -> list[str]:
        """What git lists, from the top of the repository."""
        return [os.fsdecode(each) for each in self.ask(*arguments, "-z").split(b"\0") if each]

    def files_of(self, commit: str) -> Iterator[Stored]:
        """No links, and no other repositories."""
        for row in self.ask("ls-tree", "-r", "-l", "-z", "--full-tree", commit).split(b"\0"):
            facts, _, name = row.partition(b"\t")
            if facts.startswith(b"100"):
                _, _, blob, size = facts.split()
                yield Stored(os.fsdecode(name), blob, int(size))

    def contents(self, files: Iterable[Stored]) -> Iterator[tuple[str, bytes]]:
        """The bytes as they are stored, whatever filters the repository names."""
        rest = iter(files)
        while wanted := list(islice(rest, _AT_ONCE)):
            told = self.ask("cat-file", "--batch", said=b"\n".join(each.blob for each in wanted))
            at = 0
            for each in wanted:
                at = self._content_at(told, at)
                yield each.name, told[at : at + each.size]
                at += each.size + 1

    def _content_at(self, told: bytes, at: int) -> int:
        end = told.index(b"\n", at)
        if told[at:end].endswith(b" missing"):
            raise ConfigError(f"{self.option}: the files of that commit are not here: fetch them")
        return end + 1
