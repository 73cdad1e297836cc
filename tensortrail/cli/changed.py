"""`--changed-only [BASE]`, `--new-since [BASE]`: what a change has changed, as git tells it."""

from __future__ import annotations

import os

from tensortrail.cli.git import Repository
from tensortrail.config import ConfigError


class Change:
    """All since a branch left BASE: what BASE has got since does not count."""

    def __init__(self, option: str, base: str, folder: str) -> None:
        self.base = base
        self.repository = Repository(option, folder)
        self._named = f"{option} {base}"
        self.commit = self._left()
        """What it began with; "" while there is no commit."""

    def files_now(self) -> frozenset[str]:
        """Real paths of the files that differ, or are new and not ignored."""
        names = self._differing("--diff-filter=d") if self.commit else self._staged()
        names += self.repository.names("ls-files", "--others", "--exclude-standard")
        top = self.repository.top
        return frozenset(os.path.realpath(os.path.join(top, each)) for each in names)

    def names_before(self) -> list[str]:
        """Of the files that differ or are gone, from the top of the repository."""
        return self._differing("--diff-filter=a") if self.commit else []

    def _differing(self, which: str) -> list[str]:
        options = ("diff", "--name-only", "--no-ext-diff", "--no-renames", which)
        return self.repository.names(*options, self.commit)

    def _staged(self) -> list[str]:
        return self.repository.names("ls-files", "--cached")

    def _left(self) -> str:
        if self.base == "HEAD" and not self.repository.ask("rev-list", "-n", "1", "--all"):
            return ""
        commit = self._commit()
        try:
            return self.repository.ask("merge-base", commit, "HEAD").decode().strip()
        except ConfigError as error:
            raise ConfigError(
                f"{self._named}: git finds no commit that it shares with HEAD: "
                "fetch more of the history (actions/checkout: fetch-depth: 0)"
            ) from error

    def _commit(self) -> str:
        asked = ("rev-parse", "--verify", "--end-of-options", f"{self.base}^{{commit}}")
        try:
            return self.repository.ask(*asked).decode().strip()
        except ConfigError as error:
            hint = ""
            if os.path.exists(self.base):
                option = self.repository.option
                hint = f": for the changed files of a path, write {self.base} {option}"
            raise ConfigError(f"{self._named}: git knows no such commit{hint}") from error
